"""One file per mechanism, and exact samplers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpbayes.base.display import on_demand

if TYPE_CHECKING:
    from dpbayes.mechanisms.stated import Stated
    from dpbayes.mechanisms.tuning import ConcentrationCurve
    from dpbayes.mechanisms.urn import PseudoRecords

_HOME = {
    "ConcentrationCurve": "mechanisms.tuning",
    "PseudoRecords": "mechanisms.urn",
    "Stated": "mechanisms.stated",
}
__all__ = ["ConcentrationCurve", "PseudoRecords", "Stated"]
__getattr__ = on_demand(__name__, _HOME)
