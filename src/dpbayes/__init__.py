"""Publish what a sensitive table of categories says, without exposing anyone in it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dpbayes.base.display import DOORS, on_demand

if TYPE_CHECKING:
    from dpbayes.curator import Curator
    from dpbayes.jobs.categories import Categories
    from dpbayes.jobs.edges import Edges
    from dpbayes.jobs.posterior import PosteriorTable
    from dpbayes.jobs.request import Request
    from dpbayes.jobs.synthetic import Synthetic
    from dpbayes.jobs.tables import Tables
    from dpbayes.ledger.ledger import Ledger
    from dpbayes.mechanisms.dirichlet import Dirichlet
    from dpbayes.mechanisms.gaussian import Gaussian
    from dpbayes.mechanisms.laplace import Laplace
    from dpbayes.models.bayes_net import BayesNet
    from dpbayes.models.naive_bayes import NaiveBayes
    from dpbayes.privacy.calibrate import calibrate
    from dpbayes.privacy.cost import Cost
    from dpbayes.privacy.guarantee import RDP, TCDP, ZCDP, ApproxDP, PureDP
    from dpbayes.recovery import finish
    from dpbayes.release.estimates import Posterior
    from dpbayes.release.format import Release
    from dpbayes.release.reading import load
    from dpbayes.release.verify import verify
    from dpbayes.schema.attribute import Attribute
    from dpbayes.schema.schema import Schema
    from dpbayes.schema.unit import Unit

_HOME = {
    "ApproxDP": "privacy.guarantee",
    "Attribute": "schema.attribute",
    "BayesNet": "models.bayes_net",
    "Categories": "jobs.categories",
    "Cost": "privacy.cost",
    "Curator": "curator",
    "Dirichlet": "mechanisms.dirichlet",
    "Edges": "jobs.edges",
    "Gaussian": "mechanisms.gaussian",
    "Laplace": "mechanisms.laplace",
    "Ledger": "ledger.ledger",
    "NaiveBayes": "models.naive_bayes",
    "Posterior": "release.estimates",
    "PosteriorTable": "jobs.posterior",
    "PureDP": "privacy.guarantee",
    "RDP": "privacy.guarantee",
    "Release": "release.format",
    "Request": "jobs.request",
    "Schema": "schema.schema",
    "Synthetic": "jobs.synthetic",
    "TCDP": "privacy.guarantee",
    "Tables": "jobs.tables",
    "Unit": "schema.unit",
    "ZCDP": "privacy.guarantee",
    "calibrate": "privacy.calibrate",
    "finish": "recovery",
    "load": "release.reading",
    "verify": "release.verify",
}
"""The module of each name, which is loaded when the name is first asked for: ``import dpbayes`` stays light."""

_MOVED = {
    "AdaptiveDP": "dpbayes.privacy.AdaptiveDP",
    "Adjacency": "dpbayes.schema.Adjacency",
    "ConcentrationCurve": "dpbayes.mechanisms.ConcentrationCurve",
    "DirichletPosterior": "dpbayes.PosteriorTable",
    "Family": "dpbayes.privacy.Family",
    "Fit": "dpbayes.jobs.Fit",
    "Hellinger": "dpbayes.hellinger.Hellinger",
    "Histogram": "dpbayes.models.Histogram",
    "Latent": "dpbayes.models.Latent",
    "Marginal": "dpbayes.schema.Marginal",
    "Plan": "dpbayes.jobs.Plan",
    "Prior": "dpbayes.schema.Prior",
    "PrivacyUnit": "dpbayes.Unit",
    "PseudoRecords": "dpbayes.mechanisms.PseudoRecords",
    "Quantiles": "dpbayes.jobs.Quantiles",
    "Sensitivity": "dpbayes.schema.Sensitivity",
    "Stated": "dpbayes.mechanisms.Stated",
    "Vector": "dpbayes.jobs.Vector",
    "Wide": "dpbayes.jobs.Wide",
    "WideDistribution": "dpbayes.jobs.WideDistribution",
    "open_table": "dpbayes.tables.open_table",
    "subsampled": "dpbayes.mechanisms.subsampled.subsampled",
}
"""Where names of 0.2.0 are now; this version only."""

__all__ = [
    "RDP",
    "TCDP",
    "ZCDP",
    "ApproxDP",
    "Attribute",
    "BayesNet",
    "Categories",
    "Cost",
    "Curator",
    "Dirichlet",
    "Edges",
    "Gaussian",
    "Laplace",
    "Ledger",
    "NaiveBayes",
    "Posterior",
    "PosteriorTable",
    "PureDP",
    "Release",
    "Request",
    "Schema",
    "Synthetic",
    "Tables",
    "Unit",
    "__version__",
    "calibrate",
    "finish",
    "load",
    "verify",
]


DOORS.update(
    TableView="release.estimates",
    Posterior="release.estimates",
    built="models.model",
    densities="plot.pictures",
    fragment="report.page",
    law_picture="plot.pictures",
    network_picture="plot.pictures",
    profile_picture="plot.pictures",
    release_of="release.reading",
    save="report.folder",
    section="report.tables",
    shares="plot.pictures",
    synthetic_table="models.synthetic",
    table_picture="plot.pictures",
    tradeoff_picture="plot.pictures",
    verify="release.verify",
    widths="design.forecast",
)


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("dpbayes")
    if name in _MOVED:
        raise AttributeError(f"dpbayes.{name} is now {_MOVED[name]}.")
    value = on_demand("dpbayes", _HOME)(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
