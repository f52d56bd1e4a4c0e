"""The attacks find planted faults, and their arithmetic agrees with brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from audit.__main__ import PARTS
from audit.result import Effort

from audit import adaptive, floats, mechanisms
from dpbayes import Gaussian, Laplace
from dpbayes.mechanisms.kinds import KINDS

EFFORT = Effort(draws=20_000, pairs=200, releases=10, rows=1000, thorough=False)


def test_every_mechanism_has_an_attack_or_a_reason_why_it_needs_none() -> None:
    assert mechanisms.unaudited() == set()
    assert not mechanisms.AUDITS.keys() & mechanisms.EXEMPT.keys()
    assert all(reason for reason in mechanisms.EXEMPT.values())
    assert mechanisms.EXEMPT.keys() | mechanisms.AUDITS.keys() == KINDS.keys()


def test_a_mechanism_without_an_attack_fails_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "novel-1", "nowhere:Novel")
    monkeypatch.setattr(mechanisms, "AUDITS", {})
    assert mechanisms.unaudited() >= {"novel-1"}
    assert [row.attack for row in mechanisms.run(EFFORT) if "novel-1" in row.attack and not row.holds] == ["novel-1"]


@pytest.mark.parametrize(("kind", "field"), [(Gaussian, "sigma"), (Laplace, "scale")])
def test_noise_that_is_too_small_is_found(monkeypatch: pytest.MonkeyPatch, kind: type, field: str) -> None:
    def quieter(self: object, counts: object, rng: object = None) -> object:
        less = kind(**{field: 0.6 * getattr(self, field), "unit": self.unit})  # type: ignore[attr-defined]
        return honest(less, counts, np.random.default_rng(7))

    honest = kind.draw  # type: ignore[attr-defined]
    name = f"{kind.__name__.lower()}-1"
    assert all(row.holds for row in mechanisms.AUDITS[name](EFFORT))
    monkeypatch.setattr(kind, "draw", quieter)
    assert not any(row.holds for row in mechanisms.AUDITS[name](EFFORT))


def test_the_lattice_holds_every_value_that_numpy_draws() -> None:
    rng = np.random.default_rng(8)
    for shape, grid in ((2.8e18, 1024.0), (2.8e16, 128.0), (3e15, 64.0)):
        drawn = rng.standard_gamma(np.full(500, shape))
        values = np.rint(drawn / grid) * grid
        held = floats.lattice_points(values, np.full(500, grid), shape)
        assert (held >= 1).all()
        below = values < shape
        expected = np.where(below, 2.0, 1.0) * floats.points_per_cell(np.array([shape]), np.array([grid]))
        assert held[below].mean() > 1.2 * held[~below].mean()
        assert held.mean() >= 0.9 * expected.mean()


def test_the_grid_is_read_off_the_values() -> None:
    rng = np.random.default_rng(9)
    for grid in (2.0**-20, 0.125, 1024.0):
        values = np.rint(rng.uniform(5_000.0, 8_000.0, 500)) * grid
        assert set(floats.steps(values)) == {grid}


def test_the_loss_of_the_game_is_that_of_the_noise() -> None:
    """E[(1 − e^{ε−L})₊] against Σ(p − e^ε·q)₊, also below zero."""
    sigma, scale = 3.0, 4.0
    k = np.arange(-400, 401)
    for made, weights in (
        (adaptive.gaussian(sigma), lambda x: np.exp(-(x**2) / (2 * sigma**2))),
        (adaptive.response(1.0 / scale), lambda x: np.exp(-np.abs(x) / scale)),
    ):
        p, q = weights(k), weights(k + 1)
        p, q = p / p.sum(), q / q.sum()
        for epsilon in (-0.3, 0.0, 0.1, 0.5):
            truth = np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
            assert made.delta(epsilon) == pytest.approx(truth, rel=1e-9, abs=1e-15)


def test_a_statement_with_a_delta_is_betrayed_with_that_chance() -> None:
    assert adaptive.response(0.5, 0.01).delta(0.5) == pytest.approx(0.01)
    assert adaptive.NOTHING.delta(0.1) == 0.0


def test_a_game_of_no_rounds_reaches_the_limit_and_no_more() -> None:
    assert adaptive.reached(0, 0.1) <= adaptive.LIMIT.delta * (1 + 1e-9)


def test_every_part_can_be_run() -> None:
    from importlib import import_module

    assert all(callable(import_module(f"audit.{part}").run) for part in PARTS)
