"""Tables as readers meet them: sections of the report, lines of a terminal, and files of numbers.

In the report one attribute has bars, and more have a shaded cross table. A file for people has readable labels, digits
that the noise supports, and no cell that a program would run; Parquet keeps the levels of the schema and every digit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpbayes.base.display import Html, plural, tag
from dpbayes.plot.canvas import Bar, Scale, bar_chart, shade
from dpbayes.plot.pictures import bar_of, densities
from dpbayes.release import numbers
from dpbayes.release.estimates import TableView
from dpbayes.release.format import WHOLE, Product, Release, Table
from dpbayes.schema.labels import labels
from dpbayes.words import report as words
from dpbayes.words.promise import warning
from dpbayes.words.view import View, for_files, spread_text, step_of, text_of

Numbers = Literal["csv", "parquet"]

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a text starts with that spreadsheets take for a formula."""

DESCRIPTIONS = {
    "released": "What was drawn and published; everything else is computed from it.",
    "released_parameter": "A parameter of the posterior as it was released, with the noise in it: no estimate.",
    "draw": "One draw of the shares from the posterior.",
    "counts": "Estimated number of records.",
    "empirical": "Estimated share of these records; in a conditional table, within the group.",
    "population": "Estimated share of the population that these records come from; in a conditional table, within the "
    "group.",
}


def section(number: int, release: Release, source: Table, *, file: str | None = None) -> Html:
    """Everything that a reader of the report sees of one table."""
    view = View(release, source)
    parts = [tag("h2", f"Table {number}. {words.title(source.marginal)}", dir="auto")]
    parts += [tag("p", warning(note), class_="warning") for note in source.notes]
    if view.shares is None and not len(source.values):
        parts.append(tag("p", words.caption(view), class_="note"))
        return tag("section", *parts, id=f"table-{number}", class_="table")
    parts.append(_list(view) if view.column_axis is None else _cross(view, view.column_axis))
    if source.kind == "parameters" and source.products:
        parts.append(densities(TableView(release, source)).figure)
    notes = [*words.footnotes(view), *_left_out(view, file)]
    if notes:
        parts.append(tag("p", " ".join(notes), class_="note"))
    parts += [tag("p", sentence, class_="warning", role="note") for sentence in words.minorities(view)]
    return tag("section", *parts, id=f"table-{number}", class_="table")


def _step(view: View, product: Product, cells: list[int], scale: float = 1.0) -> float:
    """One rounding step for all cells of a table, from the typical uncertainty."""
    if product.lower is None or product.upper is None:
        return 0.1 if scale > 1 else 1.0
    halves = scale * np.subtract(np.asarray(product.upper)[cells], np.asarray(product.lower)[cells]) / 2
    told = halves[(halves > 0) & ~view.swallowed[cells]]
    step = step_of(float(np.median(told)) if told.size else 1.0)
    return min(step, 1.0) if scale > 1 else max(step, 1.0)


def _number(view: View, product: Product, cell: int, step: float, scale: float = 1.0) -> tuple[str, str]:
    """A number and its uncertainty; one that noise swallows is said to be below the end of its interval."""
    value = scale * float(product.values[cell])
    if view.impossible[cell]:
        return words.IMPOSSIBLE, ""
    if product.lower is None or product.upper is None:
        return text_of(value, step), ""
    lower, upper = scale * float(product.lower[cell]), scale * float(product.upper[cell])
    if view.swallowed[cell]:
        if view.given:
            return words.SWALLOWED, ""
        return f"< {text_of(math.ceil(upper / step - 1e-9) * step, step)}{words.SWALLOWED}", ""
    top = 100.0 if scale > 1 else math.inf
    return text_of(value, step), spread_text(value, lower, upper, step, top)


def lines(view: View, most: int) -> tuple[list[str], list[tuple[str, ...]]]:
    """The columns and the first rows of a table as texts, for terminals: labels, percent, uncertainty."""
    shares, cells = view.shares, view.cells(view.kept)[:most].tolist()
    names = [" · ".join(view.names(cell)) for cell in cells]
    if shares is None and not len(view.source.values):
        return [], [(name,) for name in names]
    if shares is None:
        return [view.source.drawn_as.replace("_", " ")], [
            (name, f"{view.source.values[cell]:g}") for name, cell in zip(names, cells, strict=True)
        ]
    step = _step(view, shares, cells, 100.0)
    numbers = [_number(view, shares, cell, step, 100.0) for cell in cells]
    if not view.halves.size:
        of = "% of one draw" if view.drawn_only else "%"
        return [of], [(name, number[0]) for name, number in zip(names, numbers, strict=True)]
    columns = ["% within the group" if view.given else "% of the records", f"{100 * view.level:g} % interval"]
    found: list[tuple[str, ...]] = [(name, *each) for name, each in zip(names, numbers, strict=True)]
    if view.source.kind != "parameters":
        return columns, found
    drawn = [f"{view.source.values[cell]:,.6g}" for cell in cells]
    return [*columns, words.VALUES["parameters"]], [(*line, each) for line, each in zip(found, drawn, strict=True)]


def _list(view: View) -> Html:
    cells = view.listed
    if view.shares is None:
        drawn = view.size
        bars = [Bar(labels=view.names(cell), value=0.0, texts=(f"{drawn[cell]:,.6g}",)) for cell in cells]
        return tag("div", bar_chart(words.caption(view), view.source.marginal.names, ("value",), bars, Scale(0.25, 4)))
    shares, counts, parameters = view.shares, None if view.given else view.counts, view.source.kind == "parameters"
    columns = ["%", "±"] if view.halves.size else ["%"]
    step, records = _step(view, shares, cells, 100.0), _step(view, counts, cells) if counts is not None else 1.0
    columns += ["records", "±"] if counts is not None else []
    columns += [words.VALUES["parameters"]] if parameters else []
    bars = []
    for cell in cells:
        texts = _number(view, shares, cell, step, 100.0)[: 2 if view.halves.size else 1]
        texts += _number(view, counts, cell, records) if counts is not None else ()
        texts += (f"{view.source.values[cell]:,.6g}",) if parameters else ()
        bars.append(bar_of(view, shares, cell, texts))
    chart = bar_chart(words.caption(view), view.source.marginal.names, columns, bars, Scale.over(bars))
    return tag("div", chart, class_="scroll", tabindex=0, role="region", aria_label=words.title(view.source.marginal))


def _cross(view: View, across: int) -> Html:
    names = view.source.marginal.names
    down = [at for at in range(len(names)) if at != across]
    columns = [view.labels[across][level] for level in view.kept[across]]
    totals = view.counts is not None and not (view.given and across < view.given)
    top = [
        tag("th", " × ".join(names[at] for at in down), scope="col", rowspan=2, class_="name"),
        tag("th", names[across], scope="colgroup", colspan=len(columns)),
    ]
    if totals:
        top.append(tag("th", "records, about", scope="col", rowspan=2))
    head = tag("thead", tag("tr", *top), tag("tr", *(tag("th", label, scope="col", dir="auto") for label in columns)))
    bodies = _bodies(view, down, len(columns) + 1 + totals, totals)
    table = tag("table", tag("caption", words.caption(view)), head, *bodies, class_="cross")
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=words.title(view.source.marginal))


def _bodies(view: View, down: list[int], width: int, totals: bool) -> list[Html]:
    """Rows; with several attributes down the page, grouped by the first."""
    product = view.shares
    scale = 1.0 if product is None else 100.0
    shown = Product(values=view.size) if product is None else product
    step = 1e-3 if product is None and view.source.kind == "gammas" else _step(view, shown, view.shown, scale)
    told = [float(shown.values[cell]) for cell in view.shown if not view.swallowed[cell]]
    largest = max(told, default=0.0)

    def row(line: list[int]) -> Html:
        labels = view.names(line[0])
        name = ", ".join(labels[at] for at in (down[1:] or down))
        cells = [tag("th", name, scope="row", dir="auto")]
        for cell in line:
            text, spread = _number(view, shown, cell, step, scale)
            small = [tag("small", spread)] if spread else []
            dark = "s0" if view.swallowed[cell] else shade(float(shown.values[cell]), largest)
            cells.append(tag("td", text, *small, class_=dark))
        if totals:
            cells.append(tag("td", _total(view, line), class_="total"))
        return tag("tr", *cells)

    if len(down) < 2:
        return [tag("tbody", *(row(line) for line in view.lines))]
    bodies = []
    for first, lines in groupby(view.lines, key=lambda line: view.names(line[0])[down[0]]):
        title = f"{view.source.marginal.names[down[0]]}: {first}"
        opening = tag("tr", tag("th", title, scope="rowgroup", colspan=width, dir="auto"))
        bodies.append(tag("tbody", opening, *(row(line) for line in lines)))
    return bodies


def _total(view: View, line: list[int]) -> str:
    """The records of a row: its estimates added up, rounded to what their noise supports together."""
    counts = view.counts
    if counts is None or counts.lower is None or counts.upper is None:
        return ""
    half = float(np.sqrt(np.square(np.subtract(counts.upper, counts.lower)[line] / 2).sum()))
    total = float(counts.values[line].sum())
    return words.SWALLOWED if total <= half else text_of(total, max(step_of(half), 1.0))


def _left_out(view: View, file: str | None) -> list[str]:
    cells, shown = math.prod(len(levels) for levels in view.kept), len(view.shown)
    if shown == cells:
        return []
    what = f"the {shown} largest cells" if view.column_axis is None else f"the {len(view.lines)} largest rows"
    share = ""
    if view.shares is not None and not view.given:
        share = f", together {text_of(100.0 * float(view.shares.values[view.shown].sum()), 0.1)} %"
    where = f"the file {file}" if file else "the file of numbers"
    return [f"Shown are {what}{share}. {plural(cells - shown, 'cell')} of {cells:,} are left out; see {where}."]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumn:
    """One column of a file of numbers."""

    name: str
    kind: Literal["text", "integer", "number"]
    cells: np.ndarray
    """Numbers, or places in ``words``."""
    description: str
    words: tuple[str, ...] = ()
    """What the levels of a column of texts are called."""

    @property
    def plain(self) -> list[Any]:
        """The cells as Python has them."""
        listed = self.cells.tolist()
        return [self.words[at] for at in listed] if self.kind == "text" else listed


def file_columns(release: Release, table: Table) -> list[FileColumn]:
    """The columns of a table for people, one row per cell: labels, what was released, and estimates with intervals."""
    axes = release.axes(table)
    shape = tuple(len(axis.levels) for axis in axes)
    positions = np.unravel_index(np.arange(math.prod(shape)), shape)
    found = []
    for axis, position in zip(axes, positions, strict=True):
        words = tuple(defused(word) for word in labels(axis))
        role = "Which group: a level of" if axis.name in table.marginal.given else "A level of"
        said = f"{role} {axis.name}."
        found.append(FileColumn(name=defused(axis.name), kind="text", cells=position, description=said, words=words))
    taken = [axis.name for axis in axes]
    level = f"{100 * release.level:g} % interval"

    def add(name: str, cells: np.ndarray, description: str, *, whole: bool = False) -> None:
        free = numbers.free_name(name, taken)
        taken.append(free)
        typed = cells.astype(np.int64 if whole else np.float64)
        found.append(FileColumn(name=free, kind="integer" if whole else "number", cells=typed, description=description))

    if table.kind != "derived":
        add(table.drawn_as, table.values, DESCRIPTIONS[table.drawn_as], whole=table.kind in WHOLE)
    for name, product in table.products.items():
        values, lower, upper = for_files(product.values, product.lower, product.upper)
        said = " ".join(filter(None, (DESCRIPTIONS.get(name, name), product.note)))
        add(name, values, said)
        if lower is not None and upper is not None:
            add(f"{name}_lower", lower, f"Lower end of the {level} of {name}.")
            add(f"{name}_upper", upper, f"Upper end of the {level} of {name}.")
    return found


def defused(text: str) -> str:
    """A text that spreadsheets show and do not run: one that starts like a formula gets an apostrophe first.

    >>> defused("=1+1"), defused("65 and over")
    ("'=1+1", '65 and over')
    """
    return f"'{text}" if text.startswith(FORMULA) else text


def write_numbers(release: Release, table: Table, path: Path, kind: Numbers) -> None:
    """One file of numbers: CSV for people, Parquet for programs."""
    import pyarrow

    if kind == "parquet":
        from pyarrow import parquet

        parquet.write_table(TableView(release, table).to_arrow(), path)
        return
    from pyarrow import csv

    found = file_columns(release, table)
    parts = [
        numbers.texts([numbers.harmless(word) for word in each.words], each.cells)
        if each.words
        else numbers.column(each.cells)
        for each in found
    ]
    csv.write_csv(pyarrow.table(parts, names=[numbers.harmless(each.name) for each in found]), path)
