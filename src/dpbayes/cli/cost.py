"""``dpbayes cost``: from parameters to every guarantee they give."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, print_table
from dpbayes.domain.display import plural
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import InvalidArgument
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.mechanisms.records import from_record
from dpbayes.mechanisms.urn import PseudoRecords
from dpbayes.privacy.cost import Cost, Priced

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
