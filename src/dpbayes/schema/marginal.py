"""Which table is asked for: a joint one, or a conditional one."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from difflib import get_close_matches

from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.schema import Schema

_NAME = r'"(?:[^"]|"")*"|[^",|]+'
_NAMES = rf"(?:{_NAME})(?:,(?:{_NAME}))*"
_FORM = re.compile(rf"(?P<of>{_NAMES})(?:\|(?P<given>{_NAMES}))?")


@dataclass(frozen=True, slots=True)
class Marginal:
    """A joint table of the attributes ``of``, or one of ``of`` for each combination of ``given``.

    Axes come in the order *given first, then of*, so the rows of a conditional table are its leading axes.

    >>> str(Marginal.parse("income|sex,age"))
    'income|sex,age'
    >>> Marginal.parse("income|sex,age").names
    ('sex', 'age', 'income')
    """

    of: tuple[str, ...]
    given: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for side in ("of", "given"):
            names = getattr(self, side)
            names = (names,) if isinstance(names, str) else tuple(names)
            object.__setattr__(self, side, names)
        if not self.of or not all(isinstance(name, str) and name for name in self.names):
            raise SchemaError("Marginal: expected one attribute name or more, as in sex,income or income|sex.")
        if len(set(self.names)) < len(self.names):
            raise SchemaError(f"Marginal: {self} names an attribute twice. Name each attribute once.")

    @classmethod
    def parse(cls, text: str) -> Marginal:
        """Read ``sex,income`` or ``income|sex,age``; names with ``,``, ``|`` or ``"`` go in double quotes."""
        form = _FORM.fullmatch(text.strip())
        if form is None:
            read = _FORM.match(text.strip())
            raise SchemaError(
                f"Marginal: cannot read {text!r} from character {read.end() + 1 if read else 1} on. "
                "Write names with commas, as in sex,income, "
                "and what to condition on after a bar, as in income|sex,age."
            )
        return cls(_split(form["of"]), _split(form["given"] or ""))

    @classmethod
    def of_text(cls, marginal: str | Marginal) -> Marginal:
        """A marginal, or the text of one."""
        if isinstance(marginal, cls):
            return marginal
        if not isinstance(marginal, str):
            raise InvalidArgument(
                f"Marginal: expected a table as text, got {marginal!r}. Give each its own text, as in "
                "Tables('region', 'income|sex')."
            )
        return cls.parse(marginal)

    @property
    def names(self) -> tuple[str, ...]:
        """Attribute names in axis order."""
        return self.given + self.of

    def axes(self, schema: Schema) -> tuple[Attribute, ...]:
        """The attributes in axis order; an error names one that the schema does not have."""
        known = {attribute.name: attribute for attribute in schema.attributes}
        for name in self.names:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                none = "It declares none yet. Declare it, or release its categories (`--as categories`)."
                hint = f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(known)}." if known else none
                raise SchemaError(f"Marginal: the schema has no attribute {name!r}. {hint}")
        return tuple(known[name] for name in self.names)

    def shape(self, schema: Schema) -> tuple[int, ...]:
        """Levels per axis."""
        return tuple(len(axis.levels) for axis in self.axes(schema))

    def size(self, schema: Schema) -> int:
        """Number of cells, as an exact integer of any size."""
        return math.prod(self.shape(schema))

    def rows(self, schema: Schema) -> int:
        """Number of combinations of the given attributes: rows that are normalised apart."""
        return math.prod(self.shape(schema)[: len(self.given)])

    def kept(self, schema: Schema) -> tuple[slice, ...]:
        """Which cells stand for kept rows: ``table[kept]`` is without the levels that count dropped ones."""
        return tuple(slice(0, len(axis.levels) - axis.drops) for axis in self.axes(schema))

    def record(self) -> dict[str, list[str]]:
        """JSON form."""
        return {"of": list(self.of), "given": list(self.given)}

    @classmethod
    def from_record(cls, record: object) -> Marginal:
        """Read the JSON form back."""
        if not isinstance(record, dict) or set(record) != {"of", "given"}:
            raise SchemaError("Marginal: expected a record with of and given.")
        if not all(isinstance(record[side], list) for side in record):
            raise SchemaError("Marginal: expected of and given to be lists of names.")
        return cls(tuple(record["of"]), tuple(record["given"]))

    def __str__(self) -> str:
        sides = [",".join(_quoted(name) for name in side) for side in (self.of, self.given) if side]
        return "|".join(sides)


def _split(names: str) -> tuple[str, ...]:
    found = re.findall(_NAME, names)
    return tuple(name[1:-1].replace('""', '"') if name.startswith('"') else name.strip() for name in found)


def _quoted(name: str) -> str:
    plain = re.fullmatch(r'[^",|]+', name) and name == name.strip()
    return name if plain else '"' + name.replace('"', '""') + '"'
