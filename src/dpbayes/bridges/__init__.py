"""Ways to other libraries of the field, each with its own extra: OpenDP and ArviZ."""

from dpbayes.bridges.arviz import to_arviz, to_xarray
from dpbayes.bridges.opendp import to_opendp

__all__ = ["to_arviz", "to_opendp", "to_xarray"]
