"""Jobs ask, promise and refuse what they did, to the word and to twelve digits."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pinned import check, numbers

HERE = Path(__file__).parent


@pytest.mark.parametrize("module", numbers(HERE))
def test_jobs_are_what_they_were(module: str) -> None:
    check(HERE, module)
