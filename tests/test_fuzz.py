"""No reader meets an input that it does not read or refuse in a sentence."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.fuzz import fuzz, unexpected


def test_a_damaged_file_is_read_or_refused_whatever_reads_it() -> None:
    told = fuzz(600, seed=5, whole=False)
    assert unexpected(told) == {}
    assert sum(told.values(), Counter())["refused"] > 200


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_damaged_files_are_read_or_refused() -> None:
    assert unexpected(fuzz(100_000, seed=6)) == {}
