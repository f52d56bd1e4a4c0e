"""Covering designs: few rows in which every two levels of different factors meet, and chosen triples as well."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

TRIES = 12
"""Rows that are tried before the one with most new meetings is taken."""


def covering(
    factors: Mapping[str, Sequence[Any]],
    *,
    triples: Iterable[tuple[str, str, str]] = (),
    barred: Callable[[Mapping[str, Any]], bool] = lambda row: False,
    seed: int = 7,
) -> list[dict[str, Any]]:
    """Rows with a level for each factor: all pairs occur, and all levels of the ``triples``. The same every time.

    What is ``barred`` occurs in no row; it is asked about parts of rows too.
    """
    rng, names = random.Random(seed), list(factors)
    groups = [*combinations(names, min(2, len(names))), *triples]

    def excluded(row: Mapping[str, int]) -> bool:
        return barred({name: factors[name][level] for name, level in row.items()})

    missing = {
        (group, levels)
        for group in groups
        for levels in product(*(range(len(factors[name])) for name in group))
        if not excluded(dict(zip(group, levels, strict=True)))
    }
    of = {name: [group for group in groups if name in group] for name in names}
    rows = []
    while missing:
        start = min(missing)  # so that every row meets something new
        best: tuple[int, dict[str, int]] = (-1, {})
        for _ in range(TRIES):
            row = dict(zip(start[0], start[1], strict=True))
            for name in rng.sample(names, len(names)):
                if name not in row:
                    known = [group for group in of[name] if all(other in row or other == name for other in group)]
                    gain = {
                        level: sum(
                            (group, tuple({**row, name: level}[each] for each in group)) in missing for group in known
                        )
                        for level in range(len(factors[name]))
                        if not excluded({**row, name: level})
                    }
                    most = max(gain.values())
                    row[name] = rng.choice([level for level, found in gain.items() if found == most])
            new = sum((group, tuple(row[each] for each in group)) in missing for group in groups)
            best = max(best, (new, row), key=lambda each: each[0])
        rows.append(best[1])
        missing -= {(group, tuple(best[1][each] for each in group)) for group in groups}
    return [{name: factors[name][row[name]] for name in names} for row in rows]


def picked(rows: Sequence[Mapping[str, Any]], seed: int = 7) -> list[Mapping[str, Any]]:
    """A few of these rows in which all pairs of levels meet that meet in any of them."""
    listed = random.Random(seed).sample(list(rows), len(rows))
    met = [
        {(pair, repr([row[name] for name in pair])) for pair in combinations(row, min(2, len(row)))} for row in listed
    ]
    missing, found = set().union(*met), []
    while missing:
        best = max(range(len(met)), key=lambda at: len(met[at] & missing))
        found.append(listed[best])
        missing -= met[best]
    return found
