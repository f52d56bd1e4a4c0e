"""How far a naive Bayes model may trust itself: one number, chosen privately.

Attributes that depend on each other count the same evidence twice, so naive Bayes is too sure. Only the records can
tell how much: the tables of a model say nothing about it. The exponential mechanism picks the power τ of the
likelihood, π·Πθ^τ, among public candidates by its clipped logarithmic loss; τ = 0 predicts the class shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dpbayes._checks import Floats, Ints
from dpbayes.domain.schema import Schema
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import InvalidArgument
from dpbayes.fitting import fit
from dpbayes.mechanisms import randomness
from dpbayes.mechanisms.stated import Stated
from dpbayes.models.naive_bayes import NaiveBayes, NaiveBayesModel
from dpbayes.privacy.calibrate import Family, calibrate
from dpbayes.privacy.cost import Priced
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.tables.engine import Engine

CANDIDATES = (0.0, 0.125, 0.25, 0.5, 1.0)
"""Powers of the likelihood: few, so that a small budget can still tell them apart."""

PART = 10
"""One part in so many of the budget goes to the choice."""


def choice_cost(target: Guarantee, unit: PrivacyUnit) -> Stated:
    """The pure ε that costs one part of the target: a tenth, by the simple composition rule of its notion."""
    family = Family(
        name="exponential mechanism",
        make=lambda epsilon: Stated(
            epsilon_stated=epsilon, delta_stated=0.0, unit=unit, what="power of a naive Bayes likelihood"
        ),
        larger_is_safer=False,
    )
    return calibrate(family, target.share(PART))


def fit_tempered(
    spec: NaiveBayes,
    *,
    engine: Engine,
    coded: Mapping[str, Ints],
    schema: Schema,
    target: Guarantee,
    alongside: tuple[Priced, ...] = (),
    seed: int | None = None,
    **options: Any,
) -> NaiveBayesModel:
    """Fit naive Bayes and choose its temperature, both under one target. ``coded`` has the same records as ``engine``.

    A person column is refused: only the engine can hold people to their number of rows.
    """
    if schema.person is not None:
        raise InvalidArgument(
            "temperature: with a person column only the engine knows which rows to keep. Fit without a temperature."
        )
    cost = choice_cost(target, schema.unit)
    model = fit(spec, engine=engine, schema=schema, target=target, seed=seed, alongside=(*alongside, cost), **options)
    rng = None if seed is None else np.random.default_rng([seed, 1])
    return replace(model, temperature=choose_temperature(model, coded, coded[spec.target], cost, rng))


def choose_temperature(
    model: NaiveBayesModel,
    coded: Mapping[str, Ints],
    labels: Ints,
    cost: Stated,
    rng: np.random.Generator | None = None,
) -> float:
    """τ with probability ∝ exp(−ε·Σ_i min(ℓ_i(τ), B)/(2Bm)): ε-DP, as one person moves the sum by at most B·m.

    Symbols: ℓ logarithmic loss of record i, B = 3 + ln C its bound, C classes, m rows per person, ε of the cost.
    Source: exponential mechanism, [MT07] theorem 6; the loss of a record lies in [0, B].
    Adjacency: both; a replaced record moves the sum by at most B, as an added one does.
    """
    log_likelihood = model.log_likelihood(coded)
    kept = labels < log_likelihood.shape[1]
    if not kept.all():
        log_likelihood, labels = log_likelihood[kept], labels[kept]
    # everything is relative to the true class: the loss of a record is ln Σ_j exp(advantage of class j)
    ahead = log_likelihood - log_likelihood[np.arange(len(labels)), labels][:, None]
    prior = model.class_log_prior[: log_likelihood.shape[1]]
    bound = 3.0 + float(np.log(log_likelihood.shape[1]))
    losses = [_clipped_loss(power * ahead, prior, labels, bound) for power in CANDIDATES]
    scores = -np.array(losses) * cost.epsilon_stated / (2.0 * bound * cost.unit.max_rows)
    chances = np.exp(scores - scores.max())
    return CANDIDATES[int(randomness.generator(rng).choice(len(CANDIDATES), p=chances / chances.sum()))]


def _clipped_loss(ahead: Floats, prior: Floats, labels: Ints, bound: float) -> float:
    """Σ_i min(ln Σ_j π_j/π_y · e^{a_ij}, B), a the advantage of each class over the true one."""
    odds = np.exp(np.minimum(ahead, bound + prior.max() - prior.min() + 1.0)) @ np.exp(prior)
    return float(np.minimum(np.log(odds) - prior[labels], bound).sum())
