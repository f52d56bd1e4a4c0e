"""The doctor: ready where everything works, and not where the noise is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from tests.commands import dpbayes

from dpbayes.mechanisms import noise
from dpbayes.mechanisms.exact import Law


def test_an_installation_that_draws_right_is_ready() -> None:
    found = dpbayes("doctor", "--json").result
    assert found["ready"]
    checks = {each["check"]: each for each in found["checks"]}
    assert checks["integer noise"]["ok"]
    assert "opendp" not in checks


@pytest.mark.parametrize("as_json", [True, False])
def test_an_installation_with_the_bias_of_opendp_0_14_1_is_not_ready(as_json: bool, monkeypatch) -> None:
    right = noise.draw

    def biased(law: Law, cells: int, rng) -> np.ndarray:
        return right(Law.laplace(1 / 0.347) if law == Law.laplace(5) and rng is None else law, cells, rng)

    monkeypatch.setattr(noise, "draw", biased)
    done = dpbayes("doctor", *["--json"] * as_json)
    assert done.code == 1
    assert "Do not" in done.out
    if as_json:
        assert not done.result["ready"]
    else:
        assert "Not ready" in done.out
