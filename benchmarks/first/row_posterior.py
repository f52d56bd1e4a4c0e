"""The posterior of rows that share a distribution, and how strongly they share it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.first.cells import cell_posterior, conditioned
from benchmarks.first.lattice import representatives
from benchmarks.first.laws import CellPosterior
from benchmarks.first.mixture import Answer, Component, answer
from benchmarks.first.noise import Noise
from benchmarks.first.strength import Setting, relevant, settings, typical
from dpbayes._checks import Floats, Ints

BLOCK = 4096
"""Cells treated at once; longer rows are described by representatives."""

FITTED = 8192
"""The strength of the prior is fitted on so many cells, in the rows with the largest totals."""

NODES = 40
"""Nodes per cell."""

AVERAGED = 65536
"""Up to so many cells the answers are averaged over strengths; beyond, the strength is known well enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Some rows of a table: all their cells, or representatives of the cells of one long row."""

    values: Floats
    noise: Noise
    shares: Floats
    copies: Floats
    totals: Floats
    doubt: Floats
    independent: bool
    """Whether cells are left as they are under the tilt; in means of large tables that is enough."""
    spread: Callable[[Answer], dict[str, Floats]]

    def posterior(self, strength: Floats, totals: Floats) -> CellPosterior:
        return cell_posterior(
            self.noise,
            self.values,
            strength=strength[:, None] * self.shares,
            totals=totals,
            copies=self.copies,
            size=NODES,
        )

    def component(self, setting: Setting, number: int, strength: Floats, totals: Floats) -> Component:
        cells = self.posterior(strength, totals)
        return Component(
            setting=number,
            cells=cells if self.independent else conditioned(cells, totals, self.copies),
            shares=self.shares,
            strength=strength,
            totals=totals,
            weight=setting.weight,
            interval_weight=setting.interval_weight,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPosterior:
    """A conditional table, what is known of its row totals, and what its rows share."""

    values: Floats
    noise: Noise
    totals: Floats
    doubt: Floats
    """Standard deviations of the row totals; zero where they are public."""
    shares: Floats
    certainty: float
    """The records that the prior of the shares is worth."""

    def information(self, strength: float) -> Floats:
        """n′A/(n′ + A): the records that each row is worth as a witness of what the rows share.

        n′ = n/(1 + dν/(n(1 − Σm²))) is what is left of n records under noise of variance ν.
        Symbols: n totals, A strength, m shares, d columns.
        Source: docs/explanation/estimate.md, rows.
        Adjacency: none, this is post-processing.
        """
        noise = np.mean(self.noise.spread(self.totals[:, None] * self.shares) ** 2, axis=1) * self.shares.size
        uneven = max(1 - float(self.shares @ self.shares), 1e-9)
        left = self.totals**2 / np.maximum(self.totals + noise / uneven, 1e-300)
        return np.asarray(left * strength / (left + strength))

    def settings(self) -> list[Setting]:
        """Strengths of the prior that the release leaves possible.

        The shape m was estimated from the same rows. Its uncertainty enters by Laplace's method: ln P(x | A) loses
        ½(d − 1) ln(1 + M/A₀), with M the rows' information on m and A₀ the certainty of its prior.
        """
        fitted = np.sort(np.argsort(-self.totals, kind="stable")[: max(FITTED // self.shares.size, 1)])
        blocks = [self.block(rows) for rows in self.parts(fitted)]

        def log_evidence(strength: float, _: float) -> float:
            information = float(self.information(strength)[fitted].sum())
            return sum(
                float(block.posterior(np.full(block.totals.size, strength), block.totals).log_evidence.sum())
                for block in blocks
            ) - 0.5 * (self.shares.size - 1) * math.log1p(information / self.certainty)

        return settings([log_evidence], cells=self.shares.size, records=0.0)

    def predictive(self, strength: float) -> Floats:
        """A′ of every row: 1/A′ = 1/A + 1/(A₀ + Σ of the other rows' information), for intervals."""
        information = self.information(strength)
        others = np.maximum(information.sum() - information, 0.0) + self.certainty
        return np.asarray(1 / (1 / strength + 1 / others))

    def answers(self, found: list[Setting], level: float | None) -> dict[str, Floats]:
        """Answers for all rows, block by block."""
        found = [typical(found)] if self.values.size > AVERAGED else relevant(found)
        answers: dict[str, Floats] = {}
        predictive = [self.predictive(setting.strength) for setting in found]
        for rows in self.parts(np.arange(self.totals.size)):
            block = self.block(rows, independent=level is None and self.values.size > AVERAGED)
            components = [
                block.component(
                    replace(setting, interval_weight=0.0), number, np.full(rows.size, setting.strength), block.totals
                )
                for number, setting in enumerate(found)
                if setting.weight > 0
            ]
            if level is not None:
                components += [
                    block.component(
                        replace(setting, weight=0.0, interval_weight=share * setting.interval_weight),
                        number,
                        predictive[number][rows],
                        totals,
                    )
                    for totals, share in _possible(block.totals, block.doubt)
                    for number, setting in enumerate(found)
                    if setting.interval_weight > 0
                ]
            for name, part in block.spread(answer(components, level)).items():
                answers.setdefault(name, np.empty(self.values.shape))[rows] = part
        return answers

    def parts(self, rows: Ints) -> list[Ints]:
        """The given rows, a few at a time."""
        size = max(BLOCK // self.shares.size, 1)
        return [rows[start : start + size] for start in range(0, rows.size, size)]

    def block(self, rows: Ints, *, independent: bool = True) -> _Block:
        """The given rows; a single one if rows are long."""
        noise = self.noise.take((rows,), self.values.shape)
        if self.shares.size <= BLOCK:
            return _Block(
                values=self.values[rows],
                noise=noise,
                shares=self.shares[None],
                copies=np.ones((1, self.shares.size)),
                totals=self.totals[rows],
                doubt=self.doubt[rows],
                independent=independent,
                spread=Answer.arrays,
            )
        cells = representatives(self.values[rows[0]], self.shares, noise.reshaped((-1,)))
        return _Block(
            values=cells.values[None],
            noise=cells.noise,
            shares=cells.shares[None],
            copies=cells.copies[None],
            totals=self.totals[rows],
            doubt=self.doubt[rows],
            independent=independent,
            spread=lambda part: part.spread(cells),
        )


def _possible(totals: Floats, doubt: Floats) -> list[tuple[Floats, float]]:
    """Three totals with the given means and standard deviations, and their weights; one if there is no doubt."""
    if not doubt.any():
        return [(totals, 1.0)]
    step = math.sqrt(3) * doubt
    return [(totals, 2 / 3), (np.maximum(totals - step, 0.0), 1 / 6), (totals + step, 1 / 6)]
