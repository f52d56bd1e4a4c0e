"""One file per product."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpbayes.base.display import on_demand

if TYPE_CHECKING:
    from dpbayes.design.plan import Plan
    from dpbayes.jobs.edges import Quantiles
    from dpbayes.jobs.model import Fit
    from dpbayes.jobs.vector import Vector
    from dpbayes.jobs.wide import Wide, WideDistribution

_HOME = {
    "Fit": "jobs.model",
    "Plan": "design.plan",
    "Quantiles": "jobs.edges",
    "Vector": "jobs.vector",
    "Wide": "jobs.wide",
    "WideDistribution": "jobs.wide",
}
__all__ = ["Fit", "Plan", "Quantiles", "Vector", "Wide", "WideDistribution"]
__getattr__ = on_demand(__name__, _HOME)
