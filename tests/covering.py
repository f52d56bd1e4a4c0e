"""How often printed intervals hold the truth: every product that has them, on made-up people whose truth is known.

A product enters by one line of ``PRODUCTS``. A *stratum* is a product in a world at one ε: it must cover between
``LEAST`` and ``MOST``, allowing for the error of the simulation. A bound that is known to be wide may cover more, never
less, and is named in ``WIDE``. What promises nothing is named in ``UNPROMISED``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product as crossed

import numpy as np

import dpbayes as dp
from dpbayes.release.products import complete
from dpbayes.schema.counts import Counts
from dpbayes.tables.engine import Column, Kind

LEAST, MOST = 0.93, 0.98
ALLOWANCE = 3.0
"""Standard errors of the simulation."""

NAMES, SHAPE = ("a", "b", "c"), (2, 3, 4)
ROWS = 2400
MANY = 8
"""Rows of one person in the worlds with repeated people."""

FIXED = np.random.default_rng(4).dirichlet(np.full(24, 1.5)).reshape(SHAPE)


@dataclass(frozen=True)
class Truth:
    """What intervals are about: the records, and the shares of rows in the population behind them."""

    records: np.ndarray
    shares: np.ndarray

    def table(self, marginal: dp.schema.Marginal, *, population: bool) -> np.ndarray:
        """Shares of a table, within rows where something is given; axes in its own order."""
        joint = _margin(self.shares if population else self.records / self.records.sum(), marginal.names)
        if not marginal.given:
            return joint
        of = tuple(range(len(marginal.given), joint.ndim))
        return joint / np.maximum(joint.sum(axis=of, keepdims=True), 1e-300)


def _margin(table: np.ndarray, names: Sequence[str]) -> np.ndarray:
    kept = [NAMES.index(name) for name in names]
    summed = table.sum(axis=tuple(place for place in range(3) if place not in kept))
    return summed.transpose([sorted(kept).index(place) for place in kept])


# -- worlds ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """People: how their rows come about, and what is public about them."""

    name: str
    people: Callable[[np.random.Generator, np.ndarray], Truth]
    rows: int = 1
    shares: np.ndarray | None = None
    """The population; drawn anew for every release if None."""
    once: bool = False
    """Whether it is public that a person has one row at each level of c."""

    def draw(self, rng: np.random.Generator) -> Truth:
        return self.people(rng, rng.dirichlet(np.ones(24)).reshape(SHAPE) if self.shares is None else self.shares)

    def schema(self, adjacency: str) -> dp.Schema:
        unit = dp.Unit(adjacency=adjacency, max_rows=self.rows)
        attributes = [
            dp.Attribute(name=name, categories=tuple(map(str, range(size))), unknown="0", missing="0")
            for name, size in zip(NAMES, SHAPE, strict=True)
        ]
        if self.once:
            attributes[2] = replace(attributes[2], max_rows=1)
        records = ROWS if adjacency == "replace-one" else None
        return dp.Schema(id="people", unit=unit, attributes=tuple(attributes), records=records)


def _tally(cells: np.ndarray) -> np.ndarray:
    return np.bincount(cells.ravel(), minlength=24).reshape(SHAPE)


def independent(rng: np.random.Generator, shares: np.ndarray) -> Truth:
    return Truth(rng.multinomial(ROWS, shares.ravel()).reshape(SHAPE), shares)


def alike(rng: np.random.Generator, shares: np.ndarray) -> Truth:
    return Truth(MANY * rng.multinomial(ROWS // MANY, shares.ravel()).reshape(SHAPE), shares)


def partly_alike(rng: np.random.Generator, shares: np.ndarray) -> Truth:
    own = rng.choice(24, (ROWS // MANY, 1), p=shares.ravel())
    fresh = rng.choice(24, (ROWS // MANY, MANY), p=shares.ravel())
    return Truth(_tally(np.where(rng.random(fresh.shape) < 0.5, own, fresh)), shares)


def unequal(rng: np.random.Generator, shares: np.ndarray) -> Truth:
    """From one to eight rows, all alike; a third level of b is three times as common among those with five or more."""
    number = np.arange(1, MANY + 1)
    chance = 0.7 ** (number - 1) * np.where(number < MANY, 0.3, 1.0)
    busy = shares * np.array([1.0, 1.0, 3.0])[:, None]
    laws = np.where((number >= 5)[:, None], busy.ravel() / busy.sum(), shares.ravel())
    found, left = np.zeros(24, dtype=np.int64), ROWS
    while left > 0:
        rows = min(int(rng.choice(number, p=chance)), left)
        found[rng.choice(24, p=laws[rows - 1])] += rows
        left -= rows
    weights = chance * number
    return Truth(found.reshape(SHAPE), (weights @ laws / weights.sum()).reshape(SHAPE))


def waves(rng: np.random.Generator, shares: np.ndarray) -> Truth:
    """Everybody answers once in each of four waves, c, and always the same."""
    answers = shares.sum(axis=2)
    each = rng.multinomial(ROWS // 4, answers.ravel()).reshape(SHAPE[:2])
    return Truth(np.repeat(each[:, :, None], 4, axis=2), np.repeat(answers[:, :, None], 4, axis=2) / 4)


def _opposed() -> np.ndarray:
    """Who has a=1 has b=0, and the other way round."""
    joint = np.zeros(SHAPE)
    joint[1, 0], joint[0, 1] = 0.12, 0.12
    joint[0, 2] = 0.01
    return joint / joint.sum()


WORLDS = {
    world.name: world
    for world in (
        World("independent", independent, shares=FIXED),
        World("independent, truth drawn", independent),
        World("opposed", independent, shares=_opposed()),
        World("alike", alike, rows=MANY, shares=FIXED),
        World("alike, truth drawn", alike, rows=MANY),
        World("alike and opposed", alike, rows=MANY, shares=_opposed()),
        World("partly alike", partly_alike, rows=MANY, shares=FIXED),
        World("unequal", unequal, rows=MANY, shares=FIXED),
        World("waves", waves, rows=4, shares=FIXED, once=True),
    )
}


class Held:
    """An engine for counts that are there already."""

    def __init__(self, records: np.ndarray) -> None:
        self.records = records

    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(name=name, kind=Kind.TEXT) for name in NAMES)

    def count(self, schema: dp.Schema, marginals: Iterable[dp.schema.Marginal]) -> tuple[Counts, ...]:
        return tuple(
            Counts(marginal=each, axes=each.axes(schema), array=_margin(self.records, each.names)) for each in marginals
        )

    def fingerprint(self, columns: Sequence[str]) -> str:
        raise AssertionError("nobody asks")


# -- products -------------------------------------------------------------------------------------------------

Asked = tuple[object, object]
"""A job and its target."""


@dataclass(frozen=True)
class Printed:
    """A release and what is behind it."""

    drawn: dp.Release
    truth: Truth

    @cached_property
    def release(self) -> dp.Release:
        return complete(self.drawn)

    @cached_property
    def posterior(self) -> dp.Posterior:
        return dp.Posterior(self.drawn)


Interval = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Lower ends, upper ends, truths."""


@dataclass(frozen=True)
class Product:
    """Something printed with an interval: the job that it comes with, and how to read it off a release."""

    name: str
    job: Callable[[float], Asked]
    read: Callable[[Printed], Iterator[Interval]]
    worlds: Callable[[World], bool] = lambda world: True


def crossed_tables(epsilon: float) -> Asked:
    return dp.Tables("a", "b", "b|a", "b,c", "a|c"), dp.ApproxDP(epsilon=epsilon, delta=1e-6)


def dirichlet_tables(epsilon: float) -> Asked:
    return dp.Tables("a", "b|a", "b,c", mechanism="dirichlet"), dp.ApproxDP(epsilon=epsilon, delta=1e-6)


def apart(epsilon: float) -> Asked:
    return dp.Tables("a,c", "b,c"), dp.PureDP(epsilon=epsilon)


def network(epsilon: float) -> Asked:
    return dp.jobs.Fit(model=dp.BayesNet(edges=(("a", "b"), ("c", "a")))), dp.ApproxDP(epsilon=epsilon, delta=1e-6)


@lru_cache
def posterior_by(mechanism: str, prior: float = 1.0) -> Callable[[float], Asked]:
    return lambda epsilon: (
        dp.PosteriorTable(
            marginal=dp.schema.Marginal(("b",)),
            mechanism=mechanism,  # type: ignore[arg-type]
            prior=(prior,),
            even_if_noise=True,
        ),
        dp.ApproxDP(epsilon=epsilon, delta=1e-6),
    )


def tables(part: str, *, given: bool) -> Callable[[Printed], Iterator[Interval]]:
    def read(printed: Printed) -> Iterator[Interval]:
        truth = printed.truth
        for table in printed.release.tables:
            if bool(table.marginal.given) == given and part in table.products:
                held = table.products[part]
                if part == "counts":
                    true = _margin(truth.records, table.marginal.names)
                else:
                    true = truth.table(table.marginal, population=part == "population")
                yield held.lower, held.upper, true.ravel()  # type: ignore[misc]

    return read


ONE = {
    "count(b='1')": lambda t: t[:, 1].sum(),
    "share(a='1')": lambda t: t[1].sum() / t.sum(),
    "share(b='2' | a='0')": lambda t: t[0, 2].sum() / t[0].sum(),
    "share(b='1', c='3')": lambda t: t[:, 1, 3].sum() / t.sum(),
}
"""Printed cells."""

SUMS = {
    "count(b in ('0', '2'), c != '1')": lambda t: t[:, [0, 2]][:, :, [0, 2, 3]].sum(),
    "share(b='1', c='0') - share(b='1', c='1')": lambda t: (t[:, 1, 0].sum() - t[:, 1, 1].sum()) / t.sum(),
    "2 * share(a='1') - share(b='0')": lambda t: (2 * t[1].sum() - t[:, 0].sum()) / t.sum(),
}

RATIOS = {
    "share(b in ('0', '1') | a='1')": lambda t: t[1, :2].sum() / t[1].sum(),
    "share(b='1' | a='1') - share(b='1' | a='0')": lambda t: t[1, 1].sum() / t[1].sum() - t[0, 1].sum() / t[0].sum(),
    "share(b='1' | c='0') / share(b='1' | c='1')": lambda t: (
        (t[:, 1, 0].sum() / t[:, :, 0].sum()) / (t[:, 1, 1].sum() / t[:, :, 1].sum())
    ),
    "count(b='1') / count(b='0')": lambda t: t[:, 1].sum() / t[:, 0].sum(),
}

MEASURED = {
    "count(b='0')": lambda t: t[:, 0].sum(),
    "count(b='2')": lambda t: t[:, 2].sum(),
    "share(b in ('0', '2'))": lambda t: t[:, [0, 2]].sum() / t.sum(),
    "count(b='1') / count(b='0')": RATIOS["count(b='1') / count(b='0')"],
}
"""Of a released posterior, whose last cell closes the sum."""

APART_SUMS = {
    "share(a='1') - share(b='1')": lambda t: (t[1].sum() - t[:, 1].sum()) / t.sum(),
    "share(a='1') + share(b='0')": lambda t: (t[1].sum() + t[:, 0].sum()) / t.sum(),
}

APART_RATIOS = {
    "share(a='1') * share(b='0')": lambda t: t[1].sum() * t[:, 0].sum() / t.sum() ** 2,
    "share(a='1') / share(b='1')": lambda t: t[1].sum() / t[:, 1].sum(),
    "share(a='1' | c='2') - share(b='1' | c='2')": lambda t: (t[1, :, 2].sum() - t[:, 1, 2].sum()) / t[:, :, 2].sum(),
}
"""Sums over tables that nobody crossed."""


def questions(asked: dict[str, Callable[[np.ndarray], float]], target: str) -> Callable[[Printed], Iterator[Interval]]:
    def read(printed: Printed) -> Iterator[Interval]:
        truth, posterior = printed.truth, printed.posterior
        table = truth.records if target == "records" else truth.shares * truth.records.sum()
        for question, value in asked.items():
            found = posterior.ask(question, target=target)  # type: ignore[arg-type]
            yield np.array([found.lower]), np.array([found.upper]), np.array([value(table)])

    return read


def nodes(printed: Printed) -> Iterator[Interval]:
    model = printed.drawn.model()
    for node in ("a", "b"):
        found = model.intervals(node)
        marginal = dp.schema.Marginal((node,), model.network.parents[node])
        yield found.lower.ravel(), found.upper.ravel(), printed.truth.table(marginal, population=True).ravel()


def one_row(world: World) -> bool:
    return world.rows == 1


def from_the_prior(world: World) -> bool:
    """Whether b has shares from Dir(8, 8, 8), the law over which a released posterior may promise an average."""
    return world.rows == 1 and world.shares is None


PARTS = ("counts", "empirical", "population")
"""Of a table: what ``tables`` reads, and all that a release holds with intervals."""

PRODUCTS = [
    *(Product(f"joint table, {part}", crossed_tables, tables(part, given=False)) for part in PARTS),
    *(Product(f"conditional table, {part}", crossed_tables, tables(part, given=True)) for part in PARTS[1:]),
    Product("dirichlet, counts", dirichlet_tables, tables("counts", given=False), one_row),
    Product("dirichlet, population", dirichlet_tables, tables("population", given=False), one_row),
    Product("dirichlet, conditional population", dirichlet_tables, tables("population", given=True), one_row),
    *(
        Product(f"question, {name}, {target}", crossed_tables, questions(asked, target))
        for (name, asked), target in crossed(
            {"one cell": ONE, "sum": SUMS, "ratio": RATIOS}.items(), ("records", "population")
        )
    ),
    *(
        Product(f"never crossed, {name}, {target}", apart, questions(asked, target))
        for (name, asked), target in crossed(
            {"sum": APART_SUMS, "ratio": APART_RATIOS}.items(), ("records", "population")
        )
    ),
    Product("network, population", network, nodes),
    *(
        Product(f"posterior by {mechanism}, {part}", posterior_by(mechanism), tables(part, given=False), one_row)
        for mechanism, part in crossed(("auto", "laplace", "improved-laplace"), ("counts", "population"))
    ),
    *(
        Product(
            f"posterior by hellinger, {part}", posterior_by("hellinger", 8.0), tables(part, given=False), from_the_prior
        )
        for part in ("counts", "population")
    ),
    *(
        Product(
            f"{mechanism} posterior as a measurement, {target}",
            posterior_by(mechanism),
            questions(MEASURED, target),
            one_row,
        )
        for mechanism, target in crossed(("laplace", "improved-laplace"), ("records", "population"))
    ),
]
"""Every product with an interval. A new one is one more line."""


# -- judgement ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stratum:
    """How often a product covered in a world at one ε."""

    product: str
    world: str
    adjacency: str
    epsilon: float
    rates: tuple[float, ...]
    """One share of intervals that held the truth for each release."""
    cells: int

    @property
    def rate(self) -> float:
        return math.fsum(self.rates) / len(self.rates)

    @property
    def error(self) -> float:
        """Of the simulation: cells of one release are not independent, releases are."""
        between = float(np.std(self.rates, ddof=1)) / math.sqrt(len(self.rates))
        return max(between, math.sqrt(0.95 * 0.05 / (len(self.rates) * self.cells)))

    @property
    def fault(self) -> str:
        if self.rate + ALLOWANCE * self.error < LEAST:
            return "too low"
        return "too high" if self.rate - ALLOWANCE * self.error > MOST else ""

    @property
    def wide(self) -> str:
        """The name of a bound that may cover more often than stated."""
        return next((name for name, applies in WIDE.items() if applies(self)), "")

    def __str__(self) -> str:
        said = " ".join(filter(None, (self.fault, self.wide and f"[{self.wide}]")))
        return (
            f"{self.product:38} {self.world:26} {self.adjacency:11} ε={self.epsilon:<5g}"
            f"{100 * self.rate:6.1f} ± {100 * self.error:.1f} %  {said}"
        )


def _repeated(stratum: Stratum) -> bool:
    return stratum.world in ("partly alike", "unequal", "waves") and stratum.product.endswith("population")


WIDE: dict[str, Callable[[Stratum], bool]] = {
    "whole numbers": lambda one: one.epsilon > 5 and one.product.endswith(("counts", "empirical", "records")),
    "rows of a person may be alike": _repeated,
    "overlap never published": lambda one: one.product.startswith("never") and one.product.endswith("population"),
}
"""Bounds that cover more often than stated where their worst case is not met, and where that is."""

UNPROMISED = {
    "models.several.combine": "labelled as measured; docs/reproduction/synthetic.md has its figures",
}
"""Intervals that say of themselves that they are no promise."""

READ = {
    "models.bayes_net.BayesNetModel.intervals": "network, population",
}
"""Functions of models that give intervals, and the product above that reads them or what they hand on."""


def covered(
    world: World, adjacency: str, epsilon: float, releases: int, products: Sequence[Product] = PRODUCTS
) -> list[Stratum]:
    """How often each product covers, over so many tables and releases."""
    schema, found = world.schema(adjacency), []
    wanted = [each for each in products if each.worlds(world) and _fits(each, adjacency)]
    for job in dict.fromkeys(each.job for each in wanted):
        plan = dp.Curator(Held(np.zeros(SHAPE)), schema).plan(*job(epsilon))
        own = [each for each in wanted if each.job is job]
        rates: dict[str, list[float]] = {each.name: [] for each in own}
        cells: dict[str, int] = {}
        for number in range(releases):
            truth = world.draw(np.random.default_rng([number, 5]))
            printed = Printed(
                dp.Curator(Held(truth.records), schema, seed=number).release(plan, estimates=False), truth
            )
            for each in own:
                hits = [(low <= true + 1e-9) & (true - 1e-9 <= high) for low, high, true in each.read(printed)]
                if hits:
                    joined = np.concatenate(hits)
                    rates[each.name].append(float(joined.mean()))
                    cells[each.name] = joined.size
        found += [
            Stratum(each.name, world.name, adjacency, epsilon, tuple(rates[each.name]), cells[each.name])
            for each in own
        ]
    return found


def _fits(product: Product, adjacency: str) -> bool:
    """Posteriors are of tables whose size is public."""
    return adjacency == "replace-one" or not product.name.startswith("posterior")


def judged(strata: Iterable[Stratum]) -> list[str]:
    """What is outside, a line each: too low, or too high without a name for it."""
    return [str(each) for each in strata if each.fault == "too low" or (each.fault and not each.wide)]
