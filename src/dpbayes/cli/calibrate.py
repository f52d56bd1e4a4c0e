"""``dpbayes calibrate``: from a guarantee to parameters."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table
from dpbayes.domain.unit import PrivacyUnit, Sensitivity
from dpbayes.errors import InvalidArgument
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.gaussian import Gaussian
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
from dpbayes.privacy.calibrate import calibrate
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import Guarantee

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
