"""A call of a paper's function, read from text: names of the rooms, literals, and nothing else."""

from __future__ import annotations

import ast
from importlib import import_module

from dpbayes.errors import DpbayesError, InvalidArgument

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
            raise InvalidArgument("papers: a call from text does not spend a budget. Call it from Python.")
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
