"""What posterior mechanisms refuse, one step before and after every limit, and what certificates must repeat."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests import digits
from tests.hellinger.test_pinned import EVERY, HELLINGERS, INF, OTHERS, TAILS, UNIT, certified

from dpbayes import Unit
from dpbayes.base.errors import ReleaseError
from dpbayes.hellinger import calibration, candidates, certificate, distance, mechanism
from dpbayes.hellinger.baselines import PosteriorExponential, PosteriorLaplace
from dpbayes.hellinger.certificate import Certificate, certify, with_curves
from dpbayes.hellinger.distance import Rows
from dpbayes.hellinger.mechanism import Hellinger
from dpbayes.hellinger.promise import NoPromise, enumerated
from dpbayes.mechanisms.kinds import from_record

WHOLE = with_curves(certified((0.4, 3.0), 9), (0.4, 3.0), 9, 0.8, 0.1)
BARE = certified((0.4, 3.0), 9)
FACES = {"none": NoPromise(), "tail": TAILS[0], "enumerated": enumerated(WHOLE)}
KINDS: dict[str, Callable[..., Any]] = {
    "hellinger": lambda **more: Hellinger(
        **{"prior": (1.0, 1.0), "total": 9, "sharpness": 1.0, "smoothing": 0.1, "calibration": "proved", "unit": UNIT}
        | more
    ),
    "exponential": lambda **more: PosteriorExponential(
        **{"prior": (1.0, 1.0), "total": 9, "sharpness": 1.0, "score": "kl", "unit": UNIT} | more
    ),
    "laplace": lambda **more: PosteriorLaplace(
        **{"prior": (1.0, 1.0), "total": 9, "scale": 1.0, "truncated": True, "unit": UNIT} | more
    ),
}
WRONG: list[dict[str, Any]] = [
    {"prior": (1.0,)},
    {"prior": (1.0, 0.0)},
    {"total": 0},
    {"total": 2.0},
    {"unit": Unit(adjacency="add-remove")},
    {"sharpness": 0.0},
    {"sharpness": INF},
    {"scale": -1.0},
    {"truncated": 1},
    {"score": "l1"},
    {"calibration": "best"},
]
MADE: dict[str, Callable[..., Any]] = {
    "published": calibration.published,
    "proved": calibration.proved,
    "certified": calibration.certified,
}


def recorded(make: Callable[..., Any], **more: Any) -> object:
    return make(**more).record()


def calibrated(make: Callable[..., Any], **more: Any) -> object:
    asked = {"prior": (1.0, 1.0), "total": 9, "epsilon": 1.0, "delta": 1e-3, "unit": UNIT} | more
    return make(**asked).sharpness


CASES: digits.Cases = {
    "faces": lambda: [
        [
            digits.refusal(face.renyi, 0.5),
            digits.refusal(face.concentrated, 1.0),
            digits.refusal(face.delta, -0.1),
            digits.refusal(face.epsilon, 1.5),
        ]
        for face in FACES.values()
    ],
    "parameters": lambda: [
        digits.refusal(recorded, make, **more)
        for make in KINDS.values()
        for more in [*WRONG, {"prior": (1, 2), "total": np.int64(9)}]
        if set(more) <= {"prior", "total", "unit"} or set(more) & set(make().record())
    ],
    "calibrations": lambda: [
        digits.refusal(calibrated, make, **more)
        for make in MADE.values()
        for more in (*WRONG[:5], {"epsilon": 0.0}, {"delta": 1.5}, {"delta": -0.1})
    ],
    "baselines": lambda: [
        digits.refusal(lambda e: PosteriorLaplace.at(prior=(1.0, 1.0), total=9, epsilon=e, unit=UNIT).scale, e)
        for e in (0.0, 2.0)
    ],
    "sizes": lambda: [digits.refusal(made.draw_many, [5] * 2, 0) for made in EVERY.values()],
    "published smoothing": lambda: [
        digits.refusal(mechanism.published_smoothing, e, d, 3.0) for e, d in ((0.0, 0.1), (1.0, 0.0), (1.0, 1.5))
    ],
    "draws of one": lambda: [
        made.draw([made.total - 3, 3], np.random.default_rng(1)) for made in EVERY.values() if len(made.prior) == 2
    ],
    "no posterior": lambda: [
        list(mechanism._distances((1.0, 2.0), np.array([2, 3]), np.array([[-1, 6], [0, 5], [7, -2]]))),
        list(mechanism._distances((1.0, 2.0), np.array([2, 3]), np.array([[-1, 6], [7, -2]]))),
        list(mechanism._distances((1.0, 2.0, 1.0), np.array([1, 1, 1]), np.array([[0, 0, 3], [3, 1, -1]]))),
    ],
    "certificates": lambda: [
        digits.refusal(lambda given: replace(WHOLE, **given).epsilon, more)
        for more in (
            {"epsilon": 0.0},
            {"epsilon_at_delta": -1.0},
            {"delta": -1e-9},
            {"profile": WHOLE.profile[:-1]},
            {"divergences": ()},
            {"profile": (-0.1, *WHOLE.profile[1:])},
            {"profile": (*WHOLE.profile[:-1], 1e-9)},
            {"divergences": (-0.1, *WHOLE.divergences[1:])},
            {"profile": (), "divergences": ()},
        )
    ],
    "records of certificates": lambda: [
        digits.refusal(lambda given: Certificate.from_record(given).record()["epsilon"], record)
        for record in (
            WHOLE.record(),
            certified((1.0, 1.0), 9).record(),
            [],
            {},
            {**WHOLE.record(), "more": 1},
            {key: value for key, value in WHOLE.record().items() if key != "delta"},
        )
    ],
    "lists": lambda: [digits.refusal(lambda: len(candidates.all_tables(2827, 3)))],
    "tables that agree": lambda: [
        digits.refusal(lambda e: float(distance.beta_total_variation([1e6, 2e6], [2e6, 1e6 + e])) > 0, e)
        for e in (2.9e-3, 3.1e-3)
    ],
    "kept rows": lambda: [
        [(rows := Rows(p, n)).distances.cache_info().maxsize, rows._cell.cache_info().maxsize]
        for p, n in (((1.0, 1.0), 9), ((1.0, 1.0), 9_000), ((1.0, 1.0), 10**5), ((1.0, 1.0, 1.0), 200))
    ],
    "tail's border": lambda: [
        [TAILS[1].delta(math.nextafter(TAILS[1].base, 0)), TAILS[1].delta(TAILS[1].base)],
        [TAILS[1].concentrated(1 + f / TAILS[1].growth) for f in (0.99, 1.0, 1.01)],
        [TAILS[1].renyi(1 + f / TAILS[1].growth) for f in (0.99, 1.0, 1.01)],
    ],
    "beyond the orders": lambda: [
        [FACES["enumerated"].concentrated(o), FACES["enumerated"].renyi(o)]
        for o in (*(float(certificate.ORDERS[-1]) * f for f in (0.999, 1.0, 1.001, 50.0)), INF)
    ],
    "wide losses": lambda: [
        with_curves(certify((1.0, 1.0), 6, sharpness=s, smoothing=0.1, delta=0.0), (1.0, 1.0), 6, s, 0.1).record()
        for s in (60.0, 900.0)
    ],
    "records read back": lambda: [from_record(made.record()) == made for made in EVERY.values()],
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_refused_and_repeated_is_what_it_was(name: str) -> None:
    digits.check(__name__, name, CASES[name])


@pytest.mark.parametrize("at", range(4))
def test_a_certificate_is_confirmed_within_half_its_slack_below_and_ten_above(at: int) -> None:
    prior, total = (0.4, 3.0), 9

    def moved(by: float) -> Certificate:
        if at < 2:
            name = ("epsilon", "epsilon_at_delta")[at]
            return replace(BARE, **{name: getattr(BARE, name) + by})
        name = ("profile", "divergences")[at - 2]
        curve = getattr(WHOLE, name)
        scale = curve[3] if by < 0 else 1.0
        return replace(WHOLE, **{name: (*curve[:3], curve[3] + by * scale, *curve[4:])})

    slack = certificate.SLACK
    for by in (0.0, -0.45 * slack, 0.9e-7):
        moved(by).confirm(prior, total, 0.8, 0.1)
    for by in (-0.6 * slack, 1.2e-7, 0.3):
        with pytest.raises(ReleaseError, match="enumeration"):
            moved(by).confirm(prior, total, 0.8, 0.1)


def test_a_mechanism_confirms_what_it_relies_upon_and_nothing_else() -> None:
    honest = Hellinger(prior=(0.4, 3.0), total=9, sharpness=0.8, smoothing=0.1, calibration="certified", unit=UNIT,
                       certificate=certified((0.4, 3.0), 9).bound((0.4, 3.0), 9, 0.8, 0.1, UNIT))  # fmt: skip
    honest.confirm()
    HELLINGERS["proved"].confirm()
    forged = replace(certified((0.4, 3.0), 9), epsilon=0.01)
    replace(honest, certificate=forged).confirm()  # without a digest it is not relied upon
    with pytest.raises(ReleaseError, match="enumeration"):
        replace(honest, certificate=forged.bound((0.4, 3.0), 9, 0.8, 0.1, UNIT)).confirm()


def test_the_published_smoothing_is_the_largest_that_is_taken() -> None:
    made = HELLINGERS["published"]
    assert replace(made, smoothing=made.smoothing * (1 + 0.9e-12)).smoothing > made.smoothing
    assert digits.refusal(lambda: replace(made, smoothing=made.smoothing * (1 + 1.5e-12)).smoothing).startswith(
        "Invalid"
    )


def test_laws_of_truncated_noise_add_up_and_agree_with_draws() -> None:
    for name in ("laplace", "laplace, three"):
        made = OTHERS[name]
        listed, shares = made.law([made.total - 3, *([3] if len(made.prior) == 2 else [2, 1])])
        assert shares.sum() == pytest.approx(1.0, abs=1e-12)
        assert (listed.sum(axis=1) == made.total).all()
