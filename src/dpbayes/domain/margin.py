"""Tables of totals that are public knowledge, and whether they agree with the schema and with each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpbayes.domain.faults import Faults
from dpbayes.domain.keys import checked_table, text_list
from dpbayes.errors import SchemaError

if TYPE_CHECKING:
    from dpbayes.domain.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """A table of totals that is public knowledge, row-major over the levels of its attributes."""

    of: tuple[str, ...]
    totals: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", tuple(self.of))
        object.__setattr__(self, "totals", tuple(self.totals))
        if not all(type(total) is int and total >= 0 for total in self.totals):
            raise SchemaError("Schema: expected the totals of a margin to be whole numbers, zero or above.")

    def table(self) -> dict[str, object]:
        """The declaration as plain values."""
        return {"of": list(self.of), "totals": list(self.totals)}


def read_margin(entry: object, faults: Faults) -> Margin:
    """One [[margin]] of a schema file."""
    table = checked_table(entry, where="a [[margin]]", required=("of", "totals"), faults=faults)
    faults.raise_all(SchemaError)
    if not isinstance(table["totals"], list):
        raise SchemaError("Schema: a margin needs totals as a list in brackets.")
    return Margin(of=text_list(table["of"], "of in a [[margin]]"), totals=tuple(table["totals"]))


def check_margins(schema: Schema) -> None:
    """Refuse totals that do not fit the levels, the number of records, what is impossible, or each other."""
    for margin in schema.margins:
        shape = [len(schema[name].levels) for name in margin.of]
        if len(margin.totals) != math.prod(shape):
            raise SchemaError(
                f"Schema: the margin of {', '.join(margin.of)} needs {math.prod(shape)} totals, one for each "
                f"combination of levels, got {len(margin.totals)}. `dpbayes schema show` lists them."
            )
        if schema.records is not None and sum(margin.totals) != schema.records:
            raise SchemaError(f"Schema: the margin of {', '.join(margin.of)} does not add up to records.")
        totals, zeros = np.reshape(margin.totals, shape), schema.zeros(margin.of)
        if zeros is not None and totals[zeros].any():
            raise SchemaError(
                f"Schema: the margin of {', '.join(margin.of)} has people in a combination that the schema calls "
                "impossible. Correct one of them."
            )
        _check_agreement(schema, margin, totals)


def _check_agreement(schema: Schema, margin: Margin, totals: np.ndarray) -> None:
    """Margins that share attributes have the same totals of them."""
    for other in schema.margins[: schema.margins.index(margin)]:
        shared = [name for name in margin.of if name in other.of]
        theirs = np.reshape(other.totals, [len(schema[name].levels) for name in other.of])
        if not np.array_equal(summed(totals, margin.of, shared), summed(theirs, other.of, shared)):
            about = f"the totals of {', '.join(shared)}" if shared else "the number of records"
            raise SchemaError(
                f"Schema: the margins of {', '.join(other.of)} and of {', '.join(margin.of)} contradict each other "
                f"in {about}. Correct one of them."
            )


def summed(array: np.ndarray, names: Sequence[str], kept: Sequence[str]) -> np.ndarray:
    """An array with named axes summed out to some of them, in the order of ``kept``."""
    left = [name for name in names if name in kept]
    total = array.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in kept))
    return np.asarray(total).transpose([left.index(name) for name in kept])
