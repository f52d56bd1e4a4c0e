"""Publish what a sensitive table of categories says, without betraying anyone in it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpbayes.domain.unit import Adjacency, PrivacyUnit, Sensitivity
    from dpbayes.mechanisms.dirichlet import Dirichlet
    from dpbayes.mechanisms.gaussian import Gaussian
    from dpbayes.mechanisms.laplace import Laplace
    from dpbayes.mechanisms.stated import Stated
    from dpbayes.privacy.cost import Cost
    from dpbayes.privacy.guarantee import RDP, TCDP, ZCDP, ApproxDP, PureDP

_HOME = {
    "Adjacency": "domain.unit",
    "ApproxDP": "privacy.guarantee",
    "Cost": "privacy.cost",
    "Dirichlet": "mechanisms.dirichlet",
    "Gaussian": "mechanisms.gaussian",
    "Laplace": "mechanisms.laplace",
    "PrivacyUnit": "domain.unit",
    "PureDP": "privacy.guarantee",
    "RDP": "privacy.guarantee",
    "Sensitivity": "domain.unit",
    "Stated": "mechanisms.stated",
    "TCDP": "privacy.guarantee",
    "ZCDP": "privacy.guarantee",
}

__all__ = [
    "RDP",
    "TCDP",
    "ZCDP",
    "Adjacency",
    "ApproxDP",
    "Cost",
    "Dirichlet",
    "Gaussian",
    "Laplace",
    "PrivacyUnit",
    "PureDP",
    "Sensitivity",
    "Stated",
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
