"""``dpbayes papers``: what the papers state, what answers it, what is wrong in print, and a call of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table, tell, tell_people


def papers_command(
    what: Annotated[
        str, typer.Argument(help="A paper, to list its statements; or a call of a function, to run it; or nothing.")
    ] = "",
    wrong: Annotated[bool, typer.Option("--errata", help="Only what is wrong in print.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """List the papers behind dpbayes, their statements and errata, or run a function by its name in the paper.

    Example: dpbayes papers 'hellinger.loss(prior=(1, 1), n=20, epsilon=0.8, delta=1e-8)'
    """
    from dpbayes import papers

    if "(" in what:
        found = papers.run(what)
        if as_json:
            print_json(record(found))
        else:
            tell(repr(found))
        return
    if not what and not wrong:
        _overview(as_json)
        return
    chosen = (papers.errata if wrong else papers.statements)(what or None)
    if as_json:
        print_json([record(each) for each in chosen])
        return
    for each in chosen:
        tell_people(f"{each.row} [{each.paper}] {each.place}", "bold")
        tell_people(f"    {each.erratum if wrong else each.says}")
        for line in () if wrong else each.calls or [each.also or f"reproduced: {each.figure}"]:
            tell_people(f"    {line}")


def _overview(as_json: bool) -> None:
    from dpbayes import papers

    rows = [
        (name, len(papers.statements(name)), len(papers.errata(name)))
        for name in ("rdp", "tcdp", "h-full", "h-abstract", "h-notes")
    ]
    if as_json:
        print_json([{"paper": name, "statements": stated, "errata": wrong} for name, stated, wrong in rows])
        return
    print_table("From the papers", ("paper", "statements", "with errata"), rows)
    tell_people("Name a paper to list its statements, --errata for what is wrong in print, or a call to run it.")


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
