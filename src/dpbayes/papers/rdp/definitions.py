"""[RDP] sections 1, 2 and 5: divergences, the Dirichlet mechanism as an exponential mechanism, and the classifiers.

Symbols: P and Q laws, f counts or another vector, N their sum, d their number, y a distribution, r weight, α alpha, λ
order, ε epsilon; N_jc counts, θ and π shares, K the attributes beside the class, so that K + 1 tables are charged; a
network of n nodes has K = n − 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, xlogy

from dpbayes.base import checks
from dpbayes.base.checks import Floats, non_negative, positive
from dpbayes.base.errors import InvalidArgument
from dpbayes.mechanisms import noise
from dpbayes.mechanisms.utility import distribution
from dpbayes.models.bayes_net import BayesNet
from dpbayes.models.naive_bayes import NaiveBayes
from dpbayes.papers.checked import above_one, counted, equal, found, same_size, states, vector
from dpbayes.papers.result import Result
from dpbayes.privacy.bounds import trigamma
from dpbayes.privacy.guarantee import RDP
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Adjacency, Unit
from dpbayes.schema.values import is_missing, plain

if TYPE_CHECKING:
    from dpbayes.ledger.ledger import Ledger
    from dpbayes.models.model import Model, ModelSpec

__all__ = [
    "bayes_net", "cross_entropy", "definition_2_1", "definition_2_2", "definition_2_3", "dirichlet_mechanism",
    "equation_2", "equation_3", "equation_4", "equation_7", "equation_8", "equation_9", "equation_13", "gaussian", "kl",
    "laplace", "lemma_1", "naive_bayes", "privacy_loss",
]  # fmt: skip


def _losses(owner: str, P: ArrayLike, Q: ArrayLike) -> tuple[Floats, Floats]:
    """P(y) and ln P(y)/Q(y) where P(y) > 0; ∞ where Q(y) is zero."""
    p, q = same_size(owner, distribution(owner, P), distribution(owner, Q))
    with np.errstate(divide="ignore"):
        return p[p > 0], np.log(p[p > 0]) - np.log(q[p > 0])


@states("R1")
def kl(p: ArrayLike, q: ArrayLike) -> Result[float]:
    """D_KL(p‖q) = Σ p·ln(p/q), in nats
    Source: [RDP] section 1, whose example is printed in base 10.

    >>> round(float(kl([0.5, 0.5], [0.4, 0.6])), 4)
    0.0204
    """
    chance, loss = _losses("kl", p, q)
    return equal(float((chance * loss).sum()))


@states("R3 T12", epsilon=non_negative)
def definition_2_1(P: ArrayLike, Q: ArrayLike, *, epsilon: float) -> Result[float]:
    """δ(ε) = max Σ (P − e^ε·Q)⁺ over both directions: the least δ with which P and Q are (ε, δ)-close
    Source: [RDP] definition 2.1, equation (1); [tCDP] definition 2.1.
    """
    sides = (_losses("definition_2_1", *pair) for pair in ((P, Q), (Q, P)))
    return equal(max(float((chance * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum()) for chance, loss in sides))


@states("R4 T13", order=above_one)
def definition_2_2(P: ArrayLike, Q: ArrayLike, *, order: float) -> Result[float]:
    """D_λ(P‖Q) = ln Σ P^λ·Q^(1−λ)/(λ−1), ∞ where P has an outcome that Q has not
    Source: [RDP] definition 2.2; [tCDP] definition 2.2.
    """
    chance, loss = _losses("definition_2_2", P, Q)
    if math.isinf(order):
        return equal(float(loss.max()))
    return equal(float(np.logaddexp.reduce(np.log(chance) + (order - 1.0) * loss) / (order - 1.0)))


@states("R5", order=above_one)
def definition_2_3(P: ArrayLike, Q: ArrayLike, *, order: float) -> Result[float]:
    """ε(λ) = max(D_λ(P‖Q), D_λ(Q‖P)): P and Q are (λ, ε)-RDP apart
    Source: [RDP] definition 2.3.
    """
    return equal(max(float(definition_2_2(P, Q, order=order)), float(definition_2_2(Q, P, order=order))))


@states("R6")
def privacy_loss(P: ArrayLike, Q: ArrayLike) -> Result[Floats]:
    """Z = ln P(y)/Q(y) at each outcome of P; ``probability`` is P(y) there, ``mean`` is D_KL(P‖Q)
    Source: [RDP] section 2.1; [tCDP] section 2.1.
    """
    chance, loss = _losses("privacy_loss", P, Q)
    return equal(loss, probability=chance, mean=float((chance * loss).sum()))


@states("R7")
def lemma_1(*pairs: tuple[float, float]) -> Result[float]:
    """(λ₁, ε₁) and (λ₂, ε₂) compose to (min λ, Σ ε): ``order`` and ``epsilon``, for any number of pairs
    Source: [RDP] lemma 1.
    """
    orders, spent = pairs_of("lemma_1", pairs)
    for order in orders:
        checks.order("lemma_1", order)
    return found(math.fsum(spent), order=float(min(orders)), epsilon=math.fsum(spent))


def pairs_of(owner: str, pairs: tuple[tuple[float, float], ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The first numbers of pairs, and the second ones, which are prices."""
    if not pairs or any(not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in pairs):
        raise InvalidArgument(f"{owner}: expected one or more pairs of numbers.")
    first, second = zip(*pairs, strict=True)
    for value in second:
        non_negative(owner, price=value)
    return first, second


@states("R8")
def equation_2(loss: ArrayLike, *, beta: float, mu: ArrayLike | None = None) -> Result[Floats]:
    """P(y) ∝ e^(−β·ℓ(y))·μ(y), the exponential mechanism over finitely many outcomes; μ is even by default
    Source: [RDP] equation (2).
    """
    losses = vector("equation_2", "loss", loss)
    base = np.ones(losses.size) if mu is None else same_size("equation_2", losses, counted("equation_2", mu))[1]
    weights = base * np.exp(-beta * np.maximum(losses - losses[base > 0].min(), 0.0))
    return equal(weights / weights.sum())


@states("R9 T20")
def dirichlet_mechanism(
    f: ArrayLike, *, r: float, alpha: ArrayLike, rng: np.random.Generator | None = None
) -> Result[Floats]:
    """ℓ = D_KL, β = r·N and μ = Dirichlet(α) give y ~ Dirichlet(r·f + α): the value is r·f + α, ``draw`` is one y
    Source: [RDP] section 2.2, first display; [tCDP] section 2.3.
    """
    shapes = parameters("dirichlet_mechanism", f, r, alpha)
    drawn = noise.standard_gamma(shapes, rng)
    return equal(shapes, parameters=shapes, draw=drawn / drawn.sum())


def parameters(owner: str, f: ArrayLike, r: float, alpha: ArrayLike) -> Floats:
    """The value r·f + α."""
    cells, each = vector(owner, "counts", f), np.asarray(alpha, dtype=np.float64)
    return np.asarray(r * cells + (each if each.ndim == 0 else same_size(owner, cells, each)[1]))


def mean_error(owner: str, f: ArrayLike, r: float, alpha: ArrayLike) -> Floats:
    """E[y_i] − f_i/N, with E[y_i] = (r·f_i + α_i)/(r·N + Σα)."""
    cells, shapes = counted(owner, f), parameters(owner, f, r, alpha)
    return np.asarray(shapes / shapes.sum() - cells / cells.sum())


@states("R10", alpha=positive)
def equation_3(f: ArrayLike, *, r: float, alpha: float) -> Result[Floats]:
    """|E[y_i] − f_i/N| = α·|N − d·f_i|/(N·(r·N + d·α)); ``signed`` has the sign
    Source: [RDP] equation (3).
    """
    signed = mean_error("equation_3", f, r, alpha)
    return equal(np.abs(signed), signed=signed)


@states("R12")
def cross_entropy(f: ArrayLike, y: ArrayLike) -> Result[float]:
    """−Σ f·ln y/N, which is the ``entropy`` of f/N and D_KL(f/N‖y) above it
    Source: [RDP] section 2.2, second application.
    """
    cells, law = same_size("cross_entropy", counted("cross_entropy", f), distribution("cross_entropy", y))
    shares = cells / cells.sum()
    return equal(float(-xlogy(shares, law).sum()), entropy=float(-xlogy(shares, shares).sum()))


@states("R14 R13 T21", x=positive)
def equation_4(x: float) -> Result[float]:
    """1/x + 1/(2x²) < ψ′(x) < 1/x + 1/x²: ``lower``, ``exact`` and ``upper``
    Source: [RDP] equation (4), section 2.3; [tCDP] section 2.4.
    """
    upper = 1.0 / x + 1.0 / x**2
    return found(upper, trigamma(x), lower=1.0 / x + 0.5 / x**2, upper=upper)


@states("R71", x=positive)
def equation_13(x: float) -> Result[float]:
    """ln(x − ½) < ψ(x) < ln x: ``lower``, ``exact`` and ``upper``; up to ½ nothing bounds it from below
    Source: [RDP] equation (13).
    """
    return found(math.log(x), float(digamma(x)), lower=math.log(x - 0.5) if x > 0.5 else -math.inf, upper=math.log(x))


@states("R42")
def equation_7(table: ArrayLike) -> Result[Floats]:
    """``pi``_j = N_j/N and ``theta``_jc = N_jc/N_j, from counts of classes (rows) by values (columns)
    Source: [RDP] equation (7).
    """
    counts = checks.counts("equation_7", table).astype(np.float64)
    if counts.ndim != 2 or not counts.any(axis=1).all():
        raise InvalidArgument("equation_7: expected a table of classes by values with a record in every class.")
    sizes = counts.sum(axis=1)
    theta = counts / sizes[:, None]
    return equal(theta, pi=sizes / sizes.sum(), theta=theta)


@states("R52 R11")
def equation_8(counts: ArrayLike, theta: ArrayLike) -> Result[float]:
    """LL(θ) = Σ N_jc·ln θ_jc, largest at θ = N_jc/N_c, where D_KL is least
    Source: [RDP] equation (8); section 2.2, first application.
    """
    seen, shares = checks.amounts("equation_8", counts), checks.amounts("equation_8", theta)
    if seen.shape != shares.shape or (shares > 1).any():
        raise InvalidArgument("equation_8: expected one probability for each count.")
    return equal(float(xlogy(seen, shares).sum()))


@states("R53")
def equation_9(counts: ArrayLike) -> Result[Floats]:
    """θ_jc = N_jc/N_c, for one row c of a node's table
    Source: [RDP] equation (9).
    """
    cells = counted("equation_9", counts)
    return equal(cells / cells.sum())


@states("R46 R55")
def gaussian(*, order: float, epsilon: float, K: int) -> Result[float]:
    """σ² = λ(K+1)/ε on each of the K + 1 tables, which cost (K+1)·λΔ₂²/(2σ²) = ε
    Source: [RDP] sections 5.1 and 5.2; [Mironov17] proposition 7.
    """
    variance = order * (K + 1) / epsilon
    return found(float(epsilon), (K + 1) * order / variance, variance=variance)


@states("R47 R56")
def laplace(*, order: float, epsilon: float, K: int) -> Result[float]:
    """B = √(2λ(K+1)/ε) on each of the K + 1 tables, which cost 2(K+1)·ln[(λe^((λ−1)/b) + (λ−1)e^(−λ/b))/(2λ−1)]/(λ−1)
    Source: [RDP] sections 5.1 and 5.2; [Mironov17] proposition 6.
    """
    scale, less, odds = math.sqrt(2.0 * order * (K + 1) / epsilon), order - 1.0, 2.0 * order - 1.0
    one = np.logaddexp(math.log(order / odds) + less / scale, math.log(less / odds) - order / scale)
    return found(float(epsilon), 2.0 * (K + 1) * float(one) / less, scale=scale)


def naive_bayes(
    rows: object, target: str | int, *, order: float = 5.0, epsilon: float = 1.0, schema: Schema | str | None = None,
    ledger: Ledger | str | None = None, public: bool = False,
) -> Model:  # fmt: skip
    """K + 1 draws of algorithm 1, each at ε/(K+1): the classes, and the values of each attribute for each class
    A frame is declared ``public``, or brings its ``schema`` and a ``ledger``, which is charged. An array of records by
    columns, which are then called 0, 1, …, counts as public. ``predict_proba(rows)`` is the display after (7).
    The print draws over the classes for each value; a classifier needs a draw over the values for each class.
    Source: [RDP] section 5.1.
    """
    spec = NaiveBayes(target=str(target), estimate="draw")
    return _fitted("naive_bayes", spec, rows, RDP(order=order, epsilon=epsilon), schema, ledger, public)


def bayes_net(
    rows: object, *, edges: Iterable[tuple[object, object]] = (), parents: Mapping[Any, Iterable[object]] | None = None,
    order: float = 5.0, epsilon: float = 1.0, schema: Schema | str | None = None, ledger: Ledger | str | None = None,
    public: bool = False,
) -> Model:  # fmt: skip
    """One draw of algorithm 1 for each of the n nodes given its parents, each at ε/n
    The graph is given by ``edges`` from parent to child, or by the ``parents`` of each node; the rest as in
    ``naive_bayes``. ``log_likelihood(rows)`` is equation (8).
    Source: [RDP] section 5.2.
    """
    if not isinstance(parents or {}, Mapping):
        raise InvalidArgument("bayes_net: expected parents as a mapping from a node to its parents, such as {1: [0]}.")
    pairs = [*edges, *((parent, child) for child, of in (parents or {}).items() for parent in of)]
    named: Any = (tuple(str(node) for node in pair) if isinstance(pair, (tuple, list)) else pair for pair in pairs)
    spec = BayesNet(edges=tuple(named), nodes=tuple(str(node) for node in parents or ()), estimate="draw")
    return _fitted("bayes_net", spec, rows, RDP(order=order, epsilon=epsilon), schema, ledger, public)


def _fitted(
    owner: str, spec: ModelSpec[Any], rows: Any, target: RDP, schema: Schema | str | None, ledger: Any, public: bool
) -> Model:
    from dpbayes.curator import Curator  # brings the engines, which no formula needs
    from dpbayes.jobs.model import Fit

    if isinstance(rows, (np.ndarray, list, tuple)):
        table = np.array([]) if len({np.size(row) for row in rows}) > 1 else np.asarray(rows)
        if table.ndim != 2 or not table.size:
            raise InvalidArgument(f"{owner}: expected an array of records by columns, with a record or more.")
        rows, public = {str(at): table[:, at] for at in range(table.shape[1])}, public or ledger is None
    if public == (ledger is not None) or (schema is None and not public):
        raise InvalidArgument(
            f"{owner}: expected public=True for a frame that anyone may see, or else its schema and a ledger "
            "(schema=…, ledger=…): categories that are taken from private rows would be a leak."
        )
    if schema is None:
        rows = rows.to_pydict() if hasattr(rows, "to_pydict") else rows  # Arrow
        if not isinstance(rows, Mapping) and not hasattr(rows, "columns"):
            raise InvalidArgument(f"{owner}: expected a frame, columns by name, or an array of records by columns.")
        columns = rows if isinstance(rows, Mapping) else {name: rows[name] for name in rows.columns}
        schema = _public_schema(columns)
    made: Model = Curator(rows, schema, ledger=ledger).release(Fit(model=spec, accounting="published"), target).model()
    return made


def _public_schema(columns: Mapping[str, Any]) -> Schema:
    """The values found, and no other level, as the paper has it; a missing value still needs one."""
    found = Schema.from_public_data(columns, id="public", unit=Unit(adjacency=Adjacency.REPLACE_ONE))
    known = {
        each.name: Attribute(name=each.name, categories=each.categories, closed=each.categories[0])
        for each in found.attributes
        if len(each.categories) > 1 and not any(is_missing(plain(value)) for value in columns[each.name])
    }
    return found.with_attributes(tuple(known.get(each.name, each) for each in found.attributes))
