"""The estimator of 0.1.0, a baseline of the benchmarks: it still gives the numbers that files of that version state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.first.file import first_estimates

from dpbayes import Release

FILES = Path(__file__).parents[1] / "files" / "0.1.0"


@pytest.mark.parametrize("name", ["gaussian", "gammas-small"])
def test_the_baseline_reproduces_the_estimates_of_its_version(name: str) -> None:
    release = Release.load(FILES / f"{name}.json")
    compared = 0
    for table in release.tables:
        again = first_estimates(release, table)
        for product, stated in table.products.items():
            if product == "draw":
                continue
            for part in ("values", "lower", "upper"):
                assert getattr(again[product], part) == pytest.approx(getattr(stated, part), rel=1e-6, abs=1e-6)
                compared += np.size(getattr(stated, part))
    assert compared > 0
