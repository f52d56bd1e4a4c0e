"""What the modules of the papers share: arguments are checked by their symbols, results know the rows they answer.

``run`` reads a call from text: names of the rooms, literals, and nothing else.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.checks import Floats, non_negative, positive, positive_integer, probability
from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.papers.result import Result

P = ParamSpec("P")
T = TypeVar("T")
Rule = Callable[..., None]


def prior(owner: str, **named: object) -> None:
    """A prior is one number or one for each cell, above zero."""
    for name, value in named.items():
        if hasattr(value, "__len__") and not isinstance(value, str):
            vector(owner, name, value, above=True)  # type: ignore[arg-type]  # it checks
        else:
            positive(owner, **{name: value})


def above_one(owner: str, **named: object) -> None:
    """A Rényi order, or the ω of tCDP: infinity asks for the pure guarantee, or for zCDP."""
    for value in named.values():
        checks.order(owner, value)


def finite_order(owner: str, **named: object) -> None:
    """An order at which formulas are evaluated."""
    above_one(owner, **named)
    positive(owner, **named)


def up_to(most: int) -> Rule:
    """A whole number from 1 to this: as many are made or listed one by one."""

    def rule(owner: str, **named: object) -> None:
        positive_integer(owner, **named)
        for name, value in named.items():
            if value > most:  # type: ignore[operator]  # a whole number
                raise InvalidArgument(f"{owner}: expected {name} up to {most:,}, got {value!r}.")

    return rule


SYMBOLS: Mapping[str, Rule] = {
    "order": finite_order,
    "omega": above_one,
    **dict.fromkeys(("delta", "failure"), probability),
    **dict.fromkeys(("alpha", "alpha_prime"), prior),
    **dict.fromkeys(("N", "K", "d", "m", "drawn"), positive_integer),
    "size": up_to(10_000_000),
    **dict.fromkeys(("t", "b", "s", "tau", "epsilon_hat"), non_negative),
    **dict.fromkeys(
        ("epsilon", "rho", "rho_prime", "gamma", "r", "eta", "beta", "B", "l2_squared", "linf", "alpha_0"), positive
    ),
}
"""What each symbol of [RDP] and [tCDP] must be, where a function does not say otherwise."""


def states(rows: str, **rules: Rule) -> Callable[[Callable[P, Result[T]]], Callable[P, Result[T]]]:
    """A function that answers these rows of the table of statements; ``rules`` are those of its own symbols."""

    def answering(function: Callable[P, Result[T]]) -> Callable[P, Result[T]]:
        signature = inspect.signature(function)

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> Result[T]:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError as problem:
                raise TypeError(f"{function.__name__}: {problem}") from None
            for name, value in given.items():
                rule = rules.get(name) or SYMBOLS.get(name)
                if rule is not None and value is not None:
                    rule(function.__name__, **{name: value})
            return function(*args, **kwargs).of(rows)

        return checked

    return answering


def found(
    printed: T, exact: T | None = None, *, valid: bool = True, corrected: T | None = None, **parts: Any
) -> Result[T]:
    """What a function states; its rows are added by ``states``."""
    return Result("", printed, exact=exact, valid=valid, corrected=None if valid else corrected, parts=parts)


def equal(value: T, **parts: Any) -> Result[T]:
    """A printed formula that is exact."""
    return found(value, value, **parts)


def vector(owner: str, name: str, values: ArrayLike, *, above: bool = False) -> Floats:
    """Two or more finite numbers in a row, zero or above, or above zero. The message never repeats them."""
    try:
        cells = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        cells = np.empty(0)
    fit = (cells > 0 if above else cells >= 0) & np.isfinite(cells)
    if cells.ndim != 1 or cells.size < 2 or not fit.all():
        sign = "> 0" if above else ">= 0"
        raise InvalidArgument(f"{owner}: expected {name} as two or more finite numbers, each {sign}.")
    return cells


def counted(owner: str, values: ArrayLike) -> Floats:
    """Counts, or another vector, with something in it."""
    cells = vector(owner, "counts", values)
    if not cells.any():
        raise InvalidArgument(f"{owner}: expected a count above zero.")
    return cells


def same_size(owner: str, one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Two vectors over the same cells."""
    if one.shape != other.shape:
        raise InvalidArgument(f"{owner}: expected two vectors with the same number of cells.")
    return one, other


ROOMS = ("rdp", "tcdp", "hellinger")


def run(call: str) -> object:
    """What a call gives, such as ``rdp.theorem_2([0.3, 0.7], alpha=1, beta=120, eta=0.1).exact``.

    Args:
        call: A function of ``rdp``, ``tcdp`` or ``hellinger`` with numbers, texts and lists; nothing else is evaluated.

    >>> run("hellinger.R_post(10, 3).printed")
    55
    """
    try:
        parsed = ast.parse(call.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise _refused(call) from None
    try:
        return _value(parsed, call)
    except DpbayesError:
        raise
    except (TypeError, AttributeError, IndexError, KeyError, ValueError, ArithmeticError) as problem:
        raise InvalidArgument(f"papers: {call.strip()[:200]} cannot be computed: {problem}.") from None
    except (MemoryError, RecursionError):
        raise InvalidArgument(f"papers: {call.strip()[:200]} needs more memory than there is.") from None


def _value(node: ast.expr, call: str) -> object:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if any(keyword.arg is None for keyword in node.keywords):
            raise _refused(call)
        function = _member(node.func, call)
        if not callable(function):
            raise _refused(call)
        if any(keyword.arg in ("schema", "ledger") for keyword in node.keywords):
            raise InvalidArgument("papers: a call from text charges no ledger. Call it from Python.")
        keywords = {str(keyword.arg): _literal(keyword.value, call) for keyword in node.keywords}
        return function(*(_literal(argument, call) for argument in node.args), **keywords)
    if isinstance(node, ast.Attribute):
        return _member(node, call)
    if isinstance(node, ast.Subscript):
        return _value(node.value, call)[_literal(node.slice, call)]  # type: ignore[index]  # or a refusal
    raise _refused(call)


def _member(node: ast.Attribute, call: str) -> object:
    """A public name of a room, or of what one of its functions gave."""
    if isinstance(node.value, ast.Name) and node.value.id in ROOMS:
        owner: object = import_module(f"dpbayes.papers.{node.value.id}")
    elif isinstance(node.value, ast.Attribute) and ast.unparse(node.value) == "rdp.related":
        owner = import_module("dpbayes.papers.related")
    else:
        owner = _value(node.value, call)
        if not type(owner).__module__.startswith("dpbayes.papers."):
            raise _refused(call)
    found = None if node.attr.startswith("_") else getattr(owner, node.attr, None)
    home = getattr(found, "__module__", None)
    if found is None or (isinstance(owner, type(ast)) and not str(home).startswith("dpbayes.papers.")):
        raise _refused(call)
    return found


def _literal(node: ast.expr, call: str) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
            repeated, times = ast.literal_eval(node.left), ast.literal_eval(node.right)  # [0.001] * 1000
            if isinstance(times, int) and len(repeated) * times <= 100_000:
                return repeated * times
        raise _refused(call) from None


def _refused(call: str) -> InvalidArgument:
    return InvalidArgument(
        f"papers: expected a call such as rdp.theorem_1(r=0.5, order=5), of {', '.join(ROOMS)}, with numbers, texts "
        f"and lists for arguments, got {call.strip()[:80]!r}. `dpbayes papers rdp` lists what there is."
    )
