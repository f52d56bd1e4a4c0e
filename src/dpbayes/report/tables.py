"""One section a table: bars with intervals, groups, and the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from dpbayes._checks import Floats, Ints
from dpbayes.domain.attribute import Attribute
from dpbayes.domain.markup import Html, joined, table, tag
from dpbayes.release.format import Group, Product, Release, Table
from dpbayes.report import words
from dpbayes.report.figures import Bar, Scale, bar_chart, digits_for, percent

MOST_CELLS = 60
"""A larger table shows its largest cells only."""

FEWEST_GROUPS, MOST_GROUPS = 4, 12
"""How many groups a larger conditional table shows."""

WIDE = 0.2
"""A group with an interval this wide is called small."""

PRODUCTS = {"draw": "draw", "counts": "records", "population": "share in the population"}
"""What the table of numbers lists; the estimated shares of the records are in the figure."""


@dataclass(frozen=True)
class View:
    """A table as rows (the combinations of *given*; one row if there are none) of cells."""

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
    def shape(self) -> tuple[int, ...]:
        """Levels per axis."""
        return tuple(len(axis.levels) for axis in self.axes)

    @cached_property
    def rows(self) -> int:
        """Number of groups."""
        return prod(self.shape[: len(self.source.marginal.given)])

    @property
    def columns(self) -> int:
        """Cells of a group."""
        return prod(self.shape) // self.rows

    @cached_property
    def shares(self) -> Product | None:
        """What is drawn as bars: the estimate of the shares of the records, or the shares of pseudo-records."""
        if self.source.kind not in ("pseudo-records", "shares"):
            return self.source.products.get("empirical")
        values = self.source.values.reshape(self.rows, -1)
        whole = np.maximum(values.sum(axis=1, keepdims=True), 1.0) if self.source.kind == "pseudo-records" else 1.0
        return Product(values=(values / whole).ravel())

    @property
    def size(self) -> Floats:
        """What cells are ranked by."""
        if self.shares is None and self.source.kind == "derived":
            return np.zeros(prod(self.shape))
        shares = self.source.values if self.shares is None else self.shares.values
        return np.asarray(shares, dtype=np.float64)

    def levels(self, cell: int) -> tuple[str, ...]:
        """The levels of a cell on all axes."""
        position = np.unravel_index(cell, self.shape)
        return tuple(axis.levels[int(at)] for axis, at in zip(self.axes, position, strict=True))

    def bars(self, cells: Sequence[int], *, all_labels: bool = True) -> list[Bar]:
        """The bars of these cells."""
        skip = 0 if all_labels else len(self.source.marginal.given)
        shares = self.shares
        if shares is None:
            return []
        return [
            Bar(
                labels=self.levels(cell)[skip:],
                value=shares.values[cell],
                lower=None if shares.lower is None else shares.lower[cell],
                upper=None if shares.upper is None else shares.upper[cell],
            )
            for cell in cells
        ]

    @cached_property
    def small(self) -> list[int]:
        """The groups that have a wide interval."""
        if self.shares is None or self.shares.lower is None or self.shares.upper is None:
            return []
        widths = np.subtract(self.shares.upper, self.shares.lower).reshape(self.rows, -1)
        return [int(row) for row in np.flatnonzero(widths.max(axis=1) >= WIDE)]

    @cached_property
    def shown_rows(self) -> list[int]:
        """The groups on display: all of them in order, or the largest."""
        most = min(max(MOST_CELLS // self.columns, FEWEST_GROUPS), MOST_GROUPS)
        if self.rows * self.columns <= MOST_CELLS or self.rows <= most or not self.source.groups:
            return list(range(min(self.rows, MOST_CELLS)))
        return _largest(np.array([group.records for group in self.source.groups]), most)

    def shown_cells(self, row: int) -> list[int]:
        """The cells of a group on display: all of them in order, or the largest."""
        start, most = row * self.columns, max(MOST_CELLS // len(self.shown_rows), 1)
        if self.columns <= most:
            return list(range(start, start + self.columns))
        return [start + cell for cell in _largest(self.size[start : start + self.columns], most)]

    @cached_property
    def shown(self) -> list[int]:
        """All cells on display."""
        return [cell for row in self.shown_rows for cell in self.shown_cells(row)]


def _largest(sizes: Floats, most: int) -> list[int]:
    order: Ints = np.argsort(-sizes, kind="stable")
    return [int(index) for index in order[:most]]


def section(number: int, release: Release, source: Table) -> Html:
    """Everything about one table."""
    view = View(release, source)
    parts = [tag("h2", f"Table {number}: {words.title(source)}")]
    parts += [tag("p", note) for note in source.notes]
    if (left_out := _left_out(view)) is not None:
        parts.append(tag("p", left_out, class_="note"))
    parts.append(_groups(view) if source.marginal.given else _figure(view))
    parts.append(_numbers(view))
    return tag("section", *parts)


def _left_out(view: View) -> str | None:
    cells, shown = view.rows * view.columns, len(view.shown)
    if shown == cells:
        return None
    what = f"the {shown} largest cells" if view.rows == 1 else f"the largest cells of {len(view.shown_rows)} groups"
    share = f", together {percent(float(view.size[view.shown].sum()), 1)}" if view.rows == 1 and view.shares else ""
    return (
        f"Shown are {what}{share}. {cells - shown:,} of {cells:,} cells are left out here; release.json and the file "
        "of numbers beside this report have all of them."
    )


def _caption(view: View) -> str:
    if view.source.kind == "pseudo-records":
        return "Share of the pseudo-records, in percent."
    if view.source.kind == "shares":
        return "Share of the one draw over the whole domain, in percent."
    return f"Share of the records, in percent: estimate (bar) and {100 * view.level:g} % interval (whisker)."


def _figure(view: View) -> Html:
    bars = view.bars(view.shown)
    if not bars:
        return tag("p", "This table carries no estimate; the released numbers are below.", class_="note")
    names = [axis.name for axis in view.axes]
    return tag(
        "figure",
        tag("figcaption", _caption(view)),
        bar_chart(names, bars, Scale.over(bars), digits=digits_for(bars)),
    )


def _groups(view: View) -> Html:
    all_bars = view.bars(view.shown)
    if not all_bars:
        return _figure(view)
    scale, digits = Scale.over(all_bars), digits_for(all_bars)
    given, groups = view.source.marginal.given, view.source.groups
    figures = []
    for row in view.shown_rows:
        cells = view.shown_cells(row)
        bars = view.bars(cells, all_labels=False)
        levels = view.levels(cells[0])[: len(given)]
        name = ", ".join(f"{attribute}: {level}" for attribute, level in zip(given, levels, strict=True))
        facts = [] if not groups else [_facts(view, row, groups[row])]
        chart = bar_chart(view.source.marginal.of, bars, scale, digits=digits)
        figures.append(tag("figure", tag("figcaption", tag("strong", name, dir="auto"), *facts), chart))
    return joined([tag("p", _caption(view)), *_warnings(view), tag("div", *figures, class_="multiples")])


def _facts(view: View, row: int, group: Group) -> Html:
    of = "of a draw is prior" if view.source.kind == "gammas" else "of the variance is noise"
    fact = tag("span", f"about {group.records:,.0f} records; {percent(group.prior_share, 0)} {of}", class_="facts")
    return joined([fact, tag("span", "small group", class_="flag")]) if row in view.small else fact


def _warnings(view: View) -> list[Html]:
    """The warning of [tCDP] about minorities, where it applies."""
    small = view.small
    said = []
    if small:
        names = [", ".join(view.levels(row * view.columns)[: len(view.source.marginal.given)]) for row in small[:8]]
        more = f" and {len(small) - 8} more" if len(small) > 8 else ""
        said.append(
            f"Small groups: {'; '.join(names)}{more}. Noise is as large for few records as for many, and here it "
            "leaves intervals of twenty points and more. Do not read a difference, or its absence, as a fact about a "
            "minority."
        )
    prior = [group for group in view.source.groups if group.prior_share >= 0.5]
    if prior and view.source.kind == "gammas":
        said.append(
            f"In {len(prior)} of {view.rows} groups more than half of the draw is prior. Draws of such groups look "
            "more even than the groups are. Use the estimate, which corrects for it, and its intervals."
        )
    return [tag("p", sentence, class_="warning", role="note") for sentence in said]


def _numbers(view: View) -> Html:
    source, digits = view.source, digits_for(view.bars(view.shown))
    products = {name: source.products[name] for name in PRODUCTS if name in source.products}
    drawn = [] if source.kind == "derived" else [words.VALUES[source.kind]]
    columns = [*(axis.name for axis in view.axes), *drawn]
    for name, product in products.items():
        columns.append(PRODUCTS[name])
        if product.lower is not None and product.upper is not None:
            columns.append("interval")
    rows = [
        [
            *view.levels(cell),
            *([f"{source.values[cell]:,.6g}"] if drawn else []),
            *(text for name, product in products.items() for text in _cell(name, product, cell, digits)),
        ]
        for cell in view.shown
    ]
    caption = f"Numbers, with {100 * view.level:g} % intervals" if "interval" in columns else "Numbers"
    return table(caption, columns, rows, heads=len(view.axes), class_="numbers")


def _cell(name: str, product: Product, cell: int, digits: int) -> list[str]:
    def text(value: float) -> str:
        return f"{value:,.0f}" if name == "counts" else percent(value, digits)

    said = [text(product.values[cell])]
    if product.lower is not None and product.upper is not None:
        said.append(f"{text(product.lower[cell]).removesuffix(' %')} – {text(product.upper[cell]).removesuffix(' %')}")
    return said
