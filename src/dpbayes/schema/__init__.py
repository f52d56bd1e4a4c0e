"""What is public about a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpbayes.base.display import on_demand

if TYPE_CHECKING:
    from dpbayes.schema.marginal import Marginal, Prior
    from dpbayes.schema.unit import Adjacency, Sensitivity

_HOME = {
    "Adjacency": "schema.unit",
    "Marginal": "schema.marginal",
    "Prior": "schema.marginal",
    "Sensitivity": "schema.unit",
}
__all__ = ["Adjacency", "Marginal", "Prior", "Sensitivity"]
__getattr__ = on_demand(__name__, _HOME)
