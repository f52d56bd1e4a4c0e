"""``dpbayes risk``: what a guarantee means to a person, in odds and in an attacker's success."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, tell_people
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import InvalidArgument
from dpbayes.privacy.cautions import cautions
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import Guarantee, rounded_up
from dpbayes.privacy.risk import BLIND, GDP, Risk, odds, percent, profile_of
from dpbayes.privacy.target import guarantee_of
from dpbayes.release.format import Release
from dpbayes.release.words import chance
from dpbayes.words.promise import caution

BAR_WIDTH = 40

EXCEPTION = 10.0
"""Odds are stated with an exception of ten times δ: at δ itself no bound on them follows from (ε, δ)."""


@options.unit
def risk_command(
    unit: PrivacyUnit,
    release: Annotated[
        Path | None, typer.Argument(help="A release: its composed cost is used, exactly, instead of a guarantee.")
    ] = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    order: options.Order = None,
    rho: options.Rho = None,
    omega: options.Omega = None,
    mu: Annotated[float | None, typer.Option(help="μ of Gaussian DP.", rich_help_panel="Guarantee")] = None,
    blind: Annotated[
        list[float] | None,
        typer.Option(help="How often a guess is right without the release, from 0 to 1; repeatable."),
    ] = None,
    records: Annotated[int | None, typer.Option(help="Number of records, if public: for warnings.")] = None,
    chart: Annotated[Path | None, typer.Option(help="Also draw a chart: .svg, .html, .png or .pdf.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Say what a guarantee means: how often any attacker can be right about one person.

    Example: dpbayes risk --epsilon 1 --delta 1e-6
    """
    numbers = {"epsilon": epsilon, "delta": delta, "order": order, "rho": rho, "omega": omega}
    given = [release is not None, mu is not None, any(number is not None for number in numbers.values())]
    if sum(given) != 1:
        raise InvalidArgument(
            "risk: expected a release, --mu, or a guarantee such as --epsilon 1 --delta 1e-6; one of them."
        )
    priced: Guarantee | Cost | GDP
    promise: Guarantee | None = None
    if release is not None:
        made = Release.load(release)
        priced, promise, unit, records = made.cost, made.promise, made.unit, records or made.records
    elif mu is not None:
        priced = GDP(mu=mu)
    else:
        priced = promise = guarantee_of(**numbers)
    profile, found = profile_of(priced), Risk.of(priced, blind=tuple(blind or BLIND))
    spoken = () if promise is None else cautions(promise, unit, records=records)
    beyond = EXCEPTION * (promise.exception or 1e-6 if promise else 1e-6)
    factor = odds(profile, min(beyond, 0.5))
    if chart is not None:
        from dpbayes.plot.pictures import risk_picture

        risk_picture(profile, str(promise or priced)).save(chart)
    if as_json:
        guesses = [{"blind": at, "at_most": right} for at, right in found.guesses]
        print_json(
            {
                "odds_factor": factor,
                "except_with_probability": beyond,
                "membership": found.membership,
                "guesses": guesses,
                "cautions": list(spoken),
            }
        )
        return
    exception = "" if promise and promise.pure else f", except with probability {chance(beyond)}"
    _print(found, factor, exception, unit, promise or priced, spoken)


def _print(
    found: Risk, factor: float, exception: str, unit: PrivacyUnit, said: object, spoken: tuple[str, ...]
) -> None:
    tell_people(f"What {said} means to one person", "bold")
    question = "one possible record of a person against another" if unit.replaces else "a person being in the data"
    tell_people(
        f"The odds that anyone gives to {question}, rise by a factor of at most {rounded_up(factor, 3)}{exception}."
    )
    part, *rest = found.sentences(taking_part=not unit.replaces)
    tell_people(part)
    tell_people("A guess about a person that is right this often without the release:")
    for guess, right in found.guesses:
        full, reach = round(BAR_WIDTH * guess), round(BAR_WIDTH * right)
        bar = "█" * full + "▒" * (reach - full)
        tell_people(f"  {percent(guess):>7} {bar:<{BAR_WIDTH}}  at most {percent(right)}")
    tell_people(rest[0] if rest else "")
    tell_people(
        "These bounds hold for every attacker, also for one who knows all other records. They are about one person's "
        "data; what holds for everybody can be learnt without them."
    )
    for each in spoken:
        tell_people(caution(each), "bold")
