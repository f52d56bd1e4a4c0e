"""Wanted accuracies, such as ``income|sex ± 1 point`` or ``region ± 50 records``, and the least guarantee for them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dpbayes.base import checks
from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.inference.intervals import reach
from dpbayes.privacy.guarantee import Guarantee, rounded_up
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema

OWNER = "want"

LOOSEST = 1e5
"""The largest ε or ρ that is looked for."""

DIGITS = 4
"""A least guarantee is rounded up to this many digits."""

_FORM = re.compile(
    r"\s*(?:(?P<table>.+?)\s*)??(?:±|\+/?-)?\s*(?P<number>\.?\d[\d.,]*)\s*"
    r"(?P<unit>records?|(?:percentage\s+)?points?|%)\s*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """How exact a table has to be: half the width of the intervals of its cells.

    Points of a conditional table are those of a share of one half, in a group of average size; points of a joint
    table are those of a cell's share of all records.
    """

    marginal: Marginal
    half: float
    unit: Literal["records", "points"]

    def __str__(self) -> str:
        unit = self.unit.removesuffix("s") if self.half == 1 else self.unit
        return f"{self.marginal} ± {self.half:.12g} {unit}"

    @property
    def group(self) -> tuple[str, ...]:
        """Within which attributes shares are meant."""
        return self.marginal.given if self.unit == "points" else ()

    def error(self, schema: Schema, records: int | None, level: float) -> float:
        """The standard error that is wanted, in records."""
        self.marginal.axes(schema)
        z = reach(level)
        if self.unit == "records":
            return self.half / z
        known = schema.records or records
        if known is None:
            raise InvalidArgument(
                f"{OWNER}: points of {self.marginal} need the number of records. Declare records in the schema, or "
                "give a guess with expected_records."
            )
        groups = math.prod(self.marginal.shape(schema)[: len(self.marginal.given)])
        return self.half / 100 * known / groups / z


def wants(given: Mapping[str, str] | Sequence[str]) -> tuple[Want, ...]:
    """Wanted accuracies by table, or as texts that name their table.

    >>> [str(each) for each in wants({"income|sex": "± 1 point", "region": "50 records"})]
    ['income|sex ± 1 point', 'region ± 50 records']
    >>> str(wants(["income|sex +- 0.5 points"])[0])
    'income|sex ± 0.5 points'
    """
    texts = [f"{table} ± {half}" for table, half in given.items()] if isinstance(given, Mapping) else list(given)
    if isinstance(given, str) or not all(isinstance(text, str) for text in texts):
        raise InvalidArgument(f"{OWNER}: expected texts such as 'region ± 50 records', or one for each table.")
    found = tuple(_want(text) for text in texts)
    for number, each in enumerate(found):
        if any(each.marginal == other.marginal for other in found[:number]):
            raise InvalidArgument(f"{OWNER}: {each.marginal} is named twice. Say once how exact it has to be.")
    return found


def is_want(text: str) -> bool:
    """Whether a table is named with the accuracy wanted."""
    return re.search(r"±|\+/?-", text) is not None


def _want(text: str) -> Want:
    form = _FORM.fullmatch(re.sub(r"±\s*(±|\+/?-)", "±", text))
    if form is None or form["table"] is None:
        raise InvalidArgument(
            f"{OWNER}: cannot read {text!r}. Write a table, ± and a number of records or points, as in "
            "'region ± 50 records' or 'income|sex ± 1 point'."
        )
    half = checks.number(OWNER, f"the number in {text!r}", form["number"])
    if not half > 0:
        raise InvalidArgument(f"{OWNER}: expected a number above 0 in {text!r}.")
    unit: Literal["records", "points"] = "records" if form["unit"].startswith("record") else "points"
    return Want(marginal=Marginal.parse(form["table"]), half=half, unit=unit)


def loosest(cap: Guarantee) -> Guarantee:
    """The same notion of privacy without a limit to speak of."""
    return cap.of_size(LOOSEST)


def least(
    cap: Guarantee, enough: Callable[[Guarantee], bool], *, lowest: float = 1e-9, tolerance: float = 1e-9
) -> Guarantee | None:
    """The smallest guarantee of the cap's notion that is ``enough``, rounded up; None if it is above the cap.

    What is looked at lies above ``lowest``; the logarithm of the size is found up to a ``tolerance``.
    """
    if not enough(cap):
        return None
    low, high = math.log(lowest), math.log(cap.size)
    while high - low >= tolerance:
        middle = (low + high) / 2
        if enough(cap.of_size(math.exp(middle))):
            high = middle
        else:
            low = middle
    return cap.of_size(min(float(rounded_up(math.exp(high), DIGITS)), cap.size))


def out_of_reach(needed: Guarantee | None, cap: Guarantee, reached: Sequence[str]) -> TargetUnreachable:
    """The sentence for accuracies that a guarantee does not allow."""
    much = f"it needs {needed}" if needed is not None else "no guarantee of this kind is enough for it"
    return TargetUnreachable(
        f"{OWNER}: this accuracy is out of reach: {much}, and at most {cap} is allowed. "
        f"With that, {'; '.join(reached)}. Ask for less, or allow more."
    )
