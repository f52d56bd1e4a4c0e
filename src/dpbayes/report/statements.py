"""What a publisher of private statistics should state, in sentences: unit, parameters, mechanisms, accounting, threats.

One place for the privacy sheet and for the registry of deployments, so that they cannot disagree.
"""

from __future__ import annotations

from dpbayes.privacy.guarantee import RDP, ZCDP, ApproxDP, Guarantee, PureDP, rounded_up
from dpbayes.release.format import Paid, Release
from dpbayes.release.words import times
from dpbayes.report import words

VARIANTS: dict[type, str] = {
    PureDP: "Pure DP",
    ApproxDP: "Approximate DP",
    ZCDP: "Zero-concentrated DP",
    RDP: "Renyi DP",
}
"""The names that the registry of deployments has for notions of privacy; it calls all others custom."""

FLOATING = (
    "Noise is drawn from exact integer distributions, or rounded to a grid so coarse that the doubles behind it do not "
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
    """ε, δ and ρ, as far as the promise has them."""
    record = promise.record()
    return {key: float(record[key]) for key in ("epsilon", "delta", "rho") if key in record}


def unit_name(release: Release) -> str:
    """Whom it protects, in two words."""
    return "Person-level" if release.unit.person is not None or release.unit.max_rows == 1 else "Person-level, by rows"


def unit_details(release: Release) -> str:
    """What counts as adjacent data sets."""
    unit = release.unit
    change = "replacing the rows of one person by others" if unit.replaces else "adding or removing one person's rows"
    rows = "one row" if unit.max_rows == 1 else f"{unit.max_rows} rows"
    held = (
        f"The column {unit.person} identifies people, and no more rows of each are read."
        if unit.person is not None
        else "That nobody has more is the owner's word; the software does not check it."
    )
    return (
        f"Data sets are neighbours ({unit.adjacency}) if they differ by {change}. A person has at most {rows}. {held}"
    )


def unprotected(release: Release) -> str:
    """What is published as it is, without noise."""
    public = ["the names of the attributes and their declared categories and bins"]
    if release.unit.fixed_size and release.records is not None:
        public.append(f"the number of records, {release.records:,}")
    public += [f"the totals of {', '.join(margin.of)}" for margin in release.schema.margins]
    return f"Public, and not protected: {words.listed_and(public)}. They were declared, not learned from the rows."


def domain(release: Release) -> str:
    """The data sets that the promise compares."""
    named = words.listed_and(
        [f"{each.name} ({len(each.levels)} levels)" for each in release.schema.attributes], most=30
    )
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
            values = list(dict.fromkeys(words.parameter(record.get(key)) for record in records))
            parts.append(f"{words.PARAMETERS.get(key, key)} {words.listed_and(values, most=12)}")
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
    budget = release.spending.budget
    limit = budget.get("epsilon", budget.get("rho", 0.0))
    return (
        f"{said} A ledger adds up all releases of the same data and refuses what would exceed its limit; with this "
        f"one, {rounded_up(release.spending.spent, 4)} of {limit:g} is spent."
    )


def preparation(release: Release) -> str:
    """What happened to the rows before noise was added, and how parameters were set."""
    bought = [answer.name for answer in release.answers]
    learned = f" Learned from the rows, and paid for in this release: {words.listed_and(bought)}." if bought else ""
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
        "intervals, and groups that noise swallows are marked. Wrong answers and people who are not in the data are "
        "not accounted for."
    )
