"""One posterior for everything published about a private table: pure functions of noisy tables."""

from dpbayes.inference.ask import Reply as Answer
from dpbayes.inference.joint import JointPosterior as Posterior
from dpbayes.inference.law import LinearLaw, NotEstimable
from dpbayes.inference.measurement import Exact, Measurement
from dpbayes.inference.numbers import Estimate, TableEstimate
from dpbayes.inference.split import Split, best_split
from dpbayes.mechanisms.dirichlet import GammaNoise
from dpbayes.mechanisms.gaussian import GaussianNoise
from dpbayes.mechanisms.laplace import LaplaceNoise

__all__ = [
    "Answer",
    "Estimate",
    "Exact",
    "GammaNoise",
    "GaussianNoise",
    "LaplaceNoise",
    "LinearLaw",
    "Measurement",
    "NotEstimable",
    "Posterior",
    "Split",
    "TableEstimate",
    "best_split",
]
