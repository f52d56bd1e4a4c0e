"""Publish what a sensitive table of categories says, without betraying anyone in it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpbayes.curator import Curator, Request
    from dpbayes.domain.attribute import Attribute
    from dpbayes.domain.marginal import Marginal
    from dpbayes.domain.schema import Schema
    from dpbayes.domain.unit import Adjacency, PrivacyUnit, Sensitivity
    from dpbayes.ledger.ledger import Ledger
    from dpbayes.mechanisms.dirichlet import Dirichlet
    from dpbayes.mechanisms.gaussian import Gaussian
    from dpbayes.mechanisms.hellinger.mechanism import Hellinger
    from dpbayes.mechanisms.laplace import Laplace
    from dpbayes.mechanisms.stated import Stated
    from dpbayes.mechanisms.tuning import ConcentrationCurve
    from dpbayes.privacy.calibrate import Family, calibrate
    from dpbayes.privacy.cost import Cost
    from dpbayes.privacy.guarantee import RDP, TCDP, ZCDP, ApproxDP, PureDP
    from dpbayes.release import Release
    from dpbayes.tables.sources import open_table

_HOME = {
    "Adjacency": "domain.unit",
    "ApproxDP": "privacy.guarantee",
    "Attribute": "domain.attribute",
    "ConcentrationCurve": "mechanisms.tuning",
    "Cost": "privacy.cost",
    "Curator": "curator",
    "Dirichlet": "mechanisms.dirichlet",
    "Family": "privacy.calibrate",
    "Gaussian": "mechanisms.gaussian",
    "Hellinger": "mechanisms.hellinger.mechanism",
    "Laplace": "mechanisms.laplace",
    "Ledger": "ledger.ledger",
    "Marginal": "domain.marginal",
    "PrivacyUnit": "domain.unit",
    "PureDP": "privacy.guarantee",
    "RDP": "privacy.guarantee",
    "Release": "release",
    "Request": "curator",
    "Schema": "domain.schema",
    "Sensitivity": "domain.unit",
    "Stated": "mechanisms.stated",
    "TCDP": "privacy.guarantee",
    "ZCDP": "privacy.guarantee",
    "calibrate": "privacy.calibrate",
    "open_table": "tables.sources",
}

__all__ = [
    "RDP",
    "TCDP",
    "ZCDP",
    "Adjacency",
    "ApproxDP",
    "Attribute",
    "ConcentrationCurve",
    "Cost",
    "Curator",
    "Dirichlet",
    "Family",
    "Gaussian",
    "Hellinger",
    "Laplace",
    "Ledger",
    "Marginal",
    "PrivacyUnit",
    "PureDP",
    "Release",
    "Request",
    "Schema",
    "Sensitivity",
    "Stated",
    "calibrate",
    "open_table",
]


def __getattr__(name: str) -> object:
    """Load each public name on first use, so that ``import dpbayes`` stays light."""
    if name not in _HOME:
        raise AttributeError(f"module 'dpbayes' has no attribute {name!r}")
    value = getattr(import_module(f"dpbayes.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
