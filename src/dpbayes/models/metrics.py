"""How good a model is on records with known answers. On private records every result is sensitive: use public ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument


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


def scores(log_proba: Floats, labels: Ints, *, bins: int = 10) -> Scores:
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
    position = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    filled = np.unique(position)
    return Scores(
        records=len(labels),
        cross_entropy=float(-log_proba[np.arange(len(labels)), labels].mean()),
        accuracy=float(correct.mean()),
        confidence=tuple(float(confidence[position == bin_].mean()) for bin_ in filled),
        correct=tuple(float(correct[position == bin_].mean()) for bin_ in filled),
        shares=tuple(float((position == bin_).mean()) for bin_ in filled),
    )
