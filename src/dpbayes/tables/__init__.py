"""Engines that count private rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpbayes.base.display import on_demand

if TYPE_CHECKING:
    from dpbayes.tables.sources import open_table

_HOME = {
    "open_table": "tables.sources",
}
__all__ = ["open_table"]
__getattr__ = on_demand(__name__, _HOME)
