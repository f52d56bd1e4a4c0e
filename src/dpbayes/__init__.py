"""Publish what a sensitive table of categories says, without exposing anyone in it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dpbayes.base.display import DOORS

if TYPE_CHECKING:
    from dpbayes.curator import Curator
    from dpbayes.design.plan import Plan
    from dpbayes.hellinger.mechanism import Hellinger
    from dpbayes.jobs.categories import Categories
    from dpbayes.jobs.edges import Edges, Quantiles
    from dpbayes.jobs.model import Fit
    from dpbayes.jobs.posterior import DirichletPosterior
    from dpbayes.jobs.request import Request
    from dpbayes.jobs.synthetic import Synthetic
    from dpbayes.jobs.tables import Tables
    from dpbayes.jobs.vector import Vector
    from dpbayes.jobs.wide import Wide, WideDistribution
    from dpbayes.ledger.ledger import Ledger
    from dpbayes.mechanisms.dirichlet import Dirichlet
    from dpbayes.mechanisms.gaussian import Gaussian
    from dpbayes.mechanisms.laplace import Laplace
    from dpbayes.mechanisms.stated import Stated
    from dpbayes.mechanisms.subsampled import subsampled
    from dpbayes.mechanisms.tuning import ConcentrationCurve
    from dpbayes.mechanisms.urn import PseudoRecords
    from dpbayes.models.bayes_net import BayesNet
    from dpbayes.models.histogram import Histogram
    from dpbayes.models.latent import Latent
    from dpbayes.models.naive_bayes import NaiveBayes
    from dpbayes.privacy.adaptive import AdaptiveDP
    from dpbayes.privacy.calibrate import Family, calibrate
    from dpbayes.privacy.cost import Cost
    from dpbayes.privacy.guarantee import RDP, TCDP, ZCDP, ApproxDP, PureDP
    from dpbayes.recovery import finish
    from dpbayes.release.estimates import Posterior
    from dpbayes.release.format import Release
    from dpbayes.release.verify import verify
    from dpbayes.schema.attribute import Attribute
    from dpbayes.schema.marginal import Marginal
    from dpbayes.schema.prior import Prior
    from dpbayes.schema.schema import Schema
    from dpbayes.schema.unit import Adjacency, PrivacyUnit, Sensitivity
    from dpbayes.tables.sources import open_table

_HOME = {
    "AdaptiveDP": "privacy.adaptive",
    "Adjacency": "schema.unit",
    "ApproxDP": "privacy.guarantee",
    "Attribute": "schema.attribute",
    "BayesNet": "models.bayes_net",
    "Categories": "jobs.categories",
    "ConcentrationCurve": "mechanisms.tuning",
    "Cost": "privacy.cost",
    "Curator": "curator",
    "Dirichlet": "mechanisms.dirichlet",
    "DirichletPosterior": "jobs.posterior",
    "Edges": "jobs.edges",
    "Family": "privacy.calibrate",
    "Fit": "jobs.model",
    "Gaussian": "mechanisms.gaussian",
    "Hellinger": "hellinger.mechanism",
    "Histogram": "models.histogram",
    "Laplace": "mechanisms.laplace",
    "Latent": "models.latent",
    "Ledger": "ledger.ledger",
    "Marginal": "schema.marginal",
    "NaiveBayes": "models.naive_bayes",
    "Plan": "design.plan",
    "Posterior": "release.estimates",
    "Prior": "schema.prior",
    "PrivacyUnit": "schema.unit",
    "PseudoRecords": "mechanisms.urn",
    "PureDP": "privacy.guarantee",
    "Quantiles": "jobs.edges",
    "RDP": "privacy.guarantee",
    "Release": "release.format",
    "Request": "jobs.request",
    "Schema": "schema.schema",
    "Sensitivity": "schema.unit",
    "Stated": "mechanisms.stated",
    "Synthetic": "jobs.synthetic",
    "TCDP": "privacy.guarantee",
    "Tables": "jobs.tables",
    "Vector": "jobs.vector",
    "Wide": "jobs.wide",
    "WideDistribution": "jobs.wide",
    "ZCDP": "privacy.guarantee",
    "calibrate": "privacy.calibrate",
    "finish": "recovery",
    "open_table": "tables.sources",
    "subsampled": "mechanisms.subsampled",
    "verify": "release.verify",
}

__all__ = [
    "RDP",
    "TCDP",
    "ZCDP",
    "AdaptiveDP",
    "Adjacency",
    "ApproxDP",
    "Attribute",
    "BayesNet",
    "Categories",
    "ConcentrationCurve",
    "Cost",
    "Curator",
    "Dirichlet",
    "DirichletPosterior",
    "Edges",
    "Family",
    "Fit",
    "Gaussian",
    "Hellinger",
    "Histogram",
    "Laplace",
    "Latent",
    "Ledger",
    "Marginal",
    "NaiveBayes",
    "Plan",
    "Posterior",
    "Prior",
    "PrivacyUnit",
    "PseudoRecords",
    "PureDP",
    "Quantiles",
    "Release",
    "Request",
    "Schema",
    "Sensitivity",
    "Stated",
    "Synthetic",
    "Tables",
    "Vector",
    "Wide",
    "WideDistribution",
    "calibrate",
    "finish",
    "open_table",
    "subsampled",
    "verify",
]


DOORS.update(
    TableView="release.estimates",
    Posterior="release.estimates",
    built="models.model",
    densities="plot.pictures",
    fragment="report.page",
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
)


def __getattr__(name: str) -> object:
    """Load each public name on first use, so that ``import dpbayes`` stays light."""
    if name == "__version__":
        return import_module("importlib.metadata").version("dpbayes")
    if name not in _HOME:
        raise AttributeError(f"module 'dpbayes' has no attribute {name!r}")
    value = getattr(import_module(f"dpbayes.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
