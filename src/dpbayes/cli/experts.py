"""From parameters to every guarantee, from a guarantee to parameters, and what it means to a person."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dpbayes.base.display import plural
from dpbayes.base.errors import InvalidArgument
from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table, tell_people
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.kinds import from_record
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.mechanisms.tuning import (
    REFERENCE_CELLS,
    REFERENCE_RECORDS,
    SLACK,
    Accounting,
    ConcentrationCurve,
    Purpose,
    gaussian_noise,
    laplace_noise,
    published_dirichlet,
)
from dpbayes.mechanisms.urn import PseudoRecords
from dpbayes.privacy.calibrate import calibrate, guarantee_of
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.privacy.guarantee import Guarantee, rounded_up
from dpbayes.privacy.risk import BLIND, GDP, Risk, cautions, odds, percent, profile_of
from dpbayes.release.format import Release
from dpbayes.release.words import chance
from dpbayes.schema.unit import PrivacyUnit, Sensitivity
from dpbayes.words.promise import warning

ORDERS = (1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
PARAMETERS = {
    "dirichlet": {"weight", "concentration"},
    "pseudo-records": {"weight", "concentration", "records"},
    "gaussian": {"sigma"},
    "laplace": {"scale"},
}
MECHANISMS: dict[str, Callable[..., Priced]] = {
    "dirichlet": Dirichlet,
    "pseudo-records": PseudoRecords,
    "gaussian": Gaussian,
    "laplace": Laplace,
}


@options.unit
def cost_command(
    unit: PrivacyUnit,
    releases: Annotated[
        list[str] | None,
        typer.Argument(
            help="dirichlet, pseudo-records, gaussian or laplace with the options below; or several such as "
            "dirichlet:weight=1,concentration=10,times=3 gaussian:sigma=4."
        ),
    ] = None,
    weight: Annotated[float | None, typer.Option(help="Dirichlet: r.")] = None,
    concentration: Annotated[
        str | None, typer.Option(help="Dirichlet: α, one number, or one for each cell separated by commas.")
    ] = None,
    l2_squared: options.L2Squared = None,
    linf: options.Linf = None,
    records: Annotated[int | None, typer.Option(help="Pseudo-records: how many are drawn.")] = None,
    sigma: Annotated[float | None, typer.Option(help="Gaussian: standard deviation.")] = None,
    scale: Annotated[float | None, typer.Option(help="Laplace: scale.")] = None,
    times: Annotated[int, typer.Option(help="How often it is released.")] = 1,
    records_file: Annotated[
        Path | None, typer.Option("--from", help="JSON list of mechanism records; - reads standard input.")
    ] = None,
    delta: Annotated[float, typer.Option(help="δ at which ε is stated.")] = 1e-6,
    epsilon: Annotated[float | None, typer.Option(help="State δ at this ε too.")] = None,
    order: Annotated[float | None, typer.Option(help="State the Rényi divergence at this order too.")] = None,
    curve: Annotated[
        Path | None,
        typer.Option(help="Draw the profile δ(ε) and the trade-off curve: .svg, .html, .png or .pdf."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Price one release or many, in every notion of privacy.

    Example: dpbayes cost dirichlet --weight 1 --concentration 10 --delta 1e-5
    """
    given: dict[str, object] = {
        "weight": weight,
        "concentration": None if concentration is None else options.numbers("cost", concentration),
        "records": records,
        "sigma": sigma,
        "scale": scale,
        "sensitivity": options.sensitivity("cost", l2_squared, linf),
    }
    cost = _total(releases or [], given, times, records_file, unit)
    if curve is not None:
        from dpbayes.plot.canvas import stacked
        from dpbayes.plot.pictures import profile_picture, tradeoff_picture

        stacked([profile_picture(cost), tradeoff_picture(cost)], "Privacy profile and trade-off curve").save(curve)
    epsilons = cost.epsilons(delta)
    renyi_order, _ = cost.renyi_epsilon(delta)
    omega, _ = cost.concentrated_epsilon(delta)
    result = {
        "epsilon": min(epsilons.values()),
        "delta": delta,
        "tightest": min(epsilons, key=epsilons.__getitem__),
        "epsilons": epsilons,
        "best_order": renyi_order,
        "best_omega": omega,
        "pure_epsilon": cost.renyi(math.inf),
        "zcdp_rho": cost.concentrated(math.inf),
        "tcdp": {"omega": omega, "rho": cost.concentrated(omega)},
        "renyi": {f"{at:g}": cost.renyi(at) for at in sorted({*ORDERS, *((order,) if order else ())})},
        "delta_at_epsilon": None if epsilon is None else cost.delta(epsilon),
        "releases": cost.releases,
        "unit": cost.unit.record(),
        "mechanisms": [{"times": count, **mechanism.record()} for mechanism, count in cost.entries],
    }
    if as_json:
        print_json(result)
        return
    notes = [
        f"Unit: {cost.unit.adjacency}, at most {plural(cost.unit.max_rows, 'row')} per person; "
        f"{plural(cost.releases, 'release')}.",
        f"Tightest at δ={delta:g}: ε={min(epsilons.values()):.6g} ({result['tightest']}).",
    ]
    rows: list[tuple[object, ...]] = [(f"ε at δ={delta:g}, {name}", value) for name, value in epsilons.items()]
    if epsilon is not None:
        rows.append((f"δ at ε={epsilon:g}", cost.delta(epsilon)))
    rows += [("zCDP ρ", cost.concentrated(math.inf)), (f"tCDP ρ up to ω={omega:.4g}", cost.concentrated(omega))]
    rows += [(f"Rényi divergence at order {at}", value) for at, value in result["renyi"].items()]  # type: ignore[attr-defined]
    print_table("Privacy cost", ("notion", "value"), rows, notes=notes)


def _total(
    specs: list[str], given: dict[str, object], times: int, records_file: Path | None, unit: PrivacyUnit
) -> Cost:
    if records_file is not None:
        return cost_of_file(records_file)
    if not specs:
        raise InvalidArgument("cost: expected a mechanism, several, or --from a file of records; got none.")
    options_given = {key: value for key, value in given.items() if value is not None}
    parts = [_parse(spec, options_given if len(specs) == 1 else {}, times, unit) for spec in specs]
    return sum(parts[1:], parts[0])


def _parse(spec: str, given: dict[str, object], times: int, unit: PrivacyUnit) -> Cost:
    name, _, text = spec.partition(":")
    if name not in PARAMETERS:
        raise InvalidArgument(f"cost: expected dirichlet, pseudo-records, gaussian or laplace, got {name!r}.")
    numbers: dict[str, Any] = dict(given)
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        try:
            numbers[key.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise InvalidArgument(f"cost: expected name=number in {spec!r}, got {part!r}.")
    repeat = numbers.pop("times", times)
    wanted = PARAMETERS[name]
    if set(numbers) - ({"sensitivity"} if name == "dirichlet" else set()) != wanted:
        raise InvalidArgument(f"cost: {name} needs {' and '.join(sorted(wanted))}, got {sorted(numbers) or 'none'}.")
    for key in ("times", "records"):
        if not float({**numbers, "times": repeat}.get(key, 1)).is_integer():
            raise InvalidArgument(f"cost: expected {key} to be a whole number.")
    if "records" in numbers:
        numbers["records"] = int(numbers["records"])
    return Cost.of(MECHANISMS[name](**numbers, unit=unit), int(repeat))


def cost_of_file(path: Path) -> Cost:
    """The cost of a JSON list of mechanism records, each perhaps with ``times``."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
        entries = json.loads(text)
    except OSError as problem:
        raise InvalidArgument(f"cost: cannot read {path}: {problem.strerror}.") from problem
    except (ValueError, RecursionError) as problem:
        raise InvalidArgument(f"cost: {path} is not JSON.") from problem
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidArgument(f"cost: expected {path} to hold a non-empty JSON list of mechanism records.")
    parts = []
    for entry in entries:
        repeat = entry.pop("times", 1)
        parts.append(Cost.of(from_record(entry), repeat))
    return sum(parts[1:], parts[0])


Kind = Literal["dirichlet", "gaussian", "laplace"]


@options.priced_target
@options.unit
def calibrate_command(
    unit: PrivacyUnit,
    target: Guarantee,
    mechanism: Annotated[Kind, typer.Argument(help="The mechanism to find parameters for.")],
    releases: Annotated[int, typer.Option(help="How many releases share the guarantee.")] = 1,
    accounting: Annotated[Accounting, typer.Option(help="Exact cost or the papers' bounds.")] = "exact",
    purpose: Annotated[Purpose, typer.Option(help="Dirichlet: the draw itself, or an estimate.")] = "draw",
    weight: Annotated[float | None, typer.Option(help="Dirichlet: fix the weight r instead of choosing it.")] = None,
    cells: Annotated[int, typer.Option(help="Dirichlet: public number of cells.")] = REFERENCE_CELLS,
    records: Annotated[int, typer.Option(help="Dirichlet: public number of records.")] = REFERENCE_RECORDS,
    least_count: Annotated[int, typer.Option(help="Dirichlet: public lower bound on every count.")] = 0,
    l2_squared: options.L2Squared = None,
    linf: options.Linf = None,
    slack: Annotated[
        float, typer.Option(help="Dirichlet, published: the factor s of the slack s·(λ−1)·r·Δ∞ in algorithm 1.")
    ] = SLACK,
    as_json: options.AsJson = False,
) -> None:
    """Find the parameters that meet a guarantee.

    Example: dpbayes calibrate dirichlet --epsilon 1 --delta 1e-6 --releases 21
    """
    delta, order, omega = (getattr(target, name, None) for name in ("delta", "order", "omega"))
    made: Dirichlet | Gaussian | Laplace
    if mechanism == "gaussian":
        made = calibrate(gaussian_noise(unit), target, times=releases)
    elif mechanism == "laplace":
        made = calibrate(laplace_noise(unit), target, times=releases)
    else:
        moved = options.sensitivity("calibrate", l2_squared, linf)
        made = _dirichlet(
            target, unit, releases, accounting, purpose, weight, cells, records, least_count, moved, slack
        )
    cost = Cost.of(made, releases)
    result = made.record() | {
        "target": target.record(),
        "releases": releases,
        "accounting": accounting,
        "gap": target.gap(cost),
        "rho": cost.concentrated(omega) if omega else None,
        "epsilon_at_delta": cost.epsilon(delta) if delta else None,
        "epsilon_at_order": cost.renyi(order) if order else None,
    }
    if mechanism == "dirichlet":
        result |= {"purpose": purpose, "cells": cells, "records": records}
    if as_json:
        print_json(result)
        return
    parameters = ("weight", "concentration", "sigma", "scale")
    shown = [(key, value) for key, value in result.items() if key in parameters and value is not None]
    spent = [
        (key, value)
        for key, value in result.items()
        if key in ("epsilon_at_delta", "epsilon_at_order", "rho", "gap") and value is not None
    ]
    print_table(
        f"{mechanism}: {target}, {releases} release{'s' if releases > 1 else ''}",
        ("quantity", "value"),
        shown + spent,
        notes=(
            f"Unit: {unit}. Accounting: {accounting}.",
            "The gap is cost minus target: below zero is the private side.",
        ),
    )


def _dirichlet(
    target: Guarantee,
    unit: PrivacyUnit,
    releases: int,
    accounting: Accounting,
    purpose: Purpose,
    weight: float | None,
    cells: int,
    records: int,
    least_count: int,
    moved: Sensitivity | None,
    slack: float,
) -> Dirichlet:
    if accounting == "published" and weight is None and least_count == 0:
        sizes = {"releases": releases, "cells": cells, "records": records}
        return published_dirichlet(target, unit, **sizes, sensitivity=moved, slack=slack)
    if slack != SLACK:
        raise InvalidArgument("calibrate: a slack is part of algorithm 1: --accounting published without --weight.")
    curve = ConcentrationCurve(
        target=target,
        unit=unit,
        releases=releases,
        least_count=least_count,
        accounting=accounting,
        sensitivity=moved,
    )
    if weight is not None:
        return curve.at(weight)
    return curve.best(purpose=purpose, cells=cells, records=records)


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
        tell_people(warning(each), "bold")
