"""The sensitive table that an engine returns."""

from __future__ import annotations

from dataclasses import dataclass

from dpbayes import _checks
from dpbayes._checks import Ints
from dpbayes.domain.attribute import Attribute
from dpbayes.domain.marginal import Marginal
from dpbayes.errors import InvalidArgument


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Counts:
    """Exact counts with named axes. ``array`` is the only way to the numbers; printing never shows them.

    >>> import numpy as np
    >>> sex = Attribute(name="sex", categories=("F", "M"))
    >>> Counts(marginal=Marginal("sex"), axes=(sex,), array=np.array([3, 4, 1, 0]))
    Counts(sex: 4 levels)
    """

    marginal: Marginal
    axes: tuple[Attribute, ...]
    array: Ints

    def __post_init__(self) -> None:
        if tuple(axis.name for axis in self.axes) != self.marginal.names:
            raise InvalidArgument("Counts: expected one axis for each name of the marginal, in its order.")
        array = _checks.counts("Counts", self.array).copy()  # the caller may go on writing
        if array.shape != self.shape:
            raise InvalidArgument(f"Counts: expected an array of shape {self.shape}, got {array.shape}.")
        array.flags.writeable = False
        object.__setattr__(self, "array", array)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the axes."""
        return self.marginal.names

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels per axis."""
        return tuple(len(axis.levels) for axis in self.axes)

    def __repr__(self) -> str:
        return f"Counts({', '.join(f'{axis.name}: {len(axis.levels)} levels' for axis in self.axes)})"
