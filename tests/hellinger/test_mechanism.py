"""The Hellinger mechanism as a mechanism: promises, draws, records, refusals."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, replace
from itertools import pairwise

import numpy as np
import pytest

from dpbayes import ApproxDP, Cost, Gaussian, PureDP, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import calibration
from dpbayes.hellinger.baselines import PosteriorExponential, PosteriorLaplace
from dpbayes.hellinger.certificate import certify
from dpbayes.hellinger.mechanism import Hellinger, published_smoothing
from dpbayes.mechanisms.kinds import from_record
from dpbayes.privacy.calibrate import calibrate
from dpbayes.privacy.pld import epsilon_of
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)
PRIOR = (1.0, 1.0)
COMMON = {"prior": PRIOR, "total": 40, "unit": UNIT}


def certified() -> Hellinger:
    made = certify(PRIOR, 40, sharpness=0.8, smoothing=0.1, delta=1e-6)
    return calibration.with_certificate(PRIOR, 40, 0.8, 0.1, UNIT, made)


PRIVATE = {
    "published": calibration.published(**COMMON, epsilon=0.8, delta=1e-6),
    "proved": calibration.proved(**COMMON, epsilon=0.8, delta=1e-6),
    "global": calibration.with_global(**COMMON, epsilon=0.8),
    "certified": certified(),
    "kl": PosteriorExponential(**COMMON, sharpness=0.8, score="kl"),
    "total variation": PosteriorExponential(**COMMON, sharpness=0.8, score="total-variation"),
    "laplace": PosteriorLaplace.at(**COMMON, epsilon=0.8, truncated=False),
    "improved laplace": PosteriorLaplace.at(**COMMON, epsilon=0.8),
}
LOCAL = calibration.with_local(**COMMON, epsilon=0.8)


@pytest.mark.parametrize("made", [*PRIVATE.values(), LOCAL], ids=[*PRIVATE, "local"])
def test_a_record_is_json_and_makes_an_equal_mechanism(made: Hellinger) -> None:
    assert from_record(json.loads(json.dumps(made.record(), allow_nan=False))) == made
    with pytest.raises(FrozenInstanceError):
        made.total = 3  # type: ignore[misc]


@pytest.mark.parametrize("made", PRIVATE.values(), ids=PRIVATE)
def test_a_draw_has_the_sum_of_every_posterior(made: Hellinger) -> None:
    draw = made.draw([13, 27])
    assert draw.sum() == pytest.approx(42.0)
    assert (draw == np.round(draw)).all()


@pytest.mark.parametrize("made", PRIVATE.values(), ids=PRIVATE)
def test_the_privacy_face_is_consistent(made: Hellinger) -> None:
    orders = [1.01, 1.5, 2.0, 5.0, 50.0, math.inf]
    values = [made.renyi(order) for order in orders]
    assert values == sorted(values)
    assert made.delta(0.3) >= made.delta(0.6) >= made.delta(1.2)
    epsilon = made.epsilon(1e-5)
    assert made.delta(epsilon) <= 1e-5 * (1 + 1e-9)
    if math.isfinite(made.concentrated(3.0)):
        assert all(made.renyi(order) <= made.concentrated(3.0) * order * (1 + 1e-12) for order in (1.01, 1.5, 2.0, 2.9))
    pld = made.pld(1e-3)
    assert pld.delta(0.9) >= made.delta(0.9) * (1 - 1e-9)
    assert epsilon_of(pld, 1e-5) <= epsilon + 2e-2


def test_every_promise_composes_with_gaussian_noise() -> None:
    cost = Cost.of(certified(), 3) + Cost.of(Gaussian(sigma=10.0, unit=UNIT))
    alone = Cost.of(Gaussian(sigma=10.0, unit=UNIT)).epsilon(1e-6)
    assert alone < cost.epsilon(1e-6) < alone + 3 * certified().renyi(math.inf)


@pytest.mark.parametrize("smoothing", [0.0, 0.01])
def test_calibrate_finds_the_sharpness(smoothing: float) -> None:
    target = PureDP(epsilon=0.5) if smoothing == 0 else ApproxDP(epsilon=1.0, delta=1e-6)
    family = calibration.family(**COMMON, smoothing=smoothing)
    made = calibrate(family, target, times=2)
    gap = target.gap(Cost.of(made, 2))
    assert -1e-6 < gap <= 0.0


def test_local_sensitivity_costs_everything_and_a_release_is_refused() -> None:
    assert math.isinf(LOCAL.renyi(2.0))
    assert math.isinf(LOCAL.epsilon(0.1))
    assert math.isinf(LOCAL.concentrated(2.0))
    assert LOCAL.delta(100.0) == 1.0
    assert LOCAL.pld(0.1).delta(5.0) == pytest.approx(1.0)
    with pytest.raises(InvalidArgument, match="guarantees nothing"):
        LOCAL.draw([13, 27])
    assert LOCAL.draw([13, 27], np.random.default_rng(0)).sum() == 42.0


def test_the_published_promise_is_the_theorem_as_printed() -> None:
    made = PRIVATE["published"]
    assert made.epsilon(1e-6) == 0.8
    assert math.isinf(made.epsilon(1e-7))
    assert math.isinf(made.renyi(2.0))


@pytest.mark.parametrize(("total", "printed"), [(100, 0.0699407108115), (120, 0.0677791100173)])
def test_the_smoothing_of_the_figure_captions_comes_from_n_for_n_plus_one(total: int, printed: float) -> None:
    assert published_smoothing(0.8, 0.8, math.log(total)) == pytest.approx(printed, abs=5e-14)
    assert published_smoothing(0.8, 0.8, math.log(total + 1)) != pytest.approx(printed, abs=1e-5)


def test_a_larger_smoothing_than_the_theorem_allows_is_refused() -> None:
    made = PRIVATE["published"]
    with pytest.raises(InvalidArgument, match="smoothing"):
        replace(made, smoothing=2 * made.smoothing)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"prior": (0.0, 1.0)}, "above 0"),
        ({"prior": (-1.0, 1.0)}, "above 0"),
        ({"prior": (1.0,)}, "two or more cells"),
        ({"total": 0}, "between 1 and"),
        ({"total": 10**12}, "10\\^9"),
        ({"total": 2.5}, "whole number"),
        ({"sharpness": 0.0}, "sharpness"),
        ({"sharpness": math.inf}, "sharpness"),
        ({"smoothing": -0.1}, "smoothing"),
        ({"smoothing": math.inf}, "only it"),
        ({"calibration": "hoped"}, "one of"),
        ({"calibration": "certified", "certificate": None}, "certificate"),
        ({"calibration": "published"}, "delta_published"),
        ({"unit": Unit(adjacency=Adjacency.ADD_REMOVE)}, "keeps private"),
        ({"unit": Unit(adjacency=Adjacency.REPLACE_ONE, max_rows=3)}, "one row per person"),
    ],
)
def test_bad_parameters_are_refused_with_a_reason(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        replace(PRIVATE["global"], **change)


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ([-1, 41], "between 0"),
        ([0.5, 39.5], "whole"),
        ([13, 28], "declared total"),
        ([13, 20, 7], "2 counts"),
        ([[13, 27]], "conditional table"),
        (["a", "b"], "numbers"),
        ([2**63, 1], "between 0|numbers"),
    ],
)
@pytest.mark.parametrize(
    "made", [PRIVATE["global"], PRIVATE["kl"], PRIVATE["laplace"]], ids=["hellinger", "kl", "laplace"]
)
def test_bad_tables_are_refused_without_repeating_them(made: Hellinger, counts: object, sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence) as caught:
        made.draw(counts)
    assert "13" not in str(caught.value)


def test_random_numbers_come_from_the_generator_that_is_handed_in() -> None:
    made = PRIVATE["certified"]
    first = made.draw_many([13, 27], 20, np.random.default_rng(5))
    np.testing.assert_array_equal(first, made.draw_many([13, 27], 20, np.random.default_rng(5)))
    assert (made.draw_many([13, 27], 200) != made.draw_many([13, 27], 200)).any()


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.3, 2.0)])
def test_a_stated_promise_is_pure_but_for_its_delta(prior: tuple[float, ...]) -> None:
    """Every neighbouring pair: beyond the pure ε of what remains there is at most the δ that is set apart."""
    made = calibration.published(prior=prior, total=20, epsilon=1.0, delta=1e-3, unit=Unit(adjacency="replace-one"))
    assert isinstance(made, Hellinger)
    rest, apart = made.but_for()
    epsilon = rest.renyi(math.inf)
    laws = [made.law((20 - k, k))[1] for k in range(21)]
    for one, other in pairwise(laws):
        for p, q in ((one, other), (other, one)):
            assert np.maximum(p - math.exp(epsilon) * q, 0.0).sum() <= apart
    assert (epsilon, apart) == (pytest.approx(1.0), pytest.approx(1e-3))
