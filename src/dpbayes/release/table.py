"""One table of a release, for people and for other libraries: frames, pictures, a short print."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbayes.base import doors
from dpbayes.base.display import embedded
from dpbayes.base.doors import Chart
from dpbayes.base.errors import MissingExtra, ReleaseError
from dpbayes.inference.released import Reading
from dpbayes.release import numbers
from dpbayes.release.format import WHOLE, Product, Release, Table
from dpbayes.release.posterior import released
from dpbayes.schema.marginal import Marginal

if TYPE_CHECKING:
    import pyarrow

SHOWN = 12

UNITS = {"empirical": "% of the records", "population": "% of the population", "counts": "records"}
"""Which numbers of a table are shown first, and what they count."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class TableView:
    """A table with its estimates: ``release["income|sex"]``."""

    release: Release
    table: Table

    @property
    def marginal(self) -> Marginal:
        """Which table it is."""
        return self.table.marginal

    @property
    def reading(self) -> Reading:
        """The law of the counts and shares behind a released posterior, with the noise of its mechanism."""
        if self.table.kind != "parameters":
            raise ReleaseError(f"Release: {self.marginal} is no released posterior. Read it by its estimates.")
        return released(self.release, self.table)

    def to_arrow(self) -> pyarrow.Table:
        """One row per cell: its levels, what was released, and every product with the ends of its intervals.

        A column of numbers whose name is an attribute's already gets an underscore.
        """
        import pyarrow

        columns: dict[str, Any] = {}
        axes = self.release.axes(self.table)
        positions = np.unravel_index(np.arange(self._cells), tuple(len(axis.levels) for axis in axes))
        for axis, position in zip(axes, positions, strict=True):
            columns[axis.name] = numbers.coded(position, axis.levels)
        for name, values in self._numbers().items():
            columns[numbers.free_name(name, columns)] = numbers.column(values)
        return pyarrow.table(columns)

    @property
    def _cells(self) -> int:
        return self.marginal.size(self.release.schema)

    def _numbers(self) -> dict[str, np.ndarray]:
        drawn = self.table.values
        listed = {self.table.drawn_as: drawn.astype(np.int64) if self.table.kind in WHOLE else drawn}
        listed = {} if self.table.kind == "derived" else listed
        for name, made in self.table.products.items():
            parts = {name: made.values, f"{name}_lower": made.lower, f"{name}_upper": made.upper}
            listed |= {part: values for part, values in parts.items() if values is not None}
        return listed

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        try:
            import pandas  # noqa: F401 - pyarrow needs it
        except ImportError:
            raise MissingExtra("Release: pandas is not installed. Install it, or use to_arrow().") from None
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The same as a polars frame."""
        try:
            import polars
        except ImportError:
            raise MissingExtra("Release: polars is not installed. Install it, or use to_arrow().") from None
        return polars.from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Any library that reads Arrow streams can read the table."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def plot(self, path: str | Path | None = None) -> Chart:
        """Shares with their intervals, or densities of a released posterior, as a picture that notebooks show.

        It is written to ``path`` if there is one.
        """
        return doors.picture("densities" if self.table.kind == "parameters" else "shares", self, path=path)

    def __repr__(self) -> str:
        name = next((each for each in UNITS if each in self.table.products), None)
        head = f"{self.marginal}, {UNITS[name] if name else self.table.kind}"
        if name is None and self.table.kind == "derived":
            return head
        made = self.table.products[name] if name else Product(values=self.table.values)
        scale, given = (1.0 if name in (None, "counts") else 100.0), len(self.marginal.given)
        cells: dict[str, list[str]] = {}
        levels = product(*(axis.levels for axis in self.release.axes(self.table)))
        for index, cell in zip(range(min(SHOWN, self._cells)), levels, strict=False):
            said = f"{' · '.join(cell[given:])} {_with_half(made, index, scale)}"
            cells.setdefault(" · ".join(cell[:given]), []).append(said)
        rows = [f"{row}: {', '.join(listed)}" if row else ", ".join(listed) for row, listed in cells.items()]
        more = f"; … and {self._cells - SHOWN:,} more cells" if self._cells > SHOWN else ""
        level = f" ({100 * self.release.level:g} %)" if made.lower is not None else ""
        return f"{head}: {'; '.join(rows)}{more}{level}"

    def _repr_html_(self) -> str:
        return embedded(doors.call("section", 1, self.release, self.table))


def _with_half(made: Product, index: int, scale: float) -> str:
    """A number with half its interval, as many digits as that has."""
    value = scale * made.values[index]
    if made.lower is None or made.upper is None:
        return f"{value:.4g}"
    half = max(value - scale * made.lower[index], scale * made.upper[index] - value)
    digits = max(0, -math.floor(math.log10(half))) if half > 0 else 0
    return f"{value:.{digits}f} ± {half:.{digits}f}"
