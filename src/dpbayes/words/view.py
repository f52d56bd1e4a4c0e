"""A table as readers meet it: which levels are shown, which cells noise swallows, how it is laid out and rounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from dpbayes.base.checks import Floats, Ints
from dpbayes.inference.law import Bools
from dpbayes.release.format import Product, Release, Table
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.labels import labels


@dataclass(frozen=True)
class View:
    """One table of a release with what a page needs to know about it. Cells are numbered row-major."""

    release: Release
    source: Table

    @property
    def level(self) -> float:
        """Of the intervals."""
        return self.release.level

    @cached_property
    def axes(self) -> tuple[Attribute, ...]:
        """The attributes of the table."""
        return self.release.axes(self.source)

    @cached_property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """What the levels of each axis are called."""
        return tuple(labels(axis) for axis in self.axes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Levels per axis."""
        return tuple(len(axis.levels) for axis in self.axes)

    @property
    def given(self) -> int:
        """How many axes name the groups of a conditional table."""
        return len(self.source.marginal.given)

    @cached_property
    def rows(self) -> int:
        """Number of groups."""
        return prod(self.shape[: self.given])

    @property
    def drawn_only(self) -> bool:
        """Whether the job asked for one draw from the posterior instead of the estimate."""
        return self.release.job.get("product") == "draw" and "draw" in self.source.products

    @cached_property
    def shares(self) -> Product | None:
        """What is shown in percent: estimated shares of the records, one draw, or shares of pseudo-records."""
        if self.drawn_only:
            return self.source.products["draw"]
        if self.source.kind not in ("pseudo-records", "shares"):
            return self.source.products.get("empirical")
        values = self.source.values.reshape(self.rows, -1)
        whole = np.maximum(values.sum(axis=1, keepdims=True), 1.0) if self.source.kind == "pseudo-records" else 1.0
        return Product(values=(values / whole).ravel())

    @property
    def counts(self) -> Product | None:
        """Estimated numbers of records."""
        return None if self.drawn_only else self.source.products.get("counts")

    @property
    def size(self) -> Floats:
        """What cells are ranked by: in a conditional table by records, since shares are within groups."""
        ranked = self.counts if self.given and self.counts is not None else self.shares
        if ranked is None and self.source.kind == "derived":
            return np.zeros(prod(self.shape))
        return np.asarray(self.source.values if ranked is None else ranked.values, dtype=np.float64)

    @cached_property
    def halves(self) -> Floats:
        """Half the width of each interval of the shares; nothing without intervals."""
        shares = None if self.drawn_only else self.shares
        if shares is None or shares.lower is None or shares.upper is None:
            return np.zeros(0)
        return np.asarray(np.subtract(shares.upper, shares.lower) / 2, dtype=np.float64)

    @cached_property
    def impossible(self) -> Bools:
        """Cells that are known to be empty: their interval is zero alone."""
        counts = self.source.products.get("counts")
        if counts is None or counts.upper is None:
            return np.zeros(prod(self.shape), dtype=bool)
        return np.asarray(np.asarray(counts.upper) <= 0.0)

    @cached_property
    def swallowed(self) -> Bools:
        """Cells that noise alone could explain: the interval of the count starts at zero.

        In a conditional table it is the whole group: an interval leaves half of all shares open, or more. Where noise
        alone explains the group, Fieller's intervals are everything from 0 to 1.
        """
        shares, counts = self.shares, self.counts
        none = np.zeros(prod(self.shape), dtype=bool)
        if shares is None or counts is None or shares.lower is None or shares.upper is None or counts.lower is None:
            return none
        if not self.given:
            return np.asarray((np.asarray(counts.lower) <= 0.0) & ~self.impossible)
        widths = np.subtract(shares.upper, shares.lower).reshape(self.rows, -1)
        return np.asarray(np.repeat(widths.max(axis=1) >= 0.5, prod(self.shape) // self.rows))

    @cached_property
    def empty(self) -> Bools:
        """Cells that say nothing: none of the pseudo-records, or a count that may be none as well."""
        if self.source.kind == "pseudo-records":
            return np.asarray(self.source.values <= 0)
        counts = self.source.products.get("counts")
        none = counts is None or counts.lower is None
        return self.impossible if none else np.asarray(np.asarray(counts.lower) <= 0.0) | self.swallowed  # type: ignore[union-attr]

    @cached_property
    def folded(self) -> tuple[tuple[int, ...], ...]:
        """For each axis the undeclared levels (other, not stated, dropped) that say nothing anywhere in the table."""
        empty, found = self.empty.reshape(self.shape), []
        for at, axis in enumerate(self.axes):
            extra = range(len(axis.declared), len(axis.levels))
            gone = (level for level in extra if not self.drawn_only and empty.take(level, axis=at).all())
            found.append(tuple(gone))
        return tuple(found)

    @cached_property
    def kept(self) -> tuple[tuple[int, ...], ...]:
        """For each axis the levels that are shown."""
        pairs = zip(self.shape, self.folded, strict=True)
        return tuple(tuple(at for at in range(size) if at not in folded) for size, folded in pairs)

    def names(self, cell: int) -> tuple[str, ...]:
        """The labels of a cell on all axes."""
        position = np.unravel_index(cell, self.shape)
        return tuple(words[int(at)] for words, at in zip(self.labels, position, strict=True))

    def cells(self, chosen: Sequence[Sequence[int]]) -> Ints:
        """The numbers of the cells at all combinations of these levels, one list for each axis."""
        numbers: Ints = np.arange(prod(self.shape)).reshape(self.shape)
        return np.asarray(numbers[np.ix_(*map(np.asarray, chosen))].ravel())

    @cached_property
    def column_axis(self) -> int | None:
        """Which axis runs across the page: the last if it has up to 8 levels, else the shortest that has; or none."""
        if len(self.shape) < 2:
            return None
        sizes = [len(levels) for levels in self.kept]
        if sizes[-1] <= 8:
            return len(sizes) - 1
        return sizes.index(min(sizes)) if min(sizes) <= 8 else None

    @cached_property
    def listed(self) -> list[int]:
        """The cells of a list: all that are kept in order, or the 60 largest."""
        cells = self.cells(self.kept)
        return [int(cell) for cell in (cells[_largest(self.size[cells], 60)] if cells.size > 60 else cells)]

    @cached_property
    def lines(self) -> list[list[int]]:
        """The rows of a cross table, each with its cells in the order of the columns: all, or the 40 largest."""
        across = self.column_axis
        if across is None:
            return [[cell] for cell in self.listed]
        down = [levels if at != across else levels[:1] for at, levels in enumerate(self.kept)]
        step = prod(self.shape[across + 1 :])
        first = self.kept[across][0]
        offsets = step * (np.array(self.kept[across], dtype=np.int64) - first)
        found = self.cells(down)[:, None] + offsets
        if len(found) > 40:
            found = found[np.sort(_largest(self.size[found].sum(axis=1), 40))]
        return [[int(cell) for cell in line] for line in found]

    @property
    def shown(self) -> list[int]:
        """All cells on display."""
        return self.listed if self.column_axis is None else [cell for line in self.lines for cell in line]

    @cached_property
    def small(self) -> list[int]:
        """The groups of a conditional table with an interval of 20 points or more, but for those marked unreadable."""
        shares = self.source.products.get("empirical")
        if not self.given or shares is None or shares.lower is None or shares.upper is None:
            return []
        wide = np.subtract(shares.upper, shares.lower).reshape(self.rows, -1).max(axis=1) >= 0.2
        marked = (self.swallowed | self.impossible).reshape(self.rows, -1).all(axis=1)
        sizes, kept = self.shape[: self.given], self.kept[: self.given]
        shown = np.zeros(sizes, dtype=bool)
        shown[np.ix_(*map(np.asarray, kept))] = True
        return [int(row) for row in np.flatnonzero(wide & ~marked & shown.ravel())]

    def group(self, row: int) -> str:
        """What a group of a conditional table is called."""
        return " · ".join(self.names(row * (prod(self.shape) // self.rows))[: self.given])


def _largest(values: Floats, most: int) -> Ints:
    """Where the largest values are, in falling order, of equal ones the first; without sorting all of them."""
    least = np.partition(values, values.size - most)[values.size - most]
    among = np.flatnonzero(values >= least)
    return np.asarray(among[np.argsort(-values[among], kind="stable")][:most])


MOST_DIGITS = 6
"""Decimals at most: a percentage is never printed finer."""

FOR_READERS = 0.5
"""How large a rounding step may be, as a share of the uncertainty: it adds a quarter of the share to the error at most
(half a step). People get one or two digits of it; files have a tenth of this step, one digit more."""

LOPSIDED = 3.0
"""An interval whose longer side is up to this many times its shorter one is printed as ± the longer side."""


def step_of(uncertainty: float, share: float = FOR_READERS) -> float:
    """The largest power of ten that is at most this share of the uncertainty (half the width of an interval).

    >>> step_of(37.0), step_of(0.4), step_of(0.15)
    (10.0, 0.1, 0.01)
    """
    if not (math.isfinite(uncertainty) and uncertainty > 0):
        return 10.0**-MOST_DIGITS
    return 10.0 ** math.floor(math.log10(max(uncertainty * share, 1e-300)) + 1e-9)


def decimals(step: float) -> int:
    """How many decimals show a step.

    >>> decimals(0.01), decimals(10.0)
    (2, 0)
    """
    return min(max(-math.floor(math.log10(step) + 0.5), 0), MOST_DIGITS)


def text_of(value: float, step: float) -> str:
    """A number rounded to a step, with thousands separated and no negative zero.

    >>> text_of(10471.3, 10.0), text_of(0.0421, 0.01), text_of(-0.0001, 0.01)
    ('10,470', '0.04', '0.00')
    """
    nearest = _whole(round, value / step, value, step) + 0.0
    digits = decimals(step)
    said = f"{nearest:,.{digits}f}"
    return said.removeprefix("-") if float(said.replace(",", "")) == 0 else said.replace("-", "−", 1)


def _whole(rounding: Callable[[float], int], steps: float, value: float, step: float) -> float:
    """A number of steps, made whole; a value of more steps than doubles count stays as it is."""
    return rounding(steps) * step if math.isfinite(steps) else value


def outward(lower: float, upper: float, step: float) -> tuple[float, float]:
    """An interval rounded away from its middle, so that it still holds what it held.

    >>> outward(0.123, 0.181, 0.01)
    (0.12, 0.19)
    """
    ends = _whole(math.floor, lower / step + 1e-9, lower, step), _whole(math.ceil, upper / step - 1e-9, upper, step)
    return round(ends[0], 12) + 0.0, round(ends[1], 12) + 0.0


def spread_text(value: float, lower: float, upper: float, step: float, top: float = math.inf) -> str:
    """The uncertainty of a number: ± the longer side of its interval, or the interval where it is lopsided.

    What ± reaches is possible: nothing below zero, and nothing above ``top``.

    >>> spread_text(12.3, 11.9, 12.7, 0.1), spread_text(0.2, 0.0, 0.9, 0.1)
    ('± 0.4', '0.0–0.9')
    """
    short, long = sorted((upper - value, value - lower))
    if long <= LOPSIDED * short + step and value - long >= -step and value + long <= top + step:
        return f"± {text_of(_whole(math.ceil, long / step - 1e-6, long, step), step)}"
    low, high = outward(lower, upper, step)
    return f"{text_of(low, step)}–{text_of(high, step)}"


def for_files(
    values: Floats, lower: Floats | None, upper: Floats | None
) -> tuple[Floats, Floats | None, Floats | None]:
    """Each number rounded to a digit or two of its own uncertainty; intervals outward, so that they hold it.

    >>> [part.tolist() for part in for_files(*(np.array([end]) for end in (0.123456, 0.1201, 0.1299)))]
    [[0.1235], [0.1201], [0.1299]]
    """
    if lower is None or upper is None:
        six = np.array([float(f"{value:.6g}") for value in values.tolist()])
        return six, lower, upper
    half = np.maximum(np.subtract(upper, lower) / 2, 0.0)
    sure = ~(np.isfinite(half) & (half > 0))
    power = np.floor(np.log10(np.where(sure, 1.0, half) * 0.1 * FOR_READERS) + 1e-9)
    power = np.clip(np.where(sure, -float(MOST_DIGITS), power), -15.0, 15.0)  # doubles hold no more digits
    up, down = 10.0 ** np.maximum(power, 0.0), 10.0 ** np.maximum(-power, 0.0)  # a step is up / down: both are exact
    return (
        np.rint(values * down / up) * up / down + 0.0,
        np.floor(lower * down / up + 1e-9) * up / down + 0.0,
        np.ceil(upper * down / up - 1e-9) * up / down + 0.0,
    )


def plus(number: float) -> str:
    """A half width with two digits.

    >>> plus(12.34), plus(0.0734), plus(1234.0)
    ('± 12', '± 0.073', '± 1,234')
    """
    if number >= 100:
        return f"± {number:,.0f}"
    return f"± {number:.2g}"
