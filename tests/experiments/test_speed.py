"""Five ratios of `make bench`, small and with generous limits, so that none of them doubles unseen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks import _rows

ROWS: dict[str, tuple[Callable[[Path], _rows.Actions], int, float]] = {
    "naive Bayes over scikit-learn's, 10⁴ rows": (_rows.naive_bayes("fit", 10**4, tempered=None), 5, 20.0),
    "naive Bayes over scikit-learn's, 10⁵ rows": (_rows.naive_bayes("fit", 10**5, tempered=None), 3, 3.5),
    "a table of a CSV, the whole command over one by hand": (
        _rows.by_hand(20_000, 1, columns=2, size=10, kind="csv"), 3, 5.0),
    "records from a network over a loop in NumPy": (lambda folder: _rows.synthetic(folder, 200_000), 3, 1.2),
    "a release's file, its model and records over its bare JSON": (_rows.kept, 4, 16.0),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_no_ratio_has_doubled(name: str, tmp_path: Path) -> None:
    prepare, rounds, most = ROWS[name]
    actions = prepare(tmp_path)
    spent: dict[str, list[float]] = {each: [] for each in actions}
    for _ in range(rounds):
        for each, action in actions.items():
            began = _rows.processor()
            action()
            spent[each].append(_rows.processor() - began)
    ours, other = (min(found) for found in spent.values())
    assert ours <= most * other, f"{ours:.3f} s over {other:.3f} s"
