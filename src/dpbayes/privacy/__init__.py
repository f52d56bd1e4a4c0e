"""Guarantees, costs and their theorems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpbayes.base.display import on_demand

if TYPE_CHECKING:
    from dpbayes.privacy.adaptive import AdaptiveDP
    from dpbayes.privacy.calibrate import Family

_HOME = {
    "AdaptiveDP": "privacy.adaptive",
    "Family": "privacy.calibrate",
}
__all__ = ["AdaptiveDP", "Family"]
__getattr__ = on_demand(__name__, _HOME)
