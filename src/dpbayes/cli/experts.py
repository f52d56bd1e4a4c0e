"""From mechanisms to every guarantee, from a guarantee to mechanisms, and what it means to a person."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

from dpbayes.base import checks
from dpbayes.base.display import nearest, plural, rounded_up
from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.cli.command import Output, now, useless
from dpbayes.cli.output import print_table, say, tell_people, working
from dpbayes.design.ranking import MEASURES, Prediction, Ranking, ranking
from dpbayes.jobs.request import asked_for
from dpbayes.mechanisms.kinds import cost_of
from dpbayes.privacy.calibrate import by_name, called
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import ApproxDP, Guarantee
from dpbayes.privacy.risk import BLIND, GDP, Risk, cautions, odds, percent, profile_of
from dpbayes.release.format import Release
from dpbayes.release.words import chance
from dpbayes.schema.unit import Unit
from dpbayes.words.promise import warning

if TYPE_CHECKING:
    from dpbayes.cli.options import File, GuaranteeOptions, Text, Words

ORDERS = (1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)

FAMILIES = {"Dirichlet": "dirichlet", "Gaussian": "gaussian", "Laplace": "laplace"}
"""What can be calibrated, by the names of the mechanisms."""

REFERENCE_RECORDS = 1000
"""Records of a table whose number is not given."""


def price(mechanisms: Words, *, at: Words, unit: str, plot: File) -> Output:
    """A .json file holds a list of mechanism records, each perhaps with times. --at says where: delta=1e-6 if left out.

    Example: dpbayes price 'Dirichlet(1, 10)' --at delta=1e-5
    """
    cost, stated = cost_of(mechanisms, Unit.of(unit)), _at(at)
    if plot is not None:
        from dpbayes.plot.canvas import stacked
        from dpbayes.plot.pictures import profile_picture, tradeoff_picture

        stacked([profile_picture(cost), tradeoff_picture(cost)], "Privacy profile and trade-off curve").save(plot)
    (delta, *_), orders = stated["delta"], sorted({*ORDERS, *stated["order"]})
    epsilons = {each: cost.epsilons(each) for each in stated["delta"]}
    here = epsilons[delta]
    omega, _ = cost.concentrated_epsilon(delta)
    result = {
        "epsilon": min(here.values()),
        "delta": delta,
        "tightest": min(here, key=here.__getitem__),
        "epsilons": here,
        "best_order": cost.renyi_epsilon(delta)[0],
        "best_omega": omega,
        "pure_epsilon": cost.renyi(math.inf),
        "zcdp_rho": cost.concentrated(math.inf),
        "tcdp": {"omega": omega, "rho": cost.concentrated(omega)},
        "renyi": {f"{order:g}": cost.renyi(order) for order in orders},
        "at": {f"delta={each:g}": min(found.values()) for each, found in epsilons.items()}
        | {f"epsilon={each:g}": cost.delta(each) for each in stated["epsilon"]},
        "releases": cost.releases,
        "unit": cost.unit.record(),
        "mechanisms": [{"times": count, **mechanism.record()} for mechanism, count in cost.entries],
    }

    def people() -> None:
        rows: list[tuple[object, ...]] = []
        for each, found in epsilons.items():
            listed = sorted(found.items(), key=lambda item: -item[1])
            rows += [(f"ε at δ={each:g}, {name}", value) for name, value in listed]
        rows += [(f"δ at ε={each:g}", cost.delta(each)) for each in stated["epsilon"]]
        rows += [("zCDP ρ", result["zcdp_rho"]), (f"tCDP ρ up to ω={omega:.4g}", cost.concentrated(omega))]
        rows += [(f"Rényi divergence at order {order:g}", cost.renyi(order)) for order in orders]
        notes = [
            f"Unit: {cost.unit.adjacency}, at most {plural(cost.unit.max_rows, 'row')} per person; "
            f"{plural(cost.releases, 'release')}.",
            *(
                f"Tightest at δ={each:g}: ε={min(found.values()):.6g} ({min(found, key=found.__getitem__)})."
                for each, found in epsilons.items()
            ),
        ]
        print_table("Privacy cost", ("notion", "value"), rows, notes=notes)

    return Output(result, people)


def _at(texts: Iterable[str]) -> dict[str, list[float]]:
    """Where costs are stated; at δ = 10⁻⁶ unless another δ is named."""
    found: dict[str, list[float]] = {"delta": [], "epsilon": [], "order": []}
    for text in texts:
        name, equals, value = text.partition("=")
        if name not in found or not equals:
            raise InvalidArgument(f"price: expected --at delta=1e-6, epsilon=1 or order=5, got {text!r}.")
        found[name].append(checks.number("price", name, value))
    return found | {"delta": found["delta"] or [1e-6]}


def calibrate(
    mechanisms: Words = (),
    *,
    unit: str,
    times: int,
    cells: int,
    records: int | None,
    ledger: Text,
    plot: File,
    **asked: Unpack[GuaranteeOptions],
) -> Output:
    """Errors are those of made-up tables with so many cells and records (1,000 if left out); no data is read.

    Example: dpbayes calibrate Dirichlet --epsilon 1 --delta 1e-6 --times 21
    """
    target = _target(asked, ledger)
    if unknown := [text for text in mechanisms if text not in FAMILIES]:
        raise InvalidArgument(f"calibrate: there is no mechanism {unknown[0]!r}. {nearest(unknown[0], FAMILIES)}")
    wanted = [FAMILIES[text] for text in mechanisms or FAMILIES]
    known, protected = REFERENCE_RECORDS if records is None else records, Unit.of(unit)
    with working(now()):
        say("simulating releases of made-up tables")
        by_measure = {
            measure: ranking(cells=cells, records=known, target=target, unit=protected, releases=times, measure=measure)
            for measure in MEASURES
        }
    ranked = by_measure["kl"]
    chosen = [each for each in ranked.predictions if each.name.split()[0] in wanted]
    if not chosen:
        reasons = "; ".join(
            f"{label}: {reason}" for label, reason in ranked.impossible if label.split(",")[0] in wanted
        )
        raise TargetUnreachable(f"calibrate: no such mechanism meets {target}. {reasons}.")
    if plot is not None:
        from dpbayes.plot.pictures import errors_picture

        rows = [(each.label, each.mean, each.quantile) for each in chosen]
        axis, title = MEASURES["kl"], f"Expected error at {target}"
        picture = errors_picture(rows, chosen[0].label, failure=0.05, measure=axis, title=title, why=ranked.why)
        picture.save(plot)
    result = {
        "target": target.record(),
        "unit": protected.record(),
        "times": times,
        "cells": cells,
        "records": known,
        "choice": ranked.choice.label,
        "why": ranked.why,
        "mechanisms": [_predicted(each, by_measure, target, times) for each in chosen],
        "impossible": [{"label": label, "reason": reason} for label, reason in ranked.impossible],
    }

    def people() -> None:
        lines = [
            (
                each["label"],
                _parameters(each["mechanism"]),
                *(f"{each['errors'][measure]:.3g}" for measure in MEASURES),
            )
            for each in result["mechanisms"]  # type: ignore[attr-defined]
        ]
        title = f"{target}: {plural(times, 'release')} of {cells} cells, {known:,} records, {protected.adjacency}"
        notes = [f"{label}: {reason}." for label, reason in ranked.impossible if not mechanisms]
        columns = ("mechanism, product", "parameters", *(name.removesuffix(" distance") for name in MEASURES.values()))
        print_table(title, columns, lines, notes=[*notes, *([] if mechanisms else [ranked.why])])

    return Output(result, people)


def _target(asked: GuaranteeOptions, ledger: str | None) -> Guarantee:
    """The target, priced as a ledger does that is named, at its δ unless another is said."""
    said = asked_for(**asked, wanted=False)
    if not said:
        raise InvalidArgument("Guarantee: expected --epsilon with --delta, as in --epsilon 1 --delta 1e-6.")
    target: Guarantee = said["target"]
    if ledger is None or ledger == "none":
        return target
    from dpbayes.ledger.ledger import Ledger

    book = Ledger(ledger)
    account = book.account(book.only())
    if said["open_delta"] and account.budget.exception:
        target = ApproxDP(epsilon=target.size, delta=account.budget.exception)
    return account.priced(target)


def _predicted(each: Prediction, by_measure: dict[Any, Ranking], target: Guarantee, times: int) -> dict[str, Any]:
    means = {
        measure: next(other.mean for other in found.predictions if other.label == each.label)
        for measure, found in by_measure.items()
    }
    return {
        "label": each.label,
        "product": each.product,
        "mechanism": each.mechanism.record(),
        "gap": target.gap(Cost.of(each.mechanism, times)),
        "errors": means,
        "standard_error": each.standard_error,
    }


def _parameters(record: dict[str, object]) -> str:
    letters = {"weight": "r", "concentration": "α", "sigma": "σ", "scale": "b"}
    return ", ".join(f"{letters[key]}={value:.4g}" for key, value in record.items() if key in letters)


BAR_WIDTH = 40

EXCEPTION = 10.0
"""Odds are stated with an exception of ten times δ: at δ itself no bound on them follows from (ε, δ)."""


def risk(
    release: File = None, *, unit: str, blind: tuple[float, ...], plot: File, **asked: Unpack[GuaranteeOptions]
) -> Output:
    """Of a release its composed cost is used, exactly, instead of a guarantee; 'GDP(0.5)' is a guarantee here too.

    Example: dpbayes risk --epsilon 1 --delta 1e-6
    """
    text = asked["guarantee"] or ""
    gaussian = text.startswith("GDP")
    said = {} if gaussian else asked_for(**asked, wanted=False)
    if (release is not None) + bool(said) + gaussian != 1:
        raise InvalidArgument("risk: expected a release, or a guarantee such as --epsilon 1 --delta 1e-6; one of them.")
    priced: Guarantee | Cost | GDP
    promise: Guarantee | None = None
    protected, records = Unit.of(unit), None
    if release is not None:
        useless("a release, which has its own", "unit")
        made = Release.load(release)
        priced, promise, protected, records = made.cost, made.promise, made.unit, made.records
    elif gaussian:
        priced = GDP(**by_name("risk", text, ("mu",), called("risk", text)[2]))
    else:
        priced = promise = said["target"]
    profile, found = profile_of(priced), Risk.of(priced, blind=blind or BLIND)
    spoken = () if promise is None else cautions(promise, protected, records=records)
    beyond = EXCEPTION * (promise.exception or 1e-6 if promise else 1e-6)
    factor = odds(profile, min(beyond, 0.5))
    if plot is not None:
        from dpbayes.plot.pictures import risk_picture

        risk_picture(profile, str(promise or priced)).save(plot)
    result = {
        "odds_factor": factor,
        "except_with_probability": beyond,
        "membership": found.membership,
        "guesses": [{"blind": guess, "at_most": right} for guess, right in found.guesses],
        "warnings": list(spoken),
    }
    exception = "" if promise and promise.pure else f", except with probability {chance(beyond)}"
    return Output(result, lambda: _print(found, factor, exception, protected, promise or priced, spoken))


def _print(found: Risk, factor: float, exception: str, unit: Unit, said: object, spoken: tuple[str, ...]) -> None:
    tell_people(f"What {said} means to one person", bold=True)
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
        tell_people(warning(each), bold=True)
