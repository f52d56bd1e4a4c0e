"""How far a naive Bayes model may trust itself: one number, chosen privately.

Attributes that depend on each other count the same evidence twice, so naive Bayes is too sure. Only the records can
tell how much: the tables of a model say nothing about it. The exponential mechanism picks the power τ of the
likelihood, π·Πθ^τ, among public candidates by its clipped logarithmic loss; τ = 0 predicts the class shares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpbayes.base.checks import Ints
from dpbayes.mechanisms.selection import Selection, numbers_below
from dpbayes.models.naive_bayes import NaiveBayesModel
from dpbayes.tables.engine import CodingEngine

CANDIDATES = (0.0, 0.125, 0.25, 0.5, 1.0)
"""Powers of the likelihood: few, so that a small budget can still tell them apart."""

GRAINS = 2**20
"""The loss of a record is rounded to this many parts of its bound: sums are then whole numbers, and exact."""


FOUND, SURE = 0.1, 0.95
"""A choice is worth its price if it is sure to come this near to the best candidate, in nats per record.

A tenth of a nat is a tenth of the probability of the true class. Fixed before anything was measured.
"""


def worth_it(selection: Selection, *, records: int | None, classes: int) -> bool:
    """ε·N·η/(B·m) ≥ ln((k−1)/β), or with 2m for m if replaced: then the choice is within η of the best, but for β

    A candidate that is worse by η per record, Nη in all, is drawn at most exp(−εNη/R) as often as the best one.

    Symbols: ε sharpness, N records, η FOUND, B = 3 + ln C the bound of a loss, C classes, m rows per person, k
    candidates, β = 1 − SURE, R as in choose_temperature.
    Source: docs/explanation/models.md, the temperature; [MT07] theorem 6 for the exponential mechanism in general.
    Adjacency: both, as stated.

    >>> from dpbayes import PrivacyUnit
    >>> selection = Selection(sharpness=0.1, unit=PrivacyUnit(adjacency="replace-one"))
    >>> worth_it(selection, records=1000, classes=2), worth_it(selection, records=10_000, classes=2)
    (False, True)
    """
    if records is None:
        return False
    moved = selection.unit.max_rows * (2 if selection.unit.replaces else 1)
    lead = selection.sharpness * records * FOUND / ((3.0 + math.log(classes)) * moved)
    return lead >= math.log((len(CANDIDATES) - 1) / (1.0 - SURE))


def choose_temperature(
    model: NaiveBayesModel, table: CodingEngine, selection: Selection, rng: np.random.Generator | None = None
) -> float:
    """τ with probability ∝ exp(−ε·Σ_i min(ℓ_i(τ), B)/R), each loss rounded to a grid: R = Bm, or 2Bm if replaced

    A person who is added adds to each sum between 0 and Bm; one who is replaced changes it by −Bm to Bm.

    Symbols: ℓ logarithmic loss of record i, B = 3 + ln C its bound, C classes, m rows per person, ε sharpness.
    Source: our proof, docs/explanation/proofs/selection.md; the rounded loss of a record lies in [0, B].
    Adjacency: both, as stated.
    """
    unit = selection.unit
    spread = GRAINS * unit.max_rows * (2 if unit.replaces else 1)
    target, scores = model.spec.target, np.zeros(len(CANDIDATES), dtype=np.int64)
    for coded in table.codes(model.published.schema, (*model.features, target)):
        scores += record_losses(model, coded, coded[target]).sum(axis=1)
    return CANDIDATES[selection.choose(scores.tolist(), spread=spread, below=numbers_below(rng))]


def record_losses(model: NaiveBayesModel, coded: Mapping[str, Ints], labels: Ints) -> Ints:
    """For every candidate the clipped loss of every record, in grains from 0 to GRAINS.

    A row depends on nothing but its own record and the published model: sums over records in floating point, or a
    matrix product whose rounding depends on the number of rows, would let one person move the losses of others.
    """
    log_likelihood = model.log_likelihood(coded)
    width = log_likelihood.shape[1]
    kept = labels < width
    log_likelihood, labels = log_likelihood[kept], labels[kept]
    # everything is relative to the true class: the loss of a record is ln Σ_j exp(advantage of class j)
    ahead = log_likelihood - log_likelihood[np.arange(len(labels)), labels][:, None]
    prior = model.class_log_prior[:width]
    bound = 3.0 + math.log(width)
    highest = bound + float(prior.max() - prior.min()) + 1.0  # no loss below the bound has an advantage above this
    losses = np.empty((len(CANDIDATES), len(labels)), dtype=np.int64)
    for row, power in enumerate(CANDIDATES):
        odds = np.zeros(len(labels))
        for position in range(width):
            odds += np.exp(np.minimum(power * ahead[:, position], highest) + prior[position])
        parts = np.nan_to_num((np.log(odds) - prior[labels]) / bound, nan=1.0)
        losses[row] = np.rint(np.clip(parts, 0.0, 1.0) * GRAINS).astype(np.int64)
    return losses
