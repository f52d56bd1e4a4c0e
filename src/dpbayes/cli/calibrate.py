"""``dpbayes calibrate``: from a guarantee to parameters."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table
from dpbayes.domain.unit import Adjacency, PrivacyUnit
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.mechanisms.tuning import (
    REFERENCE_CELLS,
    REFERENCE_RECORDS,
    ConcentrationCurve,
    gaussian_noise,
    laplace_noise,
    published_dirichlet,
)
from dpbayes.privacy.calibrate import calibrate
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import Guarantee


class Kind(StrEnum):
    """Mechanisms that can be calibrated here."""

    DIRICHLET = "dirichlet"
    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


class Purpose(StrEnum):
    """What a Dirichlet release is for."""

    DRAW = "draw"
    ESTIMATE = "estimate"


class Accounting(StrEnum):
    """Exact cost, or the papers' bounds."""

    EXACT = "exact"
    PUBLISHED = "published"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("calibrate")(calibrate_command)


def calibrate_command(
    mechanism: Annotated[Kind, typer.Argument(help="The mechanism to find parameters for.")],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    order: options.Order = None,
    rho: options.Rho = None,
    omega: options.Omega = None,
    releases: Annotated[int, typer.Option(help="How many releases share the guarantee.")] = 1,
    accounting: Annotated[Accounting, typer.Option(help="Exact cost or the papers' bounds.")] = Accounting.EXACT,
    purpose: Annotated[Purpose, typer.Option(help="Dirichlet: the draw itself, or an estimate.")] = Purpose.DRAW,
    weight: Annotated[float | None, typer.Option(help="Dirichlet: fix the weight r instead of choosing it.")] = None,
    cells: Annotated[int, typer.Option(help="Dirichlet: public number of cells.")] = REFERENCE_CELLS,
    records: Annotated[int, typer.Option(help="Dirichlet: public number of records.")] = REFERENCE_RECORDS,
    least_count: Annotated[int, typer.Option(help="Dirichlet: public lower bound on every count.")] = 0,
    adjacency: options.AdjacencyOption = Adjacency.REPLACE_ONE,
    max_rows: options.MaxRows = 1,
    as_json: options.AsJson = False,
) -> None:
    """Find the parameters that meet a guarantee.

    Example: dpbayes calibrate dirichlet --epsilon 1 --delta 1e-6 --releases 21
    """
    target = options.guarantee(epsilon=epsilon, delta=delta, order=order, rho=rho, omega=omega)
    unit = options.unit(adjacency, max_rows)
    made: Dirichlet | Gaussian | Laplace
    if mechanism is Kind.GAUSSIAN:
        made = calibrate(gaussian_noise(unit), target, times=releases)
    elif mechanism is Kind.LAPLACE:
        made = calibrate(laplace_noise(unit), target, times=releases)
    else:
        made = _dirichlet(target, unit, releases, accounting, purpose, weight, cells, records, least_count)
    cost = Cost.of(made, releases)
    result = made.record() | {
        "target": target.record(),
        "releases": releases,
        "accounting": accounting.value,
        "gap": target.gap(cost),
        "rho": cost.concentrated(omega) if omega else None,
        "epsilon_at_delta": cost.epsilon(delta) if delta else None,
        "epsilon_at_order": cost.renyi(order) if order else None,
    }
    if mechanism is Kind.DIRICHLET:
        result |= {"purpose": purpose.value, "cells": cells, "records": records}
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
        f"{mechanism.value}: {target}, {releases} release{'s' if releases > 1 else ''}",
        ("quantity", "value"),
        shown + spent,
        notes=(
            f"Unit: {unit.adjacency}, at most {unit.max_rows} row(s) per person. Accounting: {accounting.value}.",
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
) -> Dirichlet:
    if accounting is Accounting.PUBLISHED and weight is None and least_count == 0:
        return published_dirichlet(target, unit, releases=releases, cells=cells, records=records)
    curve = ConcentrationCurve(
        target=target, unit=unit, releases=releases, least_count=least_count, accounting=accounting.value
    )
    if weight is not None:
        return curve.at(weight)
    return curve.best(purpose=purpose.value, cells=cells, records=records)
