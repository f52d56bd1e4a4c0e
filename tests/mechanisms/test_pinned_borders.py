"""Costs exactly at the borders of their cases, self-tests before secret draws, and subclasses that are made later."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mpmath as mp
import numpy as np
import pytest
from tests import digits
from tests.mechanisms.test_pinned import ADD, ADD3, MECHANISMS, REPLACE, event

from dpbayes import Cost, Unit
from dpbayes.base.errors import InvalidArgument, NoiseError
from dpbayes.hellinger.mechanism import Hellinger
from dpbayes.mechanisms import kinds, lazy, noise, stated, threshold, tuning, utility
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.mechanisms.stated import ForeignEvent, Stated, StatedRDP
from dpbayes.mechanisms.subsampled import subsampled
from dpbayes.mechanisms.sum_zero import SumZeroLaplace
from dpbayes.mechanisms.threshold import Threshold
from dpbayes.privacy.guarantee import RDP, ApproxDP

BELOW = math.nextafter(1.0, 0.0)
LATE = Stated(0.7, 1e-4, ADD, "a map")
INSIDE = '{"class":"GaussianDpEvent","noise_multiplier":2.0}'
SAMPLED = f'{{"class":"PoissonSampledDpEvent","event":{INSIDE},"sampling_probability":0.1}}'
EVENT = '{"class":"GaussianDpEvent","noise_multiplier":3.0}'


def around(value: float) -> tuple[float, float, float]:
    return math.nextafter(value, 0.0), value, math.nextafter(value, math.inf)


def foreign(**more: object) -> object:
    return ForeignEvent(**{"event": EVENT, "unit": ADD, "what": "x"} | more).unit.record()  # type: ignore[arg-type]


def composed(text: str, often: int = 1) -> object:
    import dp_accounting

    made = eval(text, vars(dp_accounting))
    return [[each.record(), times] for each, times in ForeignEvent.cost(made, ADD, what="x", times=often).entries]


CASES: digits.Cases = {
    "steps of axes": lambda: [
        [[step.branches, step.width] for step in lazy._steps(0, n)] for n in (1, 2, 63, 64, 65, 4095, 4096, 4097, 10**6)
    ],
    "rounded shares": lambda: lazy._rounded(np.array([[0.5, 0.5, 0.0, 1e-12]]), np.array([[True, True, False, True]])),
    "at the stated order": lambda: [
        [made.renyi(at), made.concentrated(at)]
        for made in (MECHANISMS["stated rdp"], MECHANISMS["stated rdp, low"])
        for at in around(made.order)
    ],
    "at the stated delta": lambda: [[LATE.epsilon(at), LATE.delta(0.7), LATE.delta(0.69)] for at in around(1e-4)],
    "at the least delta": lambda: [
        [MECHANISMS[name].epsilon(at) for at in around(MECHANISMS[name].least_delta)]
        for name in ("threshold", "threshold, three rows")
    ],
    "certain betrayals": lambda: [
        [threshold.betrayal(scale=s, threshold=t, rows=m) for s, t, m in ((1e-3, 1, 1), (1e3, 1, 1), (1e9, 40, 40))],
        Threshold(scale=1e9, threshold=3, unit=ADD3).epsilon(0.9),
        Threshold(scale=1.0, threshold=3, unit=ADD3).found(4),
        [Threshold(scale=1.0, threshold=3, unit=ADD3).found(rows) for rows in (2, 3, 4, 5)],
        Threshold(scale=1e-3, threshold=3, unit=ADD3).draw([0, 3, 4, 9], np.random.default_rng(1)),
    ],
    "at the pure cost": lambda: [
        [made.delta(at) > 0, made.epsilon(1e-9)]
        for made in (MECHANISMS["pseudo, rows"], MECHANISMS["pseudo, added"])
        for at in around(made.pure)
    ],
    "samples": lambda: [
        [made.epsilon(at) for at in around(made.delta(0.0))]
        for made in (MECHANISMS["sampled laplace"], MECHANISMS["sampled gaussian"])
    ],
    "sampled divergences": lambda: [
        [made.renyi(order) for order in (1.0001, 1.3, 5.0, 90.0, 1e4)]
        for made in (
            subsampled(Laplace(scale=0.01, unit=ADD), 0.1),
            subsampled(Laplace(scale=3.0, unit=ADD), 0.9),
            subsampled(Laplace(scale=0.5, unit=REPLACE), 0.4),
        )
    ],
    "events": lambda: [
        [(made := event("GaussianDpEvent", noise_multiplier=z)).gdp(), made.concentrated(3.0), made.multiplier]
        for z in (0.5, 3.0, 7.7)
    ],
    "events refused": lambda: [
        digits.refusal(lambda given: foreign(**given), more)
        for more in (
            {"unit": ADD3},
            {"unit": "add-remove"},
            {"event": EVENT.replace("Gaussian", "Nothing")},
            {"event": SAMPLED},
            {"event": SAMPLED, "unit": ADD3},
            {
                "event": SAMPLED,
                "unit": Unit("add-remove", 2),
            },
        )
    ],
    "events composed": lambda: [
        composed("GaussianDpEvent(2.0)", 3),
        composed(
            "ComposedDpEvent([GaussianDpEvent(2.0), LaplaceDpEvent(1.0), SelfComposedDpEvent(GaussianDpEvent(3.0), 4)])"
        ),
        digits.refusal(composed, "NoOpDpEvent()"),
    ],
    "kinds of events": lambda: [
        type(stated._made(text, ADD, "x")).__name__
        for text in (EVENT, '{"class":"LaplaceDpEvent","noise_multiplier":3.0}')
    ],
    "units as text": lambda: [
        made.unit.record()
        for made in (
            Stated(1, 0, "add-remove", "x"),  # type: ignore[arg-type]
            StatedRDP(order=2, epsilon_stated=1, unit="add-remove", what="x"),  # type: ignore[arg-type]
            Gaussian(sigma=1, unit="replace-one"),  # type: ignore[arg-type]
        )
    ],
    "estimates refused": lambda: [
        digits.refusal(
            lambda e: (
                tuning.ConcentrationCurve(target=RDP(order=2, epsilon=e), unit=REPLACE).best(purpose="estimate").weight
                > 0
            ),
            e,
        )
        for e in (1e3, 2e6, 1e9)
    ],
    "sketches": lambda: [
        [
            (s := tuning.ConcentrationCurve(target=t, unit=REPLACE, releases=k, alongside=beside)._sketch()).order,
            s.epsilon,
        ]
        for t in (RDP(order=5, epsilon=1), ApproxDP(epsilon=1, delta=1e-6))
        for k in (1, 3)
        for beside in (None, Cost.of(Laplace(scale=9.0, unit=REPLACE)), Cost.of(Laplace(scale=0.2, unit=REPLACE)))
    ],
    "starts": lambda: [tuning.dirichlet_at_weight(w, REPLACE, start=s).start for w in (0.3, 7.0) for s in (None, 2.0)],
    "small tables": lambda: [
        utility.worst_expected_kl(cells=d, records=n, weight=w, concentration=a)
        for d, n, w, a in ((3, 1, 0.01, 0.05), (5, 10**4, 1.0, 0.01), (8, 50, 0.5, 20.0))
    ],
    "added costs": lambda: [
        [times for _, times in cost.entries]
        for cost in (
            MECHANISMS["laplace 4"] + MECHANISMS["gaussian 2"],
            3 * MECHANISMS["laplace 4"],
            MECHANISMS["laplace 4"] * 2,
            kinds.cost_of(["Laplace(3)", "2 * Gaussian(4)", "Laplace(5)"], ADD),
            kinds.cost_of(["Laplace(3)"], ADD),
        )
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_costs_at_borders_are_what_they_were(name: str) -> None:
    digits.check(__name__, name, CASES[name])


def test_a_mechanism_made_later_is_asked_for_valid_numbers_and_for_arrays() -> None:
    @dataclass(frozen=True, slots=True)
    class Own(kinds.Mechanism):
        kind = "own-1"
        weight: float
        often: int
        unit: Unit

        def renyi(self, order: float) -> float:
            return self.weight * order

        def delta(self, epsilon: float) -> float:
            return 0.5 * epsilon

    made = Own(2, np.int64(3), "add-remove")  # type: ignore[arg-type]
    assert (type(made.weight), type(made.often), made.unit) == (float, int, ADD)
    assert made.renyi([2.0, 3.0]).tolist() == [4.0, 6.0]  # type: ignore[arg-type, attr-defined]
    for refused in (
        lambda: made.renyi(1.0),
        lambda: made.delta(-0.1),
        lambda: Own(0.0, 3, ADD),
        lambda: Own(1.0, 0, ADD),
    ):
        with pytest.raises(InvalidArgument, match="Own: expected"):
            refused()
    assert made.record() == {"mechanism": "own-1", "weight": 2.0, "often": 3, "unit": ADD.record()}
    assert Own.from_record(made.record()) == made


def test_secret_draws_come_after_the_self_test_and_seeded_ones_need_none(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = [
        lambda rng: noise.laplace(np.zeros(3, dtype=np.int64), 2.0, rng),
        lambda rng: noise.gaussian(np.zeros(3, dtype=np.int64), 2.0, rng),
        lambda rng: SumZeroLaplace(scale=2.0, cells=3, unit=REPLACE).draw([1, 2, 3], rng),
    ]
    monkeypatch.setattr(noise, "_known_stream", lambda: np.random.default_rng(1))
    noise.once.cache_clear()
    for draw in draws:
        assert draw(np.random.default_rng(1)).size == 3
        with pytest.raises(NoiseError, match="does not give its published stream"):
            draw(None)
    monkeypatch.undo()
    for draw in draws:
        assert draw(None).size == 3
    assert noise.once.cache_info().currsize == 1


def test_what_is_stored_is_confirmed_inside_a_sample_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def confirm(self: Hellinger) -> None:
        seen.append(self)

    monkeypatch.setattr(Hellinger, "confirm", confirm)
    made = Hellinger(prior=(1.0, 1.0), total=9, sharpness=1.0, smoothing=0.0, calibration="proved", unit=REPLACE)
    kinds.confirm(made)
    kinds.confirm(subsampled(made, 0.5))
    kinds.confirm(MECHANISMS["laplace 4"])
    assert seen == [made, made]


def test_gaussian_events_are_priced_on_the_safe_side() -> None:
    for z in (0.3, 1.0, 2.7):
        made = event("GaussianDpEvent", noise_multiplier=z)
        with mp.workdps(40):
            assert (
                1 / (2 * mp.mpf(z) ** 2)
                <= mp.mpf(made.concentrated(2.0))
                <= (1 + mp.mpf(10) ** -11) / (2 * mp.mpf(z) ** 2)
            )
            assert 1 / mp.mpf(z) <= mp.mpf(made.gdp()[0])
