"""Which pairs of attributes can be trusted in synthetic records: a heat map for people. Made from the release, free."""

from __future__ import annotations

from pathlib import Path

from dpbayes.domain.markup import Html, joined, tag
from dpbayes.models.base import Published
from dpbayes.models.fidelity import expected
from dpbayes.release.format import Release
from dpbayes.report.page import page, title

TRUSTED, ROUGH = 0.05, 0.2
"""Total variation by noise alone, up to which a pair is called trustworthy, or rough."""

MOST_SHOWN = 60
"""Attributes of the heat map."""


def fidelity_html(release: Release) -> str:
    """A page without scripts: the distance that noise alone makes in every pair, and what that means."""
    published = Published.of(release)
    distances = expected(published)
    names = [name for name in release.schema.names if any(name in pair for pair in distances)][:MOST_SHOWN]
    body = [tag("h1", f"{title(release)}: what synthetic records can be trusted with"), *_summary(distances)]
    if names:
        body += [tag("h2", "Pairs of attributes"), _map(names, distances)]
    body += [tag("h2", "The promise"), tag("p", release.statement())]
    return page(f"{title(release)}: fidelity", joined(body))


def write_fidelity(release: Release, path: str | Path) -> None:
    """Write the page."""
    Path(path).write_text(fidelity_html(release), encoding="utf-8")


def _summary(distances: dict[tuple[str, str], float]) -> list[Html]:
    if not distances:
        said = (
            "No pair of attributes was measured, because the budget would have drowned it in noise. Each column of the "
            "records follows its own distribution, and no dependence between columns can be trusted."
        )
        return [tag("p", said)]
    good = sum(value <= TRUSTED for value in distances.values())
    rough = sum(TRUSTED < value <= ROUGH for value in distances.values())
    worst = max(distances, key=lambda pair: distances[pair])
    return [
        tag(
            "p",
            f"{good} of {len(distances)} pairs are trustworthy: noise moves less than {TRUSTED:.0%} of the records to "
            f"another cell. {rough} are rough, up to {ROUGH:.0%}; of the others the records show strong dependence at "
            f"most. The least certain pair is {worst[0]} with {worst[1]}.",
        ),
        tag(
            "p",
            "The numbers are predicted from the published noise, not measured against the private table. They are for "
            "each measured pair alone; the model joins all pairs and is usually nearer. Tables of three attributes or "
            "more were not measured: what the records say about them is the model's guess.",
        ),
    ]


def _map(names: list[str], distances: dict[tuple[str, str], float]) -> Html:
    head = tag("tr", tag("th", ""), *(tag("th", name, scope="col") for name in names))
    rows = []
    for one in names:
        cells = []
        for other in names:
            value = distances.get((one, other), distances.get((other, one)))
            cells.append(tag("td", "") if value is None else _cell(value))
        rows.append(tag("tr", tag("th", one, scope="row"), *cells))
    note = "Total variation that noise alone makes; — is above 1. Darker is worse."
    return tag("table", tag("caption", note), tag("thead", head), tag("tbody", *rows))


def _cell(value: float) -> Html:
    shade = min(value / ROUGH, 1.0)
    text = "—" if value > 1.0 else f"{value:.2f}"
    return tag("td", text, style=f"background: rgba(230, 159, 0, {shade:.2f}); text-align: right")
