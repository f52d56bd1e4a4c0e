"""The target given all other attributes at once: the logistic regression that agrees with every pair of theirs.

Tables of pairs say how the target goes with each other attribute, and nothing of how it goes with several together.
Classes fill that gap by chance. Of all laws with the same pairs the logistic one has the largest entropy: it adds
nothing that was not measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpbayes.base.checks import Floats, Ints
from dpbayes.models.mixture import SMALL
from dpbayes.models.network import pick


def pairs_of(weights: Floats, laws: Mapping[str, Floats], target: str) -> dict[str, Floats]:
    """The tables of each attribute with the target, as classes have them: levels × levels of the target."""
    joint = weights[:, None] * laws[target]
    return {name: law.T @ joint for name, law in laws.items() if len(law) > 1 and name != target}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Regression:
    """Effects of each level of each attribute on the log odds of the target."""

    pairs: dict[str, Floats]
    """For each attribute, its table with the target: levels × levels of the target."""
    effects: tuple[Floats, ...]
    """In the same order: effects of levels × levels of the target."""
    constant: Floats
    records: dict[str, Ints]
    """Records of the model, in which tables of three attributes and more are averaged."""

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that the target depends on."""
        return tuple(self.pairs)

    @classmethod
    def of(
        cls,
        weights: Floats,
        laws: Mapping[str, Floats],
        target: str,
        pairs: Mapping[str, Floats],
        total: float,
        rng: np.random.Generator,
        *,
        size: int = 20_000,
    ) -> Regression:
        """Least Σ_i ln Σ_y exp(η_y(x_i))/n − Σ_y,a m(y, a)·β_y(a) + ‖β‖²/(2N).

        Where the gradient is nothing, the mean of P(y | x) over records with x_j = a is the share of y that their pair
        says. Symbols: x_i records of the classes, n (``size``) of them, η_y(x) = Σ_j β_y(x_j), m(y, a) the share of y
        in row a of a pair times the share of a among the x_i, N records of the table: a unit normal law of each β.
        Source: docs/explanation/synthetic.md, the target.
        Adjacency: none, this is post-processing.
        """
        from scipy import sparse  # not loaded by releases that fit nothing
        from scipy.optimize import minimize
        from scipy.special import logsumexp

        names = tuple(pairs)
        classes = pick(weights[None], np.zeros(size, dtype=np.int64), rng, even=True)
        records = {name: pick(laws[name], classes, rng, even=True) for name in names}
        starts = np.concatenate([[0], np.cumsum([laws[name].shape[1] for name in names])])
        columns = np.stack([records[name] + starts[place] for place, name in enumerate(names)], axis=1)
        ends = np.arange(size + 1) * len(names)
        seen = sparse.csr_matrix((np.ones(columns.size), columns.ravel(), ends), shape=(size, int(starts[-1])))
        joint = np.concatenate([pairs[name] for name in names])
        given = joint / np.maximum(joint.sum(axis=1, keepdims=True), SMALL)
        wanted = given * (np.asarray(seen.sum(axis=0)).ravel() / size)[:, None]
        base = np.log(np.maximum(weights @ laws[target], SMALL))

        def loss(flat: Floats) -> tuple[float, Floats]:
            effects = flat.reshape(wanted.shape)
            scores = seen @ effects + base
            top = logsumexp(scores, axis=1, keepdims=True)
            gradient = seen.T @ np.exp(scores - top) / size - wanted + effects / total
            value = float(top.mean()) - float((wanted * effects).sum()) + float((effects**2).sum()) / (2.0 * total)
            return value, gradient.ravel()

        found = minimize(loss, np.zeros(wanted.size), jac=True, method="L-BFGS-B", options={"maxiter": 50})
        effects = np.split(np.asarray(found.x).reshape(wanted.shape), starts[1:-1])
        return cls(pairs=dict(pairs), effects=tuple(effects), constant=base, records=records)

    def probabilities(self, records: Mapping[str, Ints]) -> Floats:
        """P(y | x), records × levels of the target."""
        scores = np.tile(self.constant, (len(records[self.names[0]]), 1))
        for name, effects in zip(self.names, self.effects, strict=True):
            scores += effects[records[name]]
        scores -= scores.max(axis=1, keepdims=True)
        found = np.exp(scores)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def drawn(self, records: Mapping[str, Ints], rng: np.random.Generator, *, even: bool = False) -> Ints:
        """A level of the target for each record; ``even`` spreads them over records of like probabilities."""
        shares = np.cumsum(self.probabilities(records), axis=1)
        uniform = rng.random(len(shares))
        if even:
            ranks = np.empty(len(shares))
            ranks[np.argsort(shares[:, 0], kind="stable")] = np.arange(len(shares))
            uniform = (uniform[0] + ranks * (np.sqrt(5.0) - 1.0) / 2.0) % 1.0  # the golden ratio spreads any run evenly
        return np.asarray(np.minimum((uniform[:, None] > shares).sum(axis=1), shares.shape[1] - 1))

    def given(self, names: Sequence[str], otherwise: Floats) -> Floats:
        """P(y | these attributes), averaged over records; ``otherwise`` counts as one record more in each cell."""
        shape = otherwise.shape[:-1]
        cells = np.ravel_multi_index(tuple(self.records[name] for name in names), shape)
        shares = self.probabilities(self.records)
        size = int(np.prod(shape))
        sums = np.stack([np.bincount(cells, weights=column, minlength=size) for column in shares.T], axis=1)
        found = (sums + otherwise.reshape(size, -1)) / (np.bincount(cells, minlength=size)[:, None] + 1.0)
        return np.asarray(found.reshape(otherwise.shape))
