"""Functions of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpbayes.base.display import on_demand

if TYPE_CHECKING:
    from dpbayes.models.histogram import Histogram
    from dpbayes.models.latent import Latent

_HOME = {
    "Histogram": "models.histogram",
    "Latent": "models.latent",
}
__all__ = ["Histogram", "Latent"]
__getattr__ = on_demand(__name__, _HOME)
