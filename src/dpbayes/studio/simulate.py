"""Made-up rows for a preview: from the schema and public numbers only. No private row has any part in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from dpbayes.curator import Curator
from dpbayes.domain.attribute import DROPPED, MISSING, OTHER, Attribute
from dpbayes.domain.schema import Schema
from dpbayes.jobs.request import Request
from dpbayes.ledger.account import Account
from dpbayes.release.format import Release
from dpbayes.release.products import completed

SEED = 4
"""Every preview of a request looks the same: nobody takes its numbers for news."""

MOST_ROWS = 100_000
MOST_TABLES = 20
"""Of more tables the first are shown, with the noise that all of them have."""

FALLBACK = 10_000
"""Rows, where nobody declares or guesses how many there are."""


def simulated(schema: Schema, request: Request, account: Account | None) -> Release:
    """What the release would be like on made-up rows; it is seeded, so it says of itself that it is not private."""
    job, target = request.job(schema), request.guarantee()
    marginals = request.tables_of(schema).marginals
    names = sorted({name for marginal in marginals for name in marginal.names}, key=schema.names.index)
    many = min(schema.records or request.expected_records or FALLBACK, MOST_ROWS)
    size = many if request.product == "posterior" else None
    public = replace(
        schema.project(names), person=None, unit=replace(schema.unit, person=None), records=size, margins=()
    )
    curator = Curator(rows(public, names, many), public, seed=SEED)
    rule = target if account is None else account.priced(target)
    made = curator.release(job, rule, about=request.about, estimates=False)
    return completed(replace(made, promise=target, tables=made.tables[:MOST_TABLES]))


def rows(schema: Schema, names: Sequence[str], many: int) -> pa.Table:
    """Independent columns, each with shares of its own that no table has a part in."""
    rng = np.random.default_rng(SEED)
    return pa.table({name: _column(schema[name], many, rng) for name in names})


def _column(attribute: Attribute, many: int, rng: np.random.Generator) -> pa.Array:
    levels = list(attribute.levels)
    weights = rng.gamma(2.0, size=len(levels))
    for place, level in enumerate(levels):
        if level in (OTHER, MISSING, DROPPED) and level not in attribute.declared:
            weights[place] = 0.02 * weights.sum() / len(levels)
    chosen = rng.choice(len(levels), size=many, p=weights / weights.sum())
    values = [_value(attribute, place, level) for place, level in enumerate(levels)]
    return pa.array(values, pa.string()).take(pa.array(chosen))


def _value(attribute: Attribute, place: int, level: str) -> str | None:
    """A value that the schema counts at this level."""
    if attribute.edges and place < len(attribute.edges) - 1:
        low, high = attribute.edges[place], attribute.edges[place + 1]
        return repr(float(low if np.isfinite(low) else high - 1.0 if np.isfinite(high) else 0.0))
    if level in attribute.declared:
        return level
    return None if level == MISSING else "\u2060not listed"
