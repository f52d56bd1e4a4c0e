"""[RDP] section 5: naive Bayes and Bayesian networks, and the noise that they are compared with.

Symbols: N_jc counts, θ and π shares, λ order, ε epsilon, K the attributes beside the class, so that K + 1 tables are
charged; a network of n nodes has K = n − 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument
from dpbayes.models.bayes_net import BayesNet
from dpbayes.models.naive_bayes import NaiveBayes
from dpbayes.papers.checked import counted, equal, found, states
from dpbayes.papers.result import Result
from dpbayes.privacy.guarantee import RDP
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Adjacency, PrivacyUnit
from dpbayes.schema.values import is_missing, plain

if TYPE_CHECKING:
    from dpbayes.ledger.ledger import Ledger
    from dpbayes.models.model import Model, ModelSpec

__all__ = [
    "bayes_net", "equation_7", "equation_8", "equation_9", "gaussian", "laplace", "naive_bayes",
]  # fmt: skip


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
    made: Model = Curator(rows, schema, ledger=ledger).release(Fit(model=spec, accounting="published"), target).build()
    return made


def _public_schema(columns: Mapping[str, Any]) -> Schema:
    """The values found, and no other level, as the paper has it; a missing value still needs one."""
    found = Schema.from_public_data(columns, id="public", unit=PrivacyUnit(adjacency=Adjacency.REPLACE_ONE))
    known = {
        each.name: Attribute(name=each.name, categories=each.categories, closed=each.categories[0])
        for each in found.attributes
        if len(each.categories) > 1 and not any(is_missing(plain(value)) for value in columns[each.name])
    }
    return found.with_attributes(tuple(known.get(each.name, each) for each in found.attributes))
