"""Numbers by which prices are told to be what they were: expressions, their values, and truths to hold them against.

    python -m tests.pinned [WORD]

The ``numbers.json`` of a folder has expressions by module. This fills in those that have no value yet (null), and again
those in which the word is, where it is known why they differ. Where ``TRUTHS`` knows a function, the value is held
against that as well.
"""

from __future__ import annotations

import functools
import json
import math
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp

from dpbayes import RDP, TCDP, ZCDP, ApproxDP, Cost, Dirichlet, Gaussian, Laplace, PureDP, Unit
from dpbayes.base.errors import DpbayesError
from dpbayes.mechanisms import PseudoRecords, Stated
from dpbayes.privacy.adaptive import AdaptiveDP
from dpbayes.privacy.pld import Pld

HERE = Path(__file__).parent
FEW = 12
"""A longer list of numbers is told by its length, its sum, and a sum in which each place weighs differently."""


def flat(value: Any) -> Any:
    """What JSON can hold of a value."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return float(value) if isinstance(value, float) else value
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return flat(value.item())
    if isinstance(value, Mapping):
        return [flat([key, each]) for key, each in value.items()]
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value):
        return [type(value).__name__, *(flat(getattr(value, field.name)) for field in fields(value))]
    listed = [flat(each) for each in (value.ravel() if isinstance(value, np.ndarray) else value)]
    if len(listed) <= FEW or not all(type(each) in (int, float) for each in listed):
        return listed
    weights = [1.0 + place * 0.6180339887498949 % 1.0 for place in range(len(listed))]
    return [len(listed), math.fsum(listed), math.fsum(map(float.__mul__, weights, map(float, listed)))]


def asked(call: Callable[[Callable[[float], float]], object], function: Callable[[float], float]) -> list[object]:
    """Where a search looks at a function, and what it finds."""
    points: list[float] = []

    def look(at: float) -> float:
        points.append(at)
        return function(at)

    return [call(look), points]


def refusal(call: Callable[[], object]) -> str:
    """How the sentence begins in which something is refused."""
    try:
        return f"none: {flat(call())}"
    except (DpbayesError, ValueError) as problem:
        return re.sub(f"{tempfile.gettempdir()}/tmp[^/'\"]*", "FOLDER", f"{type(problem).__name__}: {problem}")[:80]


@functools.cache
def _tables() -> dict[str, Any]:
    """What jobs are asked about: a schema, a table, and a ledger's account."""
    from tests.releases import PEOPLE, people

    from dpbayes import Curator, Ledger, Request, Schema, Tables
    from dpbayes.base.codec import canonical, digest
    from dpbayes.jobs.base import Setting
    from dpbayes.schema import Marginal
    from dpbayes.tables.sources import open_table

    def chain(*bodies: dict[str, object], **others: object) -> list[str]:
        """The texts of entries, each bound to the one before."""
        texts: list[str] = []
        for body in bodies:
            previous = digest(texts[-1]) if texts else "0" * 64
            usual = {"dataset": "d", "serial": len(texts), "previous": previous, "time": "2026-01-02T03:04:05Z"}
            texts.append(canonical({**usual, "about": "", **others, **body}))
        return texts

    def budget(limit: Any = PureDP(epsilon=1.0), unit: Unit = ADD, **more: object) -> dict[str, object]:  # noqa: B008
        fixed = {"kind": "budget", "format": 2, "budget": limit.record(), "unit": unit.record(), "schema": ""}
        return {**fixed, **more}

    def charge(*drawn: tuple[Any, int], key: str = "k", **more: object) -> dict[str, object]:
        releases = [{"mechanism": each.record(), "times": times} for each, times in drawn]
        return {"kind": "charge", "releases": releases, "lock": digest(key), "schema": "", "software": {}, **more}

    def book(limit: Any = PureDP(epsilon=2.0), schema: Schema = PEOPLE, **more: Any) -> Ledger:  # noqa: B008
        ledger = Ledger(Path(tempfile.mkdtemp()) / "people.ledger")
        ledger.open(schema, limit, **more)
        return ledger

    def opened(limit: Any = PureDP(epsilon=1.0), unit: Unit = ADD, **more: Any) -> Ledger:  # noqa: B008
        ledger = Ledger(Path(tempfile.mkdtemp()) / "d.ledger")
        ledger.open("d", limit, unit, **more)
        return ledger

    return {
        "chain": chain, "budget": budget, "charge": charge, "new": opened, "book": book,
        "SEX": Tables("sex", mechanism="laplace"),
        "Tables": Tables, "Request": Request, "canonical": canonical, "digest": digest,
        "PEOPLE": PEOPLE, "people": people, "TABLE": open_table(people()), "open_table": open_table, "Schema": Schema,
        "SCHEMA": lambda unit=ADD, **more: replace(PEOPLE, unit=unit, **{"records": None, **more}),
        "Marginal": Marginal, "rng": lambda: np.random.default_rng(7), "Setting": Setting,
        "Curator": Curator, "replace": replace,
        "folder": lambda: Path(tempfile.mkdtemp()),
    }  # fmt: skip


def caught(call: Callable[[], object]) -> DpbayesError | None:
    """What is raised."""
    try:
        call()
    except DpbayesError as problem:
        return problem
    return None


ADD, REPLACE = Unit(adjacency="add-remove"), Unit(adjacency="replace-one")
NAMES: dict[str, object] = {
    "math": math, "np": np, "inf": math.inf, "F": Fraction, "asked": asked, "caught": caught, "refusal": refusal,
    "Pld": Pld,
    "array": lambda *each: np.array(each, dtype=np.float64), "ADD": ADD, "REPLACE": REPLACE, "Cost": Cost,
    "FIVE": Unit(adjacency="replace-one", max_rows=5), "Unit": Unit,
    "NAMED": Unit(adjacency="replace-one", person="id"),
    "laplace": lambda scale, unit=ADD: Laplace(scale=scale, unit=unit),
    "gaussian": lambda sigma, unit=ADD: Gaussian(sigma=sigma, unit=unit),
    "dirichlet": lambda weight, alpha, unit=ADD: Dirichlet(weight=weight, concentration=alpha, unit=unit),
    "stated": lambda epsilon, delta, unit=ADD: Stated(epsilon_stated=epsilon, delta_stated=delta, unit=unit, what="x"),
    "pseudo": lambda weight, alpha, records, unit=REPLACE: PseudoRecords(
        weight=weight, concentration=alpha, records=records, unit=unit
    ),
    "PureDP": PureDP, "ApproxDP": ApproxDP, "RDP": RDP, "TCDP": TCDP, "ZCDP": ZCDP, "AdaptiveDP": AdaptiveDP,
}  # fmt: skip


def value_of(module: str, expression: str, **others: object) -> Any:
    """The value of an expression over the names of a module."""
    more = {} if module.startswith("privacy") else _tables()
    return eval(expression, {**NAMES, **more, **vars(import_module(f"dpbayes.{module}")), **others})


def _phi(x: object) -> mp.mpf:
    return mp.ncdf(x)


def _gaussian_delta(mu: float, epsilon: float) -> mp.mpf:
    m, e = mp.mpf(mu), mp.mpf(epsilon)
    return _phi(m / 2 - e / m) - mp.exp(e) * _phi(-m / 2 - e / m)


def _renyi_to_epsilon(order: float, renyi: float, delta: float) -> mp.mpf:
    o, d = mp.mpf(order), mp.mpf(delta)
    return max(renyi + mp.log(o - 1) - (mp.log(d) + o * mp.log(o)) / (o - 1), mp.mpf(0))


def _renyi_to_delta(order: float, renyi: float, epsilon: float) -> mp.mpf:
    o = mp.mpf(order)
    return min(mp.exp((o - 1) * (mp.mpf(renyi) - epsilon)) * (1 - 1 / o) ** o / (o - 1), mp.mpf(1))


def _statement_to_delta(epsilon: float, delta: float, at: float) -> mp.mpf:
    e, d, at_ = mp.mpf(epsilon), mp.mpf(delta), mp.mpf(at)
    return d + (1 - d) * max(mp.exp(e) - mp.exp(at_), 0) / (1 + mp.exp(e))


def _tcdp_to_epsilon(rho: float, omega: float, delta: float) -> mp.mpf:
    r, depth = mp.mpf(rho), -mp.log(mp.mpf(delta))
    low, high = mp.mpf(1), mp.mpf(omega) if omega < math.inf else 1 + 10 * mp.sqrt(depth / r)
    at = min(max(1 + mp.sqrt(depth / r), low), high)  # the best order of ρ·λ + depth/(λ − 1)
    return r * at + depth / (at - 1)


def _randomised_response_renyi(order: float, epsilon: float) -> mp.mpf:
    o, e = mp.mpf(order), mp.mpf(epsilon)
    truth, lie = 1 / (1 + mp.exp(-e)), 1 / (1 + mp.exp(e))
    return mp.log(truth**o * lie ** (1 - o) + lie**o * truth ** (1 - o)) / (o - 1)


def _loss_at_mode(alpha: float, weight: float, at: mp.mpf) -> mp.mpf:
    """ln of the density of ln z under Gamma(α + r) over that under Gamma(α), where ln z = ln at."""
    a, r = mp.mpf(alpha), mp.mpf(weight)
    return r * mp.log(at) + mp.loggamma(a) - mp.loggamma(a + r)


TRUTHS: dict[str, Callable[..., mp.mpf]] = {
    "gaussian_delta": _gaussian_delta,
    "renyi_to_epsilon": _renyi_to_epsilon,
    "renyi_to_delta": _renyi_to_delta,
    "statement_to_delta": _statement_to_delta,
    "tcdp_to_epsilon": _tcdp_to_epsilon,
    "pure_mu": lambda epsilon: 2 * mp.sqrt(2) * mp.erfinv(mp.tanh(mp.mpf(epsilon) / 2)),
    "randomised_response_renyi": _randomised_response_renyi,
    "trigamma": lambda x: mp.zeta(2, x),
    "log1p_deficit": lambda x: mp.mpf(x) - mp.log1p(x),
    "jensen_gap": lambda x, a, b: (
        b * mp.loggamma(x) + a * mp.loggamma(mp.mpf(x) + a + b) - (mp.mpf(a) + b) * mp.loggamma(mp.mpf(x) + a)
    ),
    "loss_at_mode_up": lambda alpha, r: _loss_at_mode(alpha, r, mp.mpf(alpha) + r),
    "loss_at_mode_down": lambda alpha, r: -_loss_at_mode(alpha, r, mp.mpf(alpha)),
    "pure_loss": lambda r, alpha, m: (
        mp.loggamma(mp.mpf(alpha) + r + m) - mp.loggamma(mp.mpf(alpha) + r) - mp.loggamma(mp.mpf(alpha) + m)
        + mp.loggamma(alpha)
    ),
    "sampled_pure": lambda epsilon, rate: mp.log1p(mp.mpf(rate) * mp.expm1(epsilon)),
}  # fmt: skip
"""By formulas that share nothing with the library, to fifty digits."""

NEITHER = {"log1p_deficit", "jensen_gap", "loss_at_mode_up", "loss_at_mode_down", "trigamma", "tcdp_to_epsilon"}
"""These are right to eleven digits, and rounded to neither side."""


def truth_of(expression: str) -> tuple[str, mp.mpf] | None:
    """The function and the true value of an expression that is one call with numbers, where its truth is known."""
    name = expression.partition("(")[0]
    told = "inf" not in expression or name == "tcdp_to_epsilon"
    if name not in TRUTHS or "array" in expression or "(inf" in expression or not told:
        return None
    with mp.workdps(50):
        return name, +eval(expression, {"inf": math.inf, **TRUTHS})


def numbers(folder: Path) -> dict[str, dict[str, Any]]:
    """Expressions and their values, by module."""
    return json.loads((folder / "numbers.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def check(folder: Path, module: str) -> None:
    """Every expression over the names of a module has the value that it had."""
    for expression, then in numbers(folder)[module].items():
        now = flat(value_of(module, expression))
        assert _same(now, then), f"{expression}: {now} instead of {then}"


def _same(now: object, then: object) -> bool:
    if isinstance(then, list):
        return isinstance(now, list) and len(now) == len(then) and all(map(_same, now, then))
    if isinstance(then, float) and isinstance(now, (int, float)):
        noise = 3e-16 if 1e-17 < abs(then) < 2e-15 else 0.0  # what a sum of probabilities leaves of one
        near = now == then or math.isclose(now, then, rel_tol=2e-13, abs_tol=noise)
        return near or (math.isnan(now) and math.isnan(then))
    return now == then


def main(asked: str = "\0") -> None:
    """Fill in what has no value yet, and what the word is in."""
    for file in sorted(HERE.glob("*/numbers.json")):
        found = numbers(file.parent)
        for module, values in found.items():
            for expression in [each for each, known in values.items() if known is None or asked in f"{each}{known}"]:
                try:
                    values[expression] = flat(value_of(module, expression))
                except Exception as problem:
                    print(f"{module}: {expression}: {problem!r}")
        file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
