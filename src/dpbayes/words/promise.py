"""Every sentence about a guarantee: what it means, and what to state about unit, mechanisms and threats.

The report, the privacy sheet and the registry of deployments say the same, so they cannot disagree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dpbayes.base.display import WARNING, listed_and, rounded_up
from dpbayes.mechanisms.kinds import class_of
from dpbayes.privacy.calibrate import guarantee_from_record
from dpbayes.privacy.guarantee import RDP, ZCDP, ApproxDP, Guarantee, PureDP
from dpbayes.release.format import Paid, Release, Table
from dpbayes.release.words import likely, rows, times, unless
from dpbayes.schema.unit import Unit
from dpbayes.words import budget

NOT_PRIVATE = (
    "Not private. This release was drawn with a seed. Whoever knows or guesses the seed can remove the noise. "
    "Use it for tests with data that is public already, and do not publish it."
)

PARAMETERS = {
    "weight": "weight r",
    "concentration": "concentration α",
    "least_count": "public lower bound of every count",
    "sensitivity": "declared sensitivity",
    "grid": "grid",
    "records": "number of pseudo-records",
    "sigma": "standard deviation σ",
    "scale": "scale",
    "cells": "number of cells",
}

VARIANTS: dict[type, str] = {
    PureDP: "Pure DP",
    ApproxDP: "Approximate DP",
    ZCDP: "Zero-concentrated DP",
    RDP: "Renyi DP",
}
"""The names that the registry of deployments has for notions of privacy; it calls all others custom."""

FLOATING = (
    "Noise is drawn from exact integer distributions, or rounded to a grid so coarse that floating-point errors do not "
    "show."
)
SAMPLING = "Randomness comes from ChaCha20 streams, each keyed with 256 bits of the operating system's entropy."
POST = (
    "Estimates and intervals are computed from the released values and public totals alone: agreeing tables, no "
    "negative counts, intervals for the noise. The released values are published unaltered beside them."
)
TRUST = (
    "Central model. The curator holds the rows and is trusted to run the software unmodified. Readers may be anyone, "
    "with any knowledge from elsewhere and any computing power; they may work together."
)
SIDE = (
    "Charges, messages and errors do not depend on the rows. How long a release takes does, and whoever can watch the "
    "machine can measure it; the release is made once and offline, so readers cannot."
)
OWN = "To be stated by the publisher: dpbayes does not know it."


def variant(promise: Guarantee) -> str:
    """The name of the notion of privacy."""
    return VARIANTS.get(type(promise), "Custom")


def parameters(promise: Guarantee) -> dict[str, float]:
    """ε, δ and ρ, as far as the guarantee has them."""
    record = promise.record()
    return {key: float(record[key]) for key in ("epsilon", "delta", "rho") if key in record}


def warning(said: str) -> str:
    """A warning, marked as such on the terminal, in the studio and in the report."""
    return f"{WARNING}: {said}"


def whom(unit: Unit) -> str:
    """Whom a guarantee protects, in a sentence.

    >>> whom(Unit(adjacency="add-remove", max_rows=3, person="pid"))
    "Protects each person, with up to 3 rows, told apart by the column 'pid'. The number of records stays private."
    """
    who = "" if unit.person is None else f", told apart by the column {unit.person!r}"
    size = "is public" if unit.fixed_size else "stays private"
    return f"Protects each person, with {rows(unit)}{who}. The number of records {size}."


def _rows(unit: Unit) -> str:
    return rows(unit).removeprefix("up to ")


def unit_name(release: Release) -> str:
    """Whom it protects, in two words."""
    return "Person-level" if release.unit.person is not None or release.unit.max_rows == 1 else "Person-level, by rows"


def unit_details(release: Release) -> str:
    """What counts as adjacent data sets."""
    unit = release.unit
    change = "replacing the rows of one person by others" if unit.replaces else "adding or removing one person's rows"
    held = (
        f"The column {unit.person} identifies people, and no more rows of each are read."
        if unit.person is not None
        else "The data owner vouches that nobody has more; the software does not check it."
    )
    return (
        f"Data sets are neighbours ({unit.adjacency}) if they differ by {change}. "
        f"A person has at most {_rows(unit)}. {held}"
    )


def unprotected(release: Release) -> str:
    """What is published as it is, without noise."""
    public = ["the names of the attributes and their declared categories and bins"]
    if release.unit.fixed_size and release.records is not None:
        public.append(f"the number of records, {release.records:,}")
    public += [f"the totals of {', '.join(margin.of)}" for margin in release.schema.margins]
    return f"Public, and not protected: {listed_and(public)}. They were declared, not learned from the rows."


def domain(release: Release) -> str:
    """The data sets that the guarantee compares."""
    named = listed_and([f"{each.name} ({len(each.levels)} levels)" for each in release.schema.attributes], most=30)
    return f"Tables with one row per record and these attributes: {named}."


def mechanisms(release: Release) -> list[str]:
    """The mechanisms with their parameters, a sentence for each kind."""
    kinds: dict[str, list[Paid]] = {}
    for paid in release.paid:
        kinds.setdefault(str(paid.mechanism.record().get("mechanism")), []).append(paid)
    said = []
    for kind, drawn in kinds.items():
        records = [paid.mechanism.record() for paid in drawn]
        keys = [key for key in records[0] if key not in ("mechanism", "unit")]
        parts = []
        for key in keys:
            values = list(dict.fromkeys(parameter(record.get(key)) for record in records))
            parts.append(f"{PARAMETERS.get(key, key)} {listed_and(values, most=12)}")
        said.append(f"{kind}, drawn {times(sum(paid.times for paid in drawn))}: {'; '.join(parts)}.")
    return said


def implementation(release: Release) -> str:
    """What drew it, in which version."""
    versions = ", ".join(f"{name} {version}" for name, version in release.software.items())
    return f"Drawn by dpbayes, an open-source library ({versions}). {SAMPLING} {FLOATING}"


def composition(release: Release) -> str:
    """How costs were added up, and where the total stands."""
    said = (
        "All draws of the release were priced together: exact privacy loss distributions for (ε, δ), sums of "
        f"Rényi divergences otherwise. They keep within {release.promise}."
    )
    if release.spending is None:
        return f"{said} No ledger counts other releases of the same data."
    spent = budget.spent(release.spending.spent, guarantee_from_record(release.spending.budget))
    return (
        f"{said} A ledger adds up all releases of the same data and refuses what would exceed its limit; with this "
        f"one, {spent}."
    )


def preparation(release: Release) -> str:
    """What happened to the rows before noise was added, and how parameters were set."""
    bought = [answer.name for answer in release.answers]
    learned = f" Discovered in the rows, and charged in this release: {listed_and(bought)}." if bought else ""
    return (
        "Values were mapped to the declared categories and bins, and counted. Categories, bins and parameters were "
        f"chosen from public knowledge, without looking at the rows.{learned} How the mechanism was chosen: "
        f"{release.choice.rstrip('.')}."
    )


def accuracy(release: Release) -> str:
    """How exact the numbers are."""
    if not any("counts" in table.products for table in release.tables):
        return "The release carries no estimates with intervals."
    return (
        f"Every cell has a {100 * release.level:g} % interval for the noise that was added. Small groups have wide "
        "intervals, and groups that are lost in the noise are marked. Wrong answers and people who are not in the data "
        "are not accounted for."
    )


def short_promise(release: Release) -> str:
    """The guarantee in one short sentence."""
    promise = release.promise
    epsilon, delta = promise.epsilon_delta or (math.inf, 0.0)
    if epsilon < 50:
        whether = "whatever a person answered" if release.unit.replaces else "whether or not a person took part"
        return f"It is private: {whether}, {likely(epsilon, delta)}."
    return f"It is private, within {promise}."


def law(table: Table, mechanism: Mapping[str, object]) -> str:
    """The law that the released values follow, given the counts."""
    name = "pseudo-records-1" if table.kind == "pseudo-records" else str(mechanism.get("mechanism"))
    return class_of(name).law_in_words


def meaning(release: Release) -> list[str]:
    """What the guarantee means, a point each."""
    unit, said = release.unit, [release.statement(), _in_practice(release.promise, release.unit)]
    changed = "had other answers" if unit.replaces else "was not in the data at all"
    said.append(
        f"It holds for everyone who has at most {_rows(unit)} in the data, whatever a reader knows already. "
        f"The comparison is with the same data in which that person {changed}."
    )
    said.append(
        "Nothing that is computed from the published numbers weakens it. The estimates, intervals and figures of "
        "this report were made from them alone."
    )
    return said


def _in_practice(promise: Guarantee, unit: Unit) -> str:
    epsilon, delta = promise.epsilon_delta or (math.inf, 0.0)
    if epsilon < 50:
        # Under add-remove, two answers are two steps apart: removing one, adding the other.
        bet = "between two answers of a person" if unit.replaces else "on whether a person took part"
        return (
            f"In practice: reading this release improves the odds of someone who bets {bet} at most "
            f"{rounded_up(math.exp(epsilon), 3)}-fold{unless(delta)}."
        )
    return promise.in_practice or "In practice, this is so weak that a reader may learn a person's answer."


def limits(release: Release) -> list[str]:
    """What the guarantee does not mean, a point each."""
    public = "the lists of categories" + (" and the number of records" if release.unit.fixed_size else "")
    return [
        "It is not about what is true of everyone. If the tables show that a region is poor, readers learn this about "
        "its people, including those who never took part.",
        f"It does not hide what was declared public: {public}.",
        "It covers this release only. Other releases of the same data add to what can be learned. The ledger keeps "
        "the total and refuses what would exceed the limit.",
        "It protects one person at a time. For a household of k people it is weaker, about k-fold.",
        "It fails if the randomness is repeated or known. A release that was drawn with a seed guarantees nothing.",
        "The intervals account for the noise that was added, not for wrong answers or for people who are not in the "
        "data.",
    ]


def parameter(value: object) -> str:
    """A parameter for people, with six digits; the record has all of them."""
    if isinstance(value, list):
        return ", ".join(map(parameter, value)) if len(value) <= 8 else f"{len(value)} values, see the record below"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {parameter(item)}" for key, item in value.items())
    if isinstance(value, float):
        return f"{value:.6g}"
    return "none" if value is None else str(value)
