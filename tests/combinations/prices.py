"""What a release costs at the least, from the records in its file: closed forms, enumeration and dp-accounting.

It shares nothing with ``dpbayes.privacy``. Every number is a lower bound of the true cost, so that a promise or a
charge below it is false; for Gaussian noise, Laplace noise and Dirichlet draws it is the cost itself, ``EXACT``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import betabinom, gamma

from dpbayes.mechanisms.kinds import from_record

Record = dict[str, Any]
EXACT = ("gaussian-1", "laplace-1", "dirichlet-2")
ORDERS = (1.01, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.9, 12.0, 20.0, 50.0, 200.0)
STEP = 1e-3
TINY = 1e-300


def least(paid: Sequence[Record], notion: Record) -> float:
    """The ε or ρ of everything that was paid for, in this notion."""
    listed = [(json.dumps(each["mechanism"], sort_keys=True), each.get("times", 1)) for each in paid]
    match notion["notion"]:
        case "pure-dp":
            return sum(times * _renyi(text, math.inf) for text, times in listed)
        case "rdp":
            return sum(times * _renyi(text, notion["order"]) for text, times in listed)
        case "zcdp" | "tcdp":
            end = notion.get("omega", math.inf)  # losses of draws are largest there, and continuous up to it
            orders = [*(order for order in ORDERS if order < end), *([end] if math.isfinite(end) else [])]
            return max(sum(times * _renyi(text, order) for text, times in listed) / order for order in orders)
        case "approx-dp" | "adaptive-dp":
            return max(_epsilon(tuple(listed), notion["delta"], place) for place in (0, 1))
    raise AssertionError(notion)


def diverges(paid: Sequence[Record], limit: Record) -> float:
    """The share of a limit by the Rényi rule that the losses without a δ use: ΣD_λ/B, or Σε₀/ε if that is less.

    B = ε − ln(λ−1) + (ln(δ−s) + λ·ln λ)/(λ−1), the divergence at order λ that (ε, δ−s) allows.
    """
    order, less = limit["order"], limit["order"] - 1.0
    rest = math.log(limit["delta"] - limit["slack"]) + order * math.log(order)
    allowed = limit["epsilon"] - math.log(less) + rest / less
    listed = [(json.dumps(each["mechanism"], sort_keys=True), each.get("times", 1)) for each in paid]
    finite = [(text, times) for text, times in listed if math.isfinite(_renyi(text, order))]
    return min(
        sum(times * _renyi(text, order) for text, times in finite) / allowed,
        sum(times * _renyi(text, math.inf) for text, times in finite) / limit["epsilon"],
    )


def tight(paid: Sequence[Record]) -> bool:
    """Whether ``least`` is the cost itself."""
    return all(
        each["mechanism"]["mechanism"] in EXACT
        and not each["mechanism"].get("sensitivity")
        and each["mechanism"]["unit"]["max_rows"] == 1
        for each in paid
    )


def _epsilon(listed: tuple[tuple[str, int], ...], delta: float, place: int) -> float:
    """ε at δ by convolution of losses; infinite where a loss has no place in the other direction."""
    whole = None
    for text, times in listed:
        law = _losses(text)[place]
        law = law.self_compose(times) if times > 1 else law
        whole = law if whole is None else whole.compose(law)
    return float(whole.get_epsilon_for_delta(delta))


@lru_cache(maxsize=4096)
def _losses(text: str) -> tuple[Any, Any]:
    """The losses of a mechanism between neighbours, in two directions."""
    record = json.loads(text)
    if record["mechanism"] == "gaussian-1":
        _, square, _ = _moved(record["unit"])
        law = pld.from_gaussian_mechanism(
            record["sigma"] / math.sqrt(square),
            pessimistic_estimate=False,
            use_connect_dots=False,
            value_discretization_interval=STEP,
        )
        return law, law
    return tuple(_of_pairs(pairs) for pairs in (_pairs(text), [(q, p) for p, q in _pairs(text)]))  # type: ignore[return-value]


def _of_pairs(pairs: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    whole = None
    for p, q in pairs:
        upper, lower = ({at: math.log(max(x, TINY)) for at, x in enumerate(law) if x > TINY} for law in (p, q))
        made = pld.from_two_probability_mass_functions(
            lower, upper, value_discretization_interval=STEP, pessimistic_estimate=False
        )
        whole = made if whole is None else whole.compose(made)
    return whole


@lru_cache(maxsize=65536)
def _renyi(text: str, order: float) -> float:
    """The Rényi divergence between neighbours, the larger direction; infinite order is the pure ε."""
    record = json.loads(text)
    if record["mechanism"] == "gaussian-1":
        return order * _moved(record["unit"])[1] / (2.0 * record["sigma"] ** 2)
    if record["mechanism"] == "dirichlet-2":
        return _gammas(record, order)
    if record["mechanism"] == "selection-1" and math.isinf(order):
        return float(record["sharpness"])  # many candidates come near it
    pairs = _pairs(text)
    return max(sum(_divergence(p, q, order) for p, q in each) for each in (pairs, [(q, p) for p, q in pairs]))


def _divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    both = (p > TINY) & (q > TINY)
    loss = np.log(p[both]) - np.log(q[both])
    if math.isinf(order):
        return math.inf if p[~both].sum() > 0 else float(loss.max())
    if p[~both].sum() > 1e-12:
        return math.inf
    return float(np.logaddexp.reduce(np.log(p[both]) + (order - 1.0) * loss) / (order - 1.0))


def _moved(unit: Record) -> tuple[int, int, int]:
    """ℓ₁, squared ℓ₂ of a table of counts, and how many cells move by all rows of a person."""
    cells, rows = (2 if unit["adjacency"] == "replace-one" else 1), unit["max_rows"]
    return cells * rows, cells * rows**2, cells


def _gammas(record: Record, order: float) -> float:
    """Between gammas of shape α + r·m and α in one cell, and the reverse in another if rows are replaced.

    A vector that is no table of counts has no neighbours here: its own tests know the scores.
    """
    first, second, shift = _shapes(record)
    ways = [((first + shift, first),), ((first, first + shift),)]
    if _moved(record["unit"])[2] == 2:
        ways = [(ways[0][0], (second, second + shift))]
    return max(sum(_between_gammas(a, b, order) for a, b in way) for way in ways)


def _shapes(record: Record) -> tuple[float, float, float]:
    """The two smallest shapes of empty cells, and how far the rows of a person raise one."""
    alpha = record["concentration"]
    first, second = sorted(alpha)[:2] if isinstance(alpha, list) else (alpha, alpha)
    empty = record["weight"] * record["least_count"]
    return (
        first + empty,
        second + empty,
        0.0 if record.get("sensitivity") else record["weight"] * record["unit"]["max_rows"],
    )


@lru_cache(maxsize=65536)
def _between_gammas(a: float, b: float, order: float) -> float:
    """D_λ(Γ(a)‖Γ(b)) = [lnΓ(λa + (1−λ)b) − λ·lnΓ(a) − (1−λ)·lnΓ(b)]/(λ − 1), to forty digits: large shapes cancel."""
    if math.isinf(order):
        return math.inf
    with mpmath.workdps(40):
        mixed = order * mpmath.mpf(a) + (1 - mpmath.mpf(order)) * b
        if mixed <= 0:
            return math.inf
        sides = order * mpmath.loggamma(a) + (1 - mpmath.mpf(order)) * mpmath.loggamma(b)
        return float((mpmath.loggamma(mixed) - sides) / (mpmath.mpf(order) - 1))


def _sum_zero(record: Record) -> tuple[np.ndarray, np.ndarray]:
    """P[0 ≤ z_i, z_j ≤ 0] and its like for noise that adds up to zero, by convolution: the loss has three values."""
    ratio, cells = math.exp(-1.0 / record["scale"]), record["cells"]
    reach = math.ceil(45.0 * record["scale"])
    k = np.arange(-reach, reach + 1)
    rest = np.array([1.0])
    for _ in range(cells - 2):
        rest = np.convolve(rest, ratio ** np.abs(k))
    sums = -(k[:, None] + k[None, :]) + (cells - 2) * reach
    inside = (sums >= 0) & (sums < rest.size)
    law = ratio ** (np.abs(k)[:, None] + np.abs(k)[None, :]) * np.where(
        inside, rest[np.clip(sums, 0, rest.size - 1)], 0
    )
    up, down = (k >= 0)[:, None] & (k <= 0)[None, :], (k < 0)[:, None] & (k > 0)[None, :]
    high, low = float(law[up].sum() / law.sum()), float(law[down].sum() / law.sum())
    return np.array([high, 1.0 - high - low, low]), np.array([low, 1.0 - high - low, high])


@lru_cache(maxsize=4096)
def _pairs(text: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Laws of independent parts of an output under two neighbours."""
    record = json.loads(text)
    unit, kind = record["unit"], record["mechanism"]
    rows, cells = unit["max_rows"], _moved(unit)[2]
    if kind in ("laplace-1", "posterior-laplace-1"):
        if kind != "laplace-1":
            cells = 1 if len(record["prior"]) == 2 else 2
            if record["truncated"]:
                return _enumerated(record)
        one = _noise(record["scale"], rows)
        return [one, (one[1], one[0])][:cells]
    if kind == "sum-zero-laplace-1":
        return [_sum_zero(record)] if rows == 1 else [_noise(record["scale"], 2 * rows)]
    if kind == "dirichlet-2":
        first, second, shift = _shapes(record)
        two = _log_gammas(second, second + shift)
        return [_log_gammas(first + shift, first), two][:cells]
    if kind == "pseudo-records-1":
        (alpha, _, shift), many = _shapes(record), record["records"]
        other = alpha + shift if cells == 2 else alpha
        laws = (betabinom.pmf(np.arange(many + 1), many, *shape) for shape in ((alpha + shift, alpha), (alpha, other)))
        return [tuple(laws)]  # type: ignore[list-item]
    if kind == "selection-1":  # two candidates whose scores change places
        high = 1.0 / (1.0 + math.exp(-record["sharpness"] / 2.0))
        return [(np.array([high, 1.0 - high]), np.array([1.0 - high, high]))]
    if kind == "laplace-threshold-1":  # a category that only one person has is kept, or one that many have
        kept = math.exp(-(record["threshold"] - rows + 1) / record["scale"]) / (1.0 + math.exp(-1.0 / record["scale"]))
        return [_noise(record["scale"], rows), (np.array([kept, 1.0 - kept]), np.array([0.0, 1.0]))]
    assert kind in ("hellinger-1", "posterior-exponential-1"), f"no price for {kind}: write one here"
    return _enumerated(record)


def _noise(scale: float, shift: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers with P[k] ∝ e^(−|k|/b), and the same moved."""
    far = math.ceil(60 * scale) + shift
    at = np.arange(-far, far + 1)
    weight = np.exp(-np.abs(at) / scale), np.exp(-np.abs(at - shift) / scale)
    return weight[0] / weight[0].sum(), weight[1] / weight[1].sum()


def _log_gammas(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of gammas of two shapes, in narrow bins: a function of them, so it tells no more.

    Densities are integrated: ``gamma.cdf`` is wrong by percents of a bin beyond 4.5 deviations at shapes of millions.
    """
    low, high = min(gamma.ppf(1e-13, each) for each in (a, b)), max(gamma.isf(1e-13, each) for each in (a, b))
    edges = np.linspace(math.log(max(low, 1e-250)), math.log(high), 4000)
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = (edges[1] - edges[0]) / 2
    at = (edges[:-1] + half)[:, None] + half * nodes
    return tuple(_binned(at - math.log(shape), weights, shape, np.exp(edges[[0, -1]])) for shape in (a, b))  # type: ignore[return-value]


def _binned(at: np.ndarray, weights: np.ndarray, shape: float, ends: np.ndarray) -> np.ndarray:
    """Chances of the bins, given logarithms of gamma/shape at the nodes in each, and of what lies before and after."""
    chance = np.exp(shape * (at - np.expm1(at))) @ weights
    before, after = gamma.cdf(ends[0], shape), gamma.sf(ends[1], shape)
    return np.maximum([before, *chance * ((1.0 - before - after) / chance.sum()), after], 1e-30)


def _enumerated(record: Record) -> list[tuple[np.ndarray, np.ndarray]]:
    """By the law that is sampled from, of the pair of neighbours with the largest loss among a few at the border."""
    made: Any = from_record(record)
    total, cells = record["total"], len(record["prior"])
    best: tuple[float, list[tuple[np.ndarray, np.ndarray]]] = (-1.0, [])
    for start in (
        [total, *(0,) * (cells - 1)],
        [total - 1, 1, *(0,) * (cells - 2)],
        [1, total - 1, *(0,) * (cells - 2)],
    ):
        other = [start[0] - 1, start[1] + 1, *start[2:]]
        laws = [
            dict(zip(map(tuple, found.tolist()), chance.tolist(), strict=True))
            for found, chance in map(made.law, (start, other))
        ]
        listed = sorted(set(laws[0]) | set(laws[1]))
        p, q = (np.array([law.get(each, 0.0) for each in listed]) for law in laws)
        p, q = (np.where(law > 1e-280, law, 0.0) for law in (p, q))
        loss = _divergence(p, q, 20.0)
        if loss > best[0]:
            best = loss, [(p, q)]
    return best[1]
