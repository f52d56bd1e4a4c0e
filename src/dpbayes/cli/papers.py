"""``dpbayes papers``: what the papers state, what is wrong in print, and any function by its name in the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dpbayes.base.errors import InvalidArgument
from dpbayes.cli.command import Output, useless
from dpbayes.cli.options import File, Text, Words
from dpbayes.cli.output import print_table, tell, tell_people

DOCUMENTS = ("rdp", "tcdp", "h-full", "h-abstract", "h-notes")


def papers(paper: Text = None, name: Text = None, arguments: Words = (), *, out: File) -> Output:
    """NAME is a function with its arguments by their symbols, errata, or figure or table with its number. Without
    arguments PAPER may be a whole call. With --out what can be drawn is.

    Example: dpbayes papers tcdp theorem_2 alpha=10 delta=1e-5
    """
    from dpbayes import papers as stated

    if (name or "errata") == "errata" and "(" not in (paper or ""):
        useless("a list", "out")
    if paper is None:
        rows = [(each, len(stated.statements(each)), len(stated.errata(each))) for each in DOCUMENTS]
        result = [{"paper": each, "statements": many, "errata": wrong} for each, many, wrong in rows]
        return Output(result, lambda: print_table("From the papers", ("paper", "statements", "with errata"), rows))
    if name is None and "(" not in paper:
        return _listed(stated.statements(paper), wrong=False)
    if name == "errata":
        return _listed(stated.errata(paper), wrong=True)
    if name in ("figure", "table"):
        if len(arguments) != 1 or not arguments[0].isdecimal():
            raise InvalidArgument(f"papers: expected one number, as in dpbayes papers rdp {name} 1.")
        found = getattr(stated, name)(paper, int(arguments[0]))
    else:
        found = stated.run(paper if name is None else f"{paper}.{name}({', '.join(map(_argument, arguments))})")
    if out is not None:
        if not hasattr(found, "plot"):
            raise InvalidArgument("papers: there is no figure of this. Leave --out out.")
        found.plot(out)
    return Output(record(found), lambda: tell(repr(found)))


def _argument(text: str) -> str:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InvalidArgument(f"papers: expected KEY=VALUE, such as alpha=10, got {text!r}.")
    return f"{name}={value}"


def _listed(chosen: Any, *, wrong: bool) -> Output:
    def people() -> None:
        for each in chosen:
            tell_people(f"{each.row} [{each.paper}] {each.place}", bold=True)
            tell_people(f"    {each.erratum if wrong else each.says}")
            for line in () if wrong else each.calls or [each.also or f"reproduced: {each.figure}"]:
                tell_people(f"    {line}")

    return Output([record(each) for each in chosen], people)


def record(value: object) -> Any:
    """The JSON form of what a call gives, or of a statement."""
    import numpy as np

    from dpbayes.papers import Result, Statement
    from dpbayes.papers.hellinger import Released
    from dpbayes.papers.result import shown

    if isinstance(value, Result):
        names = ("place", "printed", "exact", "corrected", "valid", "holds", "erratum")
        return {name: record(getattr(value, name)) for name in names} | {"parts": record(value.parts)}
    if isinstance(value, Mapping):
        return {shown(key): record(each) for key, each in value.items() if not callable(each)}
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [record(each) for each in value]
    if isinstance(value, Released):
        laws = {name: {"mean": law.mean, "interval": law.interval()} for name, law in value.laws().items()}
        return record({"released": value.released, **laws})
    if isinstance(value, Statement):
        return {"paper": value.paper} | {each.name: getattr(value, each.name) for each in fields(value)}
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
