"""Estimates against what they claim: coverage of 95 % intervals, and divergence beside the best clip-and-smooth.

Truths are drawn from Dirichlet laws, the model's own family, and from fixed shapes that are not of it. Noise is that of
a (λ=5, ε)-RDP budget under replace-one. Everything is seeded, so that the figures can be repeated.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
from experiments.estimates import clip_and_smooth, with_intervals
from numpy.typing import NDArray

from dpbayes import RDP, Unit
from dpbayes.design.noise import TableMechanism
from dpbayes.design.ranking import score
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.tuning import ConcentrationCurve, gaussian_noise, laplace_noise
from dpbayes.privacy.calibrate import calibrate
from dpbayes.schema import Adjacency

Floats = NDArray[np.float64]
UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)
CELLS, RECORDS, EPSILONS = (2, 10, 100, 1000), (1000, 100_000), (0.05, 0.5, 5.0)
MECHANISMS = ("gaussian", "laplace", "dirichlet")
TABLES = {2: 400, 10: 120, 100: 20, 1000: 4}
"""Tables drawn for a setting, by the number of cells."""

SMOOTHED = tuple(itertools.product((300, 1000), (0.1, 1.0, 5.0), EPSILONS))
"""Records, evenness of the Dirichlet law, ε: the settings in which the estimate meets clip-and-smooth."""

CONSTANTS = np.geomspace(0.003, 1000, 60)
"""Of the smoothing; the best one is chosen in hindsight."""


def _family(evenness: float) -> Callable[[int, np.random.Generator], Floats]:
    def drawn(cells: int, rng: np.random.Generator) -> Floats:
        gammas = rng.standard_gamma(evenness, cells) + 1e-300
        return np.asarray(gammas / gammas.sum())

    return drawn


def _zipf(cells: int, _: np.random.Generator) -> Floats:
    shares = 1 / np.arange(1.0, cells + 1)
    return np.asarray(shares / shares.sum())


def _few(cells: int, _: np.random.Generator) -> Floats:
    """One cell in ten has nearly everything."""
    shares = np.where(np.arange(cells) < max(cells // 10, 1), 1.0, 1e-3)
    return shares / shares.sum()


SHAPES: dict[str, Callable[[int, np.random.Generator], Floats]] = {
    "drawn even": _family(10.0),
    "drawn skewed": _family(1.0),
    "drawn sparse": _family(0.1),
    "exactly even": lambda cells, _: np.full(cells, 1 / cells),
    "Zipf": _zipf,
    "one in ten": _few,
}


def mechanisms(epsilon: float, cells: int, records: int) -> dict[str, TableMechanism]:
    target = RDP(order=5, epsilon=epsilon)
    return {
        "gaussian": calibrate(gaussian_noise(UNIT), target),
        "laplace": calibrate(laplace_noise(UNIT), target),
        "dirichlet": ConcentrationCurve(target=target, unit=UNIT).best(
            purpose="estimate", cells=cells, records=records
        ),
    }


def released(mechanism: TableMechanism, counts: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    return np.asarray(
        mechanism.gammas(counts, rng) if isinstance(mechanism, Dirichlet) else mechanism.draw(counts, rng)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How often the intervals of one setting hold the truth."""

    mechanism: str
    shape: str
    cells: int
    records: int
    epsilon: float
    empirical: float
    population: float
    standard_errors: tuple[float, float]
    counts_in_interval: float
    """The median width of the intervals of counts, in counts: narrow ones cannot hit 95 % exactly."""


def coverage(mechanism: str, shape: str, cells: int, records: int, epsilon: float, tables: int) -> Coverage:
    made = mechanisms(epsilon, cells, records)[mechanism]
    hits, widths = np.empty((tables, 2)), np.empty(tables)
    for table in range(tables):
        rng = np.random.default_rng([cells, records, int(1000 * epsilon), list(SHAPES).index(shape), table])
        shares = SHAPES[shape](cells, rng)
        counts = rng.multinomial(records, shares)
        found = with_intervals(released(made, counts, rng), made, records)
        for column, (truth, interval) in enumerate(((counts / records, found.records), (shares, found.population))):
            slack = 1e-9 * (interval.upper + 1e-12)
            hits[table, column] = np.mean((truth >= interval.lower - slack) & (truth <= interval.upper + slack))
        widths[table] = np.median(found.counts.upper - found.counts.lower)
    errors = hits.std(axis=0, ddof=1) / np.sqrt(tables)
    return Coverage(
        mechanism=mechanism,
        shape=shape,
        cells=cells,
        records=records,
        epsilon=epsilon,
        empirical=float(hits[:, 0].mean()),
        population=float(hits[:, 1].mean()),
        standard_errors=(float(errors[0]), float(errors[1])),
        counts_in_interval=float(np.median(widths)),
    )


def coverages() -> Iterator[Coverage]:
    for name, shape, cells, records, epsilon in itertools.product(MECHANISMS, SHAPES, CELLS, RECORDS, EPSILONS):
        yield coverage(name, shape, cells, records, epsilon, TABLES[cells])


def against_smoothing(cells: int, records: int, evenness: float, epsilon: float, tables: int = 20) -> dict[str, float]:
    """KL of the best clip-and-smooth in hindsight over that of the estimate, for both targets: above one is better."""
    made = mechanisms(epsilon, cells, records)["gaussian"]
    ours, smoothed = np.zeros(2), np.zeros((2, CONSTANTS.size))
    for table in range(tables):
        rng = np.random.default_rng([cells, records, int(1000 * epsilon), int(10 * evenness), table])
        shares = _family(evenness)(cells, rng)
        counts = rng.multinomial(records, shares)
        values = released(made, counts, rng)
        found = with_intervals(values, made, records)
        for row, (truth, part) in enumerate(((counts / records, found.records), (shares, found.population))):
            ours[row] += score("kl", truth, part.values)
            smoothed[row] += [score("kl", truth, clip_and_smooth(values, constant)) for constant in CONSTANTS]
    empirical, population = smoothed.min(axis=1) / ours
    return {"empirical": float(empirical), "population": float(population)}


def run() -> dict[str, object]:
    """Every setting of the coverage grid outside 93 % to 97.5 %, and of the other one below 0.95; and the averages."""
    covered = list(coverages())
    own = [one for one in covered if one.shape.startswith("drawn")]
    smoothed = {
        (cells, *setting): against_smoothing(cells, *setting, tables=tables)
        for cells, tables in ((5, 150), (10, 150), (100, 40), (1000, 12))
        for setting in SMOOTHED
    }
    return {
        "coverage, population, tables of the model's family": float(np.mean([one.population for one in own])),
        "coverage, empirical, tables of the model's family": float(np.mean([one.empirical for one in own])),
        "coverage by mechanism and shape": {
            f"{mechanism}, {shape}": {
                target: [float(each([getattr(one, target) for one in group])) for each in (np.min, np.mean, np.max)]
                for target in ("empirical", "population")
            }
            for mechanism, shape in itertools.product(MECHANISMS, SHAPES)
            if (group := [one for one in covered if (one.mechanism, one.shape) == (mechanism, shape)])
        },
        "coverage outside the goal": [
            asdict(one)
            for one in covered
            if not (
                one.population >= 0.93 - 2 * one.standard_errors[1]
                and one.population <= 0.975 + 2 * one.standard_errors[1]
            )
            or one.empirical < 0.93 - 2 * one.standard_errors[0]
        ],
        "best clip-and-smooth over estimate": {
            target: {
                "least": min(one[target] for one in smoothed.values()),
                "geometric mean": float(np.exp(np.mean([np.log(one[target]) for one in smoothed.values()]))),
                "below 0.95": [list(key) for key, one in smoothed.items() if one[target] < 0.95],
            }
            for target in ("empirical", "population")
        },
    }
