"""Publish what a sensitive table of categories says, without exposing anyone in it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dpbayes.base.display import DOORS, on_demand

if TYPE_CHECKING:
    from dpbayes.curator import Curator as Curator
    from dpbayes.jobs.categories import Categories as Categories
    from dpbayes.jobs.edges import Edges as Edges
    from dpbayes.jobs.posterior import PosteriorTable as PosteriorTable
    from dpbayes.jobs.request import Request as Request
    from dpbayes.jobs.synthetic import Synthetic as Synthetic
    from dpbayes.jobs.tables import Tables as Tables
    from dpbayes.ledger.ledger import Ledger as Ledger
    from dpbayes.mechanisms.dirichlet import Dirichlet as Dirichlet
    from dpbayes.mechanisms.gaussian import Gaussian as Gaussian
    from dpbayes.mechanisms.laplace import Laplace as Laplace
    from dpbayes.models.bayes_net import BayesNet as BayesNet
    from dpbayes.models.naive_bayes import NaiveBayes as NaiveBayes
    from dpbayes.privacy.calibrate import calibrate as calibrate
    from dpbayes.privacy.cost import Cost as Cost
    from dpbayes.privacy.guarantee import RDP as RDP
    from dpbayes.privacy.guarantee import TCDP as TCDP
    from dpbayes.privacy.guarantee import ZCDP as ZCDP
    from dpbayes.privacy.guarantee import ApproxDP as ApproxDP
    from dpbayes.privacy.guarantee import PureDP as PureDP
    from dpbayes.recovery import finish as finish
    from dpbayes.release.estimates import Posterior as Posterior
    from dpbayes.release.format import Release as Release
    from dpbayes.release.reading import load as load
    from dpbayes.release.verify import verify as verify
    from dpbayes.schema.attribute import Attribute as Attribute
    from dpbayes.schema.schema import Schema as Schema
    from dpbayes.schema.unit import Unit as Unit

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

ROOMS = ("hellinger", "jobs", "mechanisms", "models", "privacy", "schema", "tables")

_MOVED = {
    "DirichletPosterior": "dpbayes.PosteriorTable",
    "PrivacyUnit": "dpbayes.Unit",
    "subsampled": "dpbayes.mechanisms.subsampled.subsampled",
}
"""Where names of 0.2.0 are now that no room offers under the same name; this version only."""

__all__ = [*_HOME, "__version__"]  # noqa: PLE0604 - names of what is loaded when it is asked for


DOORS.update(
    TableView="release.estimates",
    Posterior="release.estimates",
    built="models.model",
    densities="plot.pictures",
    fragment="report.page",
    interval_picture="plot.pictures",
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
    if name not in _HOME and not name.startswith("_"):
        rooms = {each: f"dpbayes.{room}.{each}" for room in ROOMS for each in import_module(f"dpbayes.{room}")._HOME}
        if new := (rooms | _MOVED).get(name):
            raise AttributeError(f"dpbayes.{name} is now {new}.")
    value = on_demand("dpbayes", _HOME)(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
