"""``dpbayes wide``: distributions over domains too wide to list."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, show_release, tell
from dpbayes.curator import Curator
from dpbayes.domain.marginal import Marginal
from dpbayes.errors import InvalidArgument
from dpbayes.jobs.wide import Wide, WideDistribution
from dpbayes.mechanisms.lazy import Law
from dpbayes.privacy.guarantee import Guarantee


@options.target
@options.curator
def open_command(
    curator: Curator,
    target: Guarantee,
    marginal: Annotated[str, typer.Option(help="All attributes, those asked for most often first: sex,age,place.")],
    state: Annotated[Path, typer.Option(help="New file for the counts and the key. As private as the table.")],
    law: Annotated[
        Law, typer.Option(help="splits: α for each branch, accurate on wide domains. cells: α for each cell.")
    ] = "splits",
    expected_records: Annotated[
        int | None, typer.Option(help="Public guess of the number of records, where the schema declares none.")
    ] = None,
) -> None:
    """Pay once for a whole domain; afterwards any cell or table of it can be asked for.

    Example: dpbayes wide open survey.csv --schema survey.toml --marginal sex,age,region --epsilon 1 --delta 1e-6
    --ledger survey.ledger --state survey.wide
    """
    job = Wide(marginal=Marginal.parse(marginal), state=str(state), law=law, expected_records=expected_records)
    made = options.released(curator, job, target)
    tell(f"{made.choice}. {state} is as private as the table; answers are public: dpbayes wide ask.")


def ask_command(
    state: Annotated[Path, typer.Argument(help="The file that dpbayes wide open wrote.")],
    marginal: Annotated[str | None, typer.Option(help="A joint table: sex,age.")] = None,
    where: Annotated[list[str] | None, typer.Option(help="A level to stay within, as sex=F; repeatable.")] = None,
    out: options.NewFolder = None,
    as_json: options.AsJson = False,
) -> None:
    """A share or a table of shares from the one draw that was paid for. The same question has the same answer.

    Example: dpbayes wide ask survey.wide --marginal age --where sex=female
    """
    if marginal is None and not where:
        raise InvalidArgument("wide: expected --marginal, --where or both.")
    asked = Marginal.parse(marginal) if marginal is not None else None
    if asked is not None and asked.given:
        raise InvalidArgument("wide: expected a joint table such as sex,age; divide its shares for conditional ones.")
    answer = WideDistribution.load(state).answer(() if asked is None else asked.names, dict(map(_level, where or [])))
    if out is not None:
        answer.save(out)
    print_json(answer.record()) if as_json else show_release(answer, out)


def _level(text: str) -> tuple[str, str]:
    name, sign, level = text.partition("=")
    if not sign or not name:
        raise InvalidArgument(f"wide: expected --where name=level, got {text!r}.")
    return name, level
