"""Posterior mechanisms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpbayes.base.display import on_demand

if TYPE_CHECKING:
    from dpbayes.hellinger.mechanism import Hellinger

_HOME = {
    "Hellinger": "hellinger.mechanism",
}
__all__ = ["Hellinger"]
__getattr__ = on_demand(__name__, _HOME)
