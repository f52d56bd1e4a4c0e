"""Distances, sensitivities, envelopes, certificates and seeded draws of posterior mechanisms, in digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests import digits

from dpbayes import Unit
from dpbayes.hellinger import baselines, calibration, candidates, certificate, distance, mechanism, sampler, sensitivity
from dpbayes.hellinger.baselines import ClosingNoise, PosteriorExponential, PosteriorLaplace
from dpbayes.hellinger.certificate import Certificate, certify, with_curves
from dpbayes.hellinger.distance import Rows
from dpbayes.hellinger.mechanism import Hellinger, expected
from dpbayes.hellinger.promise import NoPromise, Proved, SmoothTail, enumerated
from dpbayes.mechanisms.selection import Selection

UNIT = Unit(adjacency="replace-one")
REFUSED_UNITS = (
    Unit(adjacency="add-remove"),
    Unit(adjacency="replace-one", person="who"),
    Unit(adjacency="replace-one", max_rows=2),
)
INF = math.inf
PRIORS: list[tuple[tuple[float, ...], tuple[int, ...]]] = [
    ((1.0, 1.0), (3, 9)),
    ((0.3, 2.5), (0, 12)),
    ((0.3, 2.5), (12, 0)),
    ((7.0, 4.0), (1, 40)),
    ((90.0, 0.05), (2, 2)),
    ((1.0, 1.0, 1.0), (0, 0, 7)),
    ((0.5, 2.0, 9.0), (1, 3, 4)),
    ((0.5, 0.5, 3.0, 3.0), (0, 1, 6, 2)),
    ((1.0, 1.0, 1.0, 1.0, 2.0), (2, 0, 0, 5, 1)),
    ((70.0, 80.0, 0.01), (1, 0, 6)),
]
SMALL = [((1.0, 1.0), 9), ((0.4, 3.0), 9), ((1.0, 1.0, 2.0), 5)]


def promised(made: Any) -> list[object]:
    return [
        [made.renyi(order) for order in (1.01, 1.5, 2.0, 5.0, 33.0, 500.0, INF)],
        [made.concentrated(omega) for omega in (1.2, 2.0, 30.0, 1e3, INF)],
        [made.delta(epsilon) for epsilon in (0.0, 0.05, 0.3, 0.8, 3.0)],
        [made.epsilon(delta) for delta in (1e-12, 1e-6, 0.01, 0.4)],
    ]


def certified(prior: tuple[float, ...], total: int, sharpness: float = 0.8, smoothing: float = 0.1) -> Certificate:
    return certify(prior, total, sharpness=sharpness, smoothing=smoothing, delta=1e-3)


def drawn(made: Any, counts: object, size: int = 40, seed: int = 3) -> object:
    return made.draw_many(counts, size, np.random.default_rng(seed))


TAILS = [
    SmoothTail(sharpness=s, smoothing=g, log_candidates=n)
    for s, g, n in ((0.5, 0.01, 4.0), (0.2, 0.3, 2.0), (1.0, 1e-4, 9))
]
HELLINGERS = {
    "proved": Hellinger(prior=(1.0, 2.0), total=40, sharpness=0.8, smoothing=0.2, calibration="proved", unit=UNIT),
    "global": Hellinger(prior=(1.0, 1.0, 0.5), total=12, sharpness=0.8, smoothing=0.0, calibration="proved", unit=UNIT),
    "tail": Hellinger(prior=(1.0, 1.0), total=30, sharpness=3.0, smoothing=1e-4, calibration="proved", unit=UNIT),
    "local": calibration.with_local(prior=(1.0, 1.0), total=20, epsilon=1.0, unit=UNIT),
    "published": calibration.published(prior=(1.0, 1.0), total=50, epsilon=0.8, delta=1e-3, unit=UNIT),
}
OTHERS = {
    "score hellinger": PosteriorExponential(prior=(1.0, 2.0), total=20, sharpness=2.0, score="hellinger", unit=UNIT),
    "score kl": PosteriorExponential(prior=(1.0, 2.0, 0.5), total=9, sharpness=2.0, score="kl", unit=UNIT),
    "score tv": PosteriorExponential(prior=(1.0, 2.0), total=20, sharpness=2.0, score="total-variation", unit=UNIT),
    "laplace": PosteriorLaplace(prior=(1.0, 2.0), total=20, scale=2.0, truncated=True, unit=UNIT),
    "laplace, three": PosteriorLaplace(prior=(1.0, 2.0, 3.0), total=9, scale=2.5, truncated=True, unit=UNIT),
    "laplace, loose": PosteriorLaplace(prior=(1.0, 2.0, 3.0), total=9, scale=2.5, truncated=False, unit=UNIT),
}
EVERY = {**HELLINGERS, **OTHERS}


def table_of(made: Any) -> list[int]:
    return [made.total - made.total // 3, *([made.total // 3] if len(made.prior) == 2 else [2, made.total // 3 - 2])]


CASES: digits.Cases = {
    "tails": lambda: [[tail.base, tail.growth, *promised(tail)] for tail in TAILS],
    "steps of tails": lambda: [tail.pld(0.05) for tail in TAILS[:2]],
    "proved": lambda: [
        [
            (made := Proved(ranged=Selection(sharpness=s, unit=UNIT), tail=TAILS[0])).exact,
            *promised(made),
            made.pld(0.02),
        ]
        for s in (0.3, TAILS[0].base, 0.8, 3.0)
    ],
    "no promise": lambda: [promised(NoPromise()), NoPromise().pld(0.5)],
    **{
        f"promise, {name}": lambda made=made: [made.exact, *promised(made), made.pld(0.05)]
        for name, made in EVERY.items()
    },
    **{f"draws, {name}": lambda made=made: drawn(made, table_of(made)) for name, made in EVERY.items()},
    "laws": lambda: [made.law(table_of(made))[1] for name, made in EVERY.items() if name != "laplace, loose"],
    "exponents": lambda: [made.exponent(table_of(made)) for made in HELLINGERS.values()],
    "scores": lambda: [
        [
            made.sensitivity,
            made.exponent,
            made.distances(np.array(table_of(made)), candidates.all_tables(made.total, len(made.prior))),
        ]
        for name, made in OTHERS.items()
        if name.startswith("score")
    ],
    "sensitivities of scores": lambda: [
        [baselines.kl_sensitivity(p, sum(t)) for p, t in PRIORS],
        [baselines.total_variation_sensitivity(p[:2], 40) for p, _ in PRIORS],
    ],
    "closing noise": lambda: [
        ClosingNoise(scale=2.0, shape=(2, 3)).variance(np.zeros((2, 3))),
        ClosingNoise(scale=2.0, shape=(3,)).variance(np.zeros(2)),
        ClosingNoise(scale=2.0, shape=(3,)).log_law(1.5, np.array([0, 4])),
        OTHERS["laplace"].noise().shape,
        OTHERS["laplace"].noise((2, 1)).shape,
        ClosingNoise(scale=2.0, shape=(3,)).even,
    ],
    "truncated": lambda: [
        OTHERS["laplace"].log_truncated(np.arange(-3, 4), np.full(7, low), np.full(7, high))
        for low in (False, True)
        for high in (False, True)
    ],
    "laplace at": lambda: [
        PosteriorLaplace.at(prior=p, total=9, epsilon=0.5, unit=UNIT).record() for p in ((1.0, 1.0), (1.0, 1.0, 2.0))
    ],
    "work": lambda: (
        [[certificate.work(p, sum(t)), certificate.affordable(p, sum(t))] for p, t in PRIORS]
        + [certificate.affordable((1.0, 2.0), n) for n in (9998, 9999, 10000)]
    ),
    "certificates": lambda: (
        [certified(*each).record() for each in SMALL]
        + [certify((1.0, 1.0), 8, sharpness=2.0, smoothing=0.0, delta=0.0).record()]
    ),
    "curves of certificates": lambda: [
        with_curves(certified(*each), *each, 0.8, 0.1).bound(*each, 0.8, 0.1, UNIT).record() for each in SMALL[1:]
    ],
    "enumerated": lambda: promised(enumerated(with_curves(certified(*SMALL[1]), *SMALL[1], 0.8, 0.1))),
    "smallest epsilon": lambda: [
        certificate._epsilon(np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5]), delta, start)
        for delta in (1e-9, 0.05, 0.29, 0.31)
        for start in (0.0, 0.4, 1.2)
    ],
    "references": lambda: [
        calibration.references((1.0, 0.5), 30, None),
        calibration.references((1.0, 1.0), 3, [[1, 2]]),
    ],
    "expected, roughly": lambda: [calibration.expected_distance(p, t, a) for p, t in PRIORS for a in (0.3, 5.0, 80.0)],
    "active pairs": lambda: [
        calibration._active_pairs(Rows(p, n)) for p, n in (((1.0, 1.0), 60), ((1.0, 2.0), 900), ((1.0, 1.0, 2.0), 9))
    ],
    "minimisers": lambda: [
        calibration._minimiser(lambda x, at=at: (math.log(x) - at) ** 2, np.geomspace(0.01, 10, 7))
        for at in (-9.0, -1.3, 0.4, 9.0)
    ],
    "largest sharpness": lambda: [
        calibration._largest_sharpness(lambda s, p=p: 0.6 * s**p, 1.0, 0.3) for p in (1.0, 1.3, 0.7)
    ],
    "calibrated": lambda: [
        [
            made.sharpness,
            made.smoothing,
            made.calibration,
            None if made.certificate is None else made.certificate.epsilon,
        ]
        for made in (
            calibration.proved(prior=(1.0, 2.0), total=30, epsilon=0.8, unit=UNIT),
            calibration.proved(prior=(1.0, 2.0), total=3000, epsilon=0.8, delta=1e-6, unit=UNIT),
            calibration.proved(prior=(1.0, 2.0, 1.0), total=200, epsilon=2.0, unit=UNIT, around=[[100, 50, 50]]),
            calibration.with_global(prior=(1.0, 2.0), total=12, epsilon=0.8, unit=UNIT),
            calibration.certified(prior=(1.0, 2.0), total=12, epsilon=0.8, unit=UNIT, delta=1e-4),
            calibration.family(prior=(1.0, 2.0), total=12, unit=UNIT, smoothing=0.3).make(0.4),
        )
    ],
    "accuracy": lambda: [
        [each.hellinger, each.l1, each.total_variation, each.standard_error, each.draws]
        for each in (expected(made, table_of(made), draws=60, rng=np.random.default_rng(2)) for made in EVERY.values())
    ],
    "probabilities of steps": lambda: [
        mechanism.step_probabilities(HELLINGERS["global"], [4, 4, 4]),
    ],
    "smoothing of the papers": lambda: [
        mechanism.published_smoothing(e, d, n) for e, d, n in ((0.8, 0.8, 4.6), (3.0, 1e-9, 40))
    ],
    "records": lambda: [made.record() for made in EVERY.values()],
    "constants": lambda: [
        baselines.SCORES,
        candidates.LARGEST_TOTAL,
        candidates.LONGEST_LIST,
        certificate.SLACK,
        certificate.QUICK_WORK,
        certificate.ORDERS,
        certificate.STEPS,
        certificate.FINE,
        certificate.LARGEST_EPSILON,
        distance.STIRLING_FROM,
        mechanism.ENUMERATED,
        sampler.ROUNDING,
        sampler.UNDERFLOW,
        sensitivity.FAR,
        calibration._SMOOTHINGS,
    ],
    "refusals": lambda: [
        *(digits.refusal(lambda unit=unit: candidates.check_unit("It", unit)) for unit in (UNIT, *REFUSED_UNITS)),
        *(
            digits.refusal(lambda p=p: candidates.check_prior("It", p))
            for p in ((1.0,), (1.0, 0.0), (1e9, 1.0), (1.1e9, 1.0))
        ),
        *(digits.refusal(lambda n=n: candidates.check_total("It", n)) for n in (0, 1, 10**9, 10**9 + 1, True, 2.0)),
        *(
            digits.refusal(lambda c=c: candidates.check_counts("It", c, 2, 5))
            for c in ([2, 3], [2, 4], [1, 2, 2], [[2, 3]])
        ),
        digits.refusal(lambda: candidates.all_tables(10**7, 2)),
        *(digits.refusal(lambda o=o: float(distance.renyi([1, 2], [2, 1], o))) for o in (1, 0, -1.0)),
        *(
            digits.refusal(lambda p=p: distance.kl(p, [1.0, 2.0]).tolist())
            for p in ([1.0], [1.0, 0.0], [1.0, INF], [1.0, 1, 1], 3.0)
        ),
        digits.refusal(lambda: distance.beta_total_variation([1.0, 2.0], [1.0, 3.0])),
        digits.refusal(lambda: distance.beta_total_variation([1.0, 2.0, 3.0], [1.0, 3.0, 2.0])),
        *(digits.refusal(lambda g=g: sensitivity.smooth_sensitivity((1.0, 1.0), [1, 2], g)) for g in (-1e-9, math.nan)),
        *(digits.refusal(lambda a=a: sampler.envelope_of(sampler.HELLINGER, a)) for a in (0.0, -1.0, INF)),
        digits.refusal(lambda: OTHERS["laplace, loose"].law([3, 3, 3])),
        digits.refusal(lambda: HELLINGERS["local"].draw([10, 10])),
        digits.refusal(lambda: certified((1.0, 2.0), 10000)),
        digits.refusal(lambda: calibration.certified(prior=(1.0, 2.0), total=10000, epsilon=1.0, unit=UNIT)),
        digits.refusal(lambda: calibration.references((1.0, 1.0), 3, [])),
        *(
            digits.refusal(
                lambda more=more: Hellinger(
                    **{"prior": (1.0, 1.0), "total": 9, "sharpness": 1.0, "unit": UNIT, **more}
                ).record()
            )
            for more in (
                {"smoothing": INF, "calibration": "proved"},
                {"smoothing": 0.1, "calibration": "none"},
                {"smoothing": -0.1, "calibration": "proved"},
                {"smoothing": True, "calibration": "proved"},
                {"smoothing": 0.1, "calibration": "proved", "delta_published": 0.1},
                {"smoothing": 0.1, "calibration": "published"},
                {"smoothing": 0.5, "calibration": "published", "delta_published": 0.1},
                {"smoothing": 0.1, "calibration": "certified"},
                {"smoothing": 0.1, "calibration": "proved", "certificate": certified((1.0, 1.0), 9)},
                {
                    "smoothing": 0.1,
                    "calibration": "certified",
                    "certificate": certified((1.0, 1.0), 9).bound((1.0, 1.0), 9, 0.8, 0.1, UNIT),
                },
            )
        ),
        *(
            digits.refusal(
                lambda more=more: PosteriorExponential(
                    **{"prior": (1.0, 1.0, 1.0), "total": 9, "sharpness": 1.0, "unit": UNIT, **more}
                ).record()
            )
            for more in (
                {"score": "chi-squared"},
                {"score": "total-variation"},
                {"score": "kl", "sharpness": 0.0},
                {"score": "l1"},
            )
        ),
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_posterior_mechanisms_are_what_they_were(name: str) -> None:
    digits.check(__name__, name, CASES[name])
