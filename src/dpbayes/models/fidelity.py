"""How well synthetic records agree with what was released, and predictions with known answers.

A report on records reads nothing private and is free. Scores of predictions on private records are sensitive: use
public ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.models.model import Published, noise_distance
from dpbayes.schema.attribute import MISSING, OTHER, Attribute
from dpbayes.schema.labels import codes


def fidelity(published: Published, columns: Mapping[str, object]) -> dict[str, Any]:
    """Total variation between the records' marginals and the released ones, one and two attributes at a time.

    A released table is noisy itself: ``noise`` is the distance that its noise alone would make, so that a distance of
    that size is as good as it gets. Distances to the private table are a release of their own: ask the curator for one.
    Of each size at most 50 marginals are listed.
    """
    schema = published.schema
    coded = {name: codes(schema[name], columns[name]) for name in columns if name in schema.names}
    one: dict[str, dict[str, float]] = {}
    two: dict[str, dict[str, float]] = {}
    for table in published.tables:
        names = table.marginal.names
        for size, found in ((1, one), (2, two)):
            for chosen in combinations(names, size):
                key = ",".join(sorted(chosen))
                if not set(chosen) <= set(coded) or (len(found) >= 50 and key not in found):
                    continue
                axes = tuple(axis for axis, name in enumerate(names) if name not in chosen)
                released, variance = table.counts.sum(axis=axes), table.variance.sum(axis=axes)
                released = _as_written(released, [schema[name] for name in chosen])
                total = float(published.records or max(released.sum(), 1.0))
                entry = {
                    "distance": _distance([coded[name] for name in chosen], released / total),
                    "noise": noise_distance(variance, total),
                }
                if key not in found or entry["noise"] < found[key]["noise"]:
                    found[key] = entry
    return {"one-way": one, "two-way": two, "guarantee": dict(published.releases[0].promise.record())}


def expected_distances(published: Published) -> dict[tuple[str, str], float]:
    """For every pair of attributes, the total variation to expect between the private table and a measured one.

    It follows from the noise alone: Σ sd/(N·√(2π)) over the cells of the pair, by the variances of the joint posterior.
    A model draws on all pairs and is usually nearer. A pair that no table holds is missing: nothing is known of it.
    """
    joint = published.posterior.joint
    total = max(joint.total, 1.0)
    found: dict[tuple[str, str], float] = {}
    for one, other in combinations(published.schema.names, 2):
        if joint.estimable((one, other)):
            found[one, other] = noise_distance(joint.linear((one, other))[1], total)
    return found


def shortfall(model: Any) -> list[str]:
    """Sentences about what the records of a model cannot show, from what was published."""
    found = []
    if model.form == "independent columns" and len(model.laws) > 1:
        buys = "More ε or fewer attributes" if model.spec.target else "More ε, fewer attributes or a target"
        found.append(
            "No pair of attributes was measured, so the columns of these records are independent of each other. "
            f"{buys} may add pairs."
        )
    elif model.form == "naive Bayes":
        found.append(
            "Only pairs with the target were measured, so all else depends on the target alone. More ε or fewer "
            "attributes may add the other pairs."
        )
    joint = model.published.posterior.joint
    noise = np.mean([noise_distance(joint.linear((name,))[1], max(joint.total, 1.0)) for name in model.laws])
    if noise > 1.0:
        found.append(
            f"Noise is about {noise:.2g} times what a table of one attribute holds, so these records say "
            f"almost nothing. Ask for about {int(np.ceil(4 * noise))} times the ε, or for fewer attributes."
        )
    return found


def _as_written(released: Floats, attributes: Sequence[Attribute]) -> Floats:
    """A number outside all bins is written as missing, so the two are one level to whoever reads the records."""
    for axis, attribute in enumerate(attributes):
        if attribute.edges and {MISSING, OTHER} <= set(attribute.levels):
            released = np.moveaxis(released.copy(), axis, 0)
            missing, other = (attribute.levels.index(level) for level in (MISSING, OTHER))
            released[missing] += released[other]
            released[other] = 0.0
            released = np.moveaxis(released, 0, axis)
    return released


def _distance(columns: list[Ints], shares: Floats) -> float:
    """Total variation between the shares of these records and released ones."""
    cells = np.ravel_multi_index(tuple(columns), shares.shape)
    own = np.bincount(cells, minlength=shares.size).reshape(shares.shape) / max(len(cells), 1)
    return float(0.5 * np.abs(own - shares).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Cross-entropy in nats, accuracy, and the calibration curve of the most probable class."""

    records: int
    cross_entropy: float
    accuracy: float
    confidence: tuple[float, ...]
    """Mean predicted probability of every bin that has records."""
    correct: tuple[float, ...]
    """How often the prediction was right there."""
    shares: tuple[float, ...]
    """Which part of the records lies there."""


def scores(log_proba: Floats, labels: Ints) -> Scores:
    """Score predictions ln P(class | record) against the true classes; records of other classes are left out.

    >>> import numpy as np
    >>> found = scores(np.log([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0]))
    >>> found.accuracy, round(found.cross_entropy, 3)
    (0.5, 0.857)
    """
    known = labels < log_proba.shape[1]
    log_proba, labels = log_proba[known], labels[known]
    if not len(labels):
        raise InvalidArgument("scores: no record has a class that the model knows.")
    best = log_proba.argmax(axis=1)
    confidence, correct = np.exp(log_proba.max(axis=1)), best == labels
    position = np.minimum((confidence * 10).astype(np.int64), 9)
    filled = np.unique(position)
    return Scores(
        records=len(labels),
        cross_entropy=float(-log_proba[np.arange(len(labels)), labels].mean()),
        accuracy=float(correct.mean()),
        confidence=tuple(float(confidence[position == bin_].mean()) for bin_ in filled),
        correct=tuple(float(correct[position == bin_].mean()) for bin_ in filled),
        shares=tuple(float((position == bin_).mean()) for bin_ in filled),
    )
