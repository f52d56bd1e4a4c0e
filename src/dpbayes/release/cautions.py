"""What the published numbers say against the schema: values that it does not list, and levels that look empty."""

from __future__ import annotations

from dpbayes.domain.attribute import OTHER, Attribute
from dpbayes.domain.display import listed
from dpbayes.domain.labels import labels
from dpbayes.inference.numbers import TableEstimate

MOST_OTHER = 0.05
"""A larger share of values that no list holds is worth a look at the list."""

EMPTY = 0.01
"""A level looks empty if nobody may have it, and surely less than this part of an even share of the records."""


def cautions(attribute: Attribute, found: TableEstimate) -> tuple[str, ...]:
    """Sentences about one attribute, from its published shares alone: free, and the same for every reader.

    Where noise hides whether a level is empty, the upper end of its interval is large, and nothing is said.
    """
    shares, levels, names = found.records, attribute.levels, labels(attribute)
    said = []
    if OTHER in levels[len(attribute.declared) :]:
        at = levels.index(OTHER)
        if shares.values[at] > MOST_OTHER and shares.lower[at] > 0:
            what = "values that the schema does not list"
            what += "" if attribute.splits_missing else ", or missing ones"
            said.append(
                f"{attribute.name}: {_percent(shares.values[at])} of the records ({_percent(shares.lower[at])} to "
                f"{_percent(shares.upper[at])}) are {names[at]!r}: {what}. Compare the schema with the column."
            )
    most = EMPTY / len(levels)
    empty = [at for at in range(len(attribute.declared)) if shares.lower[at] <= 0 and shares.upper[at] < most]
    if empty:
        upper, which = max(float(shares.upper[at]) for at in empty), listed([names[at] for at in empty])
        said.append(
            f"{attribute.name}: hardly any record, at most {_percent(upper)}, is {which}, "
            "although the schema declares it. Check the spelling."
        )
    return tuple(said)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
