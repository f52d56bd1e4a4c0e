"""One table of a release, for people and for other libraries: frames, pictures, a short print."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbayes.base.display import Chart, door, embed, picture
from dpbayes.base.errors import MissingExtra, ReleaseError
from dpbayes.inference.released import Reading
from dpbayes.release import numbers
from dpbayes.release.format import WHOLE, Release, Table
from dpbayes.release.posterior import released
from dpbayes.schema.marginal import Marginal

if TYPE_CHECKING:
    import pyarrow

SHOWN = 12


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
        return picture("densities" if self.table.kind == "parameters" else "shares", self, path=path)

    def __repr__(self) -> str:
        name = "empirical" if "empirical" in self.table.products else next(iter(self.table.products), None)
        levels = product(*(axis.levels for axis in self.release.axes(self.table)))
        lines = [f"{self.marginal}: {name or self.table.kind}, {self._cells:,} cells"]
        made = self.table.products.get(name) if name else None
        if made is None and self.table.kind == "derived":
            return lines[0]
        for index, cell in zip(range(min(SHOWN, self._cells)), levels, strict=False):
            value = self.table.values[index] if made is None else made.values[index]
            ends = "" if made is None or made.lower is None else f"  [{made.lower[index]:.4f}, {made.upper[index]:.4f}]"  # type: ignore[index]
            lines.append(f"  {' · '.join(cell)}: {value:.4g}{ends}")
        if self._cells > SHOWN:
            lines.append(f"  … and {self._cells - SHOWN:,} more cells")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return embed(door("section", 1, self.release, self.table))
