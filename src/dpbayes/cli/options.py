"""Options that several commands share, and how they become guarantees and units."""

from __future__ import annotations

from typing import Annotated

import typer

from dpbayes.domain.unit import Adjacency, PrivacyUnit
from dpbayes.errors import InvalidArgument
from dpbayes.privacy.guarantee import RDP, TCDP, ZCDP, ApproxDP, Guarantee, PureDP

Epsilon = Annotated[float | None, typer.Option(help="ε of the guarantee.", rich_help_panel="Guarantee")]
Delta = Annotated[float | None, typer.Option(help="δ, for (ε, δ).", rich_help_panel="Guarantee")]
Order = Annotated[float | None, typer.Option(help="Rényi order, for RDP.", rich_help_panel="Guarantee")]
Rho = Annotated[float | None, typer.Option(help="ρ, for zCDP and tCDP.", rich_help_panel="Guarantee")]
Omega = Annotated[float | None, typer.Option(help="ω, for tCDP.", rich_help_panel="Guarantee")]
AdjacencyOption = Annotated[
    Adjacency, typer.Option("--adjacency", help="Which data sets are neighbours.", rich_help_panel="Privacy unit")
]
MaxRows = Annotated[
    int, typer.Option("--max-rows", help="Rows that one person has at most.", rich_help_panel="Privacy unit")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def guarantee(
    *,
    epsilon: float | None,
    delta: float | None = None,
    order: float | None = None,
    rho: float | None = None,
    omega: float | None = None,
) -> Guarantee:
    """The guarantee that the options name, or a sentence about what is missing.

    >>> guarantee(epsilon=1.0, delta=1e-6)
    ApproxDP(epsilon=1.0, delta=1e-06)
    """
    match (epsilon, delta, order, rho, omega):
        case (float() | int() as e, None, None, None, None):
            return PureDP(epsilon=e)
        case (float() | int() as e, float() as d, None, None, None):
            return ApproxDP(epsilon=e, delta=d)
        case (float() | int() as e, None, float() | int() as o, None, None):
            return RDP(order=o, epsilon=e)
        case (None, None, None, float() | int() as r, None):
            return ZCDP(rho=r)
        case (None, None, None, float() | int() as r, float() | int() as w):
            return TCDP(rho=r, omega=w)
        case _:
            raise InvalidArgument(
                "Guarantee: expected --epsilon (pure), --epsilon with --delta, --epsilon with --order (RDP), "
                "--rho (zCDP) or --rho with --omega (tCDP); got another combination."
            )


def unit(adjacency: Adjacency, max_rows: int) -> PrivacyUnit:
    """The privacy unit that the options name."""
    return PrivacyUnit(adjacency=adjacency, max_rows=max_rows)
