"""From the posterior of the cells under several settings to one answer: means, and intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.first.intervals import node_interval, share_interval
from benchmarks.first.lattice import Representatives
from benchmarks.first.laws import CellPosterior
from dpbayes._checks import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """The posterior of rows × cells under one setting: a strength of the prior and a total for each row."""

    setting: int
    """Components with the same number have the same strengths and shares."""
    cells: CellPosterior
    shares: Floats
    """The shape m of the prior."""
    strength: Floats
    totals: Floats
    weight: float
    """In means."""
    interval_weight: float
    """In intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Everything that is said about rows × cells."""

    counts: Floats
    variance: Floats
    empirical: Floats
    population: Floats
    intervals: dict[str, tuple[Floats, Floats]]
    """Of counts, empirical and population; nothing if no level was asked for."""

    def arrays(self) -> dict[str, Floats]:
        """All of it by name, the ends of intervals as ``counts lower`` and so on."""
        ends = {
            f"{name} {side}": end
            for name, interval in self.intervals.items()
            for side, end in zip(("lower", "upper"), interval, strict=True)
        }
        return {"counts": self.counts, "empirical": self.empirical, "population": self.population} | ends

    def spread(self, cells: Representatives) -> dict[str, Floats]:
        """All of it by name for the real cells of one row."""
        return {
            name: (cells.spread_shares if name.startswith("population") else cells.spread)(part[0])
            for name, part in self.arrays().items()
        }


def answer(components: list[Component], level: float | None) -> Answer:
    """Average over the components.

    E[p] = Σ w (E[c] + A m)/(n + A)
    Symbols: w weight, c counts, A strength, m shares, n totals.
    Source: docs/explanation/estimate.md, products: the mean of p ~ Dirichlet(A m + c).
    Adjacency: none, this is post-processing.
    """
    counts, squares, empirical, population = (np.zeros_like(components[0].cells.mean) for _ in range(4))
    for part in components:
        totals, strength = np.maximum(part.totals, 1e-9)[:, None], part.strength[:, None]
        counts += part.weight * part.cells.mean
        squares += part.weight * (part.cells.variance + part.cells.mean**2)
        empirical += part.weight * part.cells.mean / totals
        population += part.weight * (part.cells.mean + strength * part.shares) / (totals + strength)
    counted = [part for part in components if part.interval_weight > 0]
    return Answer(
        counts=counts,
        variance=np.maximum(squares - counts**2, 0.0),
        empirical=empirical,
        population=population,
        intervals={} if level is None else _intervals(counted, level),
    )


def _intervals(components: list[Component], level: float) -> dict[str, tuple[Floats, Floats]]:
    """Intervals of counts, of their shares of the total, and of p ~ Beta(c + A m, n − c + A(1 − m)) given c."""
    shape = components[0].cells.mean.shape

    def joined(arrays: list[Floats]) -> Floats:
        return np.concatenate(arrays, axis=-1).reshape(shape[0] * shape[1], -1)

    def ends(interval: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        return interval[0].reshape(shape), interval[1].reshape(shape)

    totals = [np.maximum(part.totals, 1e-9)[:, None, None] for part in components]
    nodes = joined([part.cells.nodes for part in components])
    spans = joined([np.where(part.cells.spans > 1.5, part.cells.spans, 0.0) for part in components])
    mass = joined([part.interval_weight * part.cells.mass for part in components])
    per_total = joined([np.ones_like(part.cells.nodes) / total for total, part in zip(totals, components, strict=True)])
    most = np.broadcast_to(np.max(totals, axis=0)[..., 0], shape).ravel()
    mixtures = []
    for setting in dict.fromkeys(part.setting for part in components):
        alike = [(part, total) for part, total in zip(components, totals, strict=True) if part.setting == setting]
        strength, shares = alike[0][0].strength[:, None, None], alike[0][0].shares[..., None]
        prior, rest = strength * shares, strength * (1 - shares)
        mixtures.append(
            (
                joined([part.cells.nodes + prior for part, _ in alike]),
                joined([np.maximum(total - part.cells.nodes, 0.0) + rest for part, total in alike]),
                joined([part.interval_weight * part.cells.mass for part, _ in alike]),
            )
        )
    return {
        "counts": ends(node_interval(nodes, spans, mass, level, most)),
        "empirical": ends(node_interval(nodes * per_total, spans * per_total, mass, level, np.ones(most.size))),
        "population": ends(share_interval(mixtures, level)),
    }
