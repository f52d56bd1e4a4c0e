"""One declared column: its categories, bins or dates, and where every other value goes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import date
from decimal import Decimal
from itertools import pairwise

from dpbayes.base import checks, display
from dpbayes.base.errors import SchemaError
from dpbayes.base.toml import Faults
from dpbayes.schema.values import (
    Period,
    check_days,
    date_cuts,
    date_labels,
    date_number,
    date_of,
    is_missing,
    number_in,
    number_of,
    plain,
    text_of,
    text_or_none,
)

OTHER, MISSING, DROPPED = "other", "missing", "(dropped)"

_GOES = {
    "unknown": {"other": OTHER, "drop": DROPPED, "refuse": DROPPED},
    "missing": {"other": OTHER, "category": MISSING, "drop": DROPPED},
}

LONGEST_NOTE = 300
"""Characters of a label or a source."""


@dataclass(frozen=True, slots=True, repr=False)
class Attribute(display.Shown):
    """A column with declared categories, a number cut at declared edges into bins [a, b), or a date cut likewise.

    The levels are the axis of every table that contains the attribute: what was declared, then whichever of
    ``missing``, ``other`` and ``(dropped)`` the rules need. No value is left out, so a table sums to all its rows.
    Unless it is said otherwise, missing values have a level of their own, apart from undeclared ones.

    >>> Attribute(name="sex", categories=("F", "M")).levels
    ('F', 'M', 'missing', 'other')
    >>> Attribute(name="age", edges=(0, 18, float("inf")), unknown="drop").levels
    ('[0, 18)', '[18, inf)', 'missing', '(dropped)')
    >>> Attribute(name="job", categories=("works", "other"), codes={"works": ["1", "2"]}).texts
    ('1', '2', 'other')
    >>> Attribute(name="sex", categories=("F", "M"), closed="M").levels
    ('F', 'M')
    """

    name: str
    categories: tuple[str, ...] = ()
    _: KW_ONLY
    edges: tuple[float, ...] = ()
    unknown: str = "other"
    """Where values go that are not declared: ``other``, ``drop``, ``refuse``, or a declared level."""
    missing: str = "category"
    """Where missing values go: ``other``, ``category``, ``drop``, or a declared level."""
    dates: tuple[date, ...] = ()
    """Days at which a date is cut; with a period the first day, and the day after the last one."""
    period: Period | None = None
    codes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Recodes: for some categories the texts in the rows that mean it, instead of its own name."""
    labels: tuple[tuple[str, str], ...] = ()
    """What to print instead of a level."""
    source: str = ""
    """Where the declaration comes from, for readers."""
    max_rows: int | None = None
    """The most rows of one person at any declared level, if that is public: for intervals, the noise stays as it is."""
    closed: InitVar[str | None] = None
    """A declared level for all that is not declared and all that is missing: the same as naming it in both rules."""
    levels: tuple[str, ...] = field(init=False, compare=False)
    """All positions on the axis. A declared category named *other* or *missing* takes those values in."""

    def __post_init__(self, closed: str | None) -> None:
        if not isinstance(self.name, str) or not self.name or not _storable(self.name):
            raise SchemaError(f"Schema: expected an attribute's name to be text, got {self.name!r}.")
        faults = Faults("Schema")
        self._check_one_kind(faults)
        for key, each in (("categories", self._category), ("edges", self._edge), ("dates", self._day)):
            self._set_list(key, each, faults)
        self._check_cuts(faults)
        recodes: tuple[tuple[str, tuple[str, ...]], ...] = ()
        with faults.at("codes"):
            recodes = self._recodes()
        object.__setattr__(self, "codes", recodes)
        with faults.at("codes" if self.codes else "categories"):
            self._check_distinct()
        if not faults.found:  # the levels are known
            with faults.at("closed"):
                self._close(closed)
            for key, rules in _GOES.items():
                with faults.at(key):
                    self._check_rule(key, getattr(self, key), rules)
            if not faults.found:
                wanted = {self._goes("unknown"), self._goes("missing")} - {*self.declared}
                reserved = tuple(level for level in (MISSING, OTHER, DROPPED) if level in wanted)
                object.__setattr__(self, "levels", self.declared + reserved)
            with faults.at("labels"):
                object.__setattr__(self, "labels", () if faults.found else self._labels())
        with faults.at("source"):
            self._check_note("source", self.source)
        if self.max_rows is not None and (type(self.max_rows) is not int or self.max_rows < 1):
            faults.add(f"attribute {self.name!r} needs max_rows as a whole number >= 1.", "max_rows")
        faults.raise_all(SchemaError)

    def __repr__(self) -> str:
        return display.shorten(f"Attribute({self.name!r}: {display.listed(self.levels)})")

    def _facts(self) -> tuple[str, display.Facts]:
        return f"Attribute {self.name!r}", [("levels", display.listed(self.levels))]

    @property
    def declared(self) -> tuple[str, ...]:
        """The categories, or the labels of the bins."""
        if self.categories:
            return self.categories
        if self.dates:
            return date_labels(self.dates, self.period)
        return tuple(f"[{_plain(low)}, {_plain(high)})" for low, high in pairwise(self.edges))

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that rows may hold, for an attribute with categories: each belongs to one of them."""
        codes = dict(self.codes)
        return tuple(text for category in self.categories for text in codes.get(category, (category,)))

    @property
    def cuts(self) -> tuple[float, ...]:
        """The edges of a number or of a date, as numbers."""
        return self.edges or (date_cuts(self.dates, self.period) if self.dates else ())

    def label(self, level: str) -> str:
        """What to print for a level.

        >>> Attribute(name="sex", categories=("1", "2"), labels={"1": "male", "2": "female"}).label("2")
        'female'
        """
        return dict(self.labels).get(level, level)

    @property
    def drops(self) -> bool:
        """Whether the last level is the reserved one that counts dropped rows."""
        return self.levels[-1] == DROPPED

    @property
    def splits_missing(self) -> bool:
        """Whether missing values go elsewhere than unknown ones, so that engines must tell them apart."""
        return self._goes("missing") != self._goes("unknown")

    @property
    def level_of_code(self) -> tuple[int, ...]:
        """Where each code that an engine counts belongs among the levels.

        Codes are the position among the declared texts or bins, then one for missing values if ``splits_missing``,
        then one for unknown values.
        """
        levels, codes = self.levels, dict(self.codes)
        listed = [len(codes.get(category, (category,))) for category in self.categories] or [1] * len(self.declared)
        reserved = [levels.index(self._goes("missing"))] if self.splits_missing else []
        places = [place for place, many in enumerate(listed) for _ in range(many)]
        return (*places, *reserved, levels.index(self._goes("unknown")))

    def level(self, value: object) -> int:
        """The level of one value, by the same rule that engines apply to a whole table.

        >>> age = Attribute(name="age", edges=(0, 18, 65))
        >>> [age.levels[age.level(value)] for value in (17.9, 18, "64", 65, None)]
        ['[0, 18)', '[18, 65)', '[18, 65)', 'other', 'missing']
        """
        value = plain(value)
        if is_missing(value) or (self.edges and isinstance(value, str) and value.strip(" ").lower() == "nan"):
            return self.levels.index(self._goes("missing"))
        position = self._position(value) if self.categories else self._bin(value)
        return self.levels.index(self._goes("unknown")) if position is None else position

    def rows_at_levels(self, most: int) -> tuple[int, ...]:
        """The most rows of one person at each level: as declared, and all of them where undeclared values go.

        >>> Attribute(name="year", categories=("2024", "2025"), max_rows=1).rows_at_levels(8)[:2]
        (1, 1)
        """
        open_to_all = {self._goes("unknown"), self._goes("missing")}
        few = min(self.max_rows or most, most)
        return tuple(most if level in open_to_all else few for level in self.levels)

    def table(self) -> dict[str, object]:
        """The declaration as plain values, for TOML and JSON: what is empty is left out, the rules never are."""
        values: dict[str, object] = {
            key: list(getattr(self, key)) for key in ("categories", "edges", "dates") if getattr(self, key)
        }
        more: dict[str, object] = {
            "period": self.period,
            "codes": {level: list(texts) for level, texts in self.codes},
            "labels": dict(self.labels),
            "source": self.source,
            "max_rows": self.max_rows,
        }
        extra = {key: value for key, value in more.items() if value}
        return {"name": self.name, **values, "unknown": self.unknown, "missing": self.missing, **extra}

    def _goes(self, key: str) -> str:
        """The level that a rule leads to."""
        rule: str = getattr(self, key)
        return _GOES[key].get(rule, rule)

    def written(self, value: object) -> str | None:
        """The text that stands for one value in a column of texts; None if it is missing.

        A number with a fraction has no single text: it is the first listed one that denotes it, or none of them.

        >>> Attribute(name="dose", categories=("0.50", "1")).written(0.5)
        '0.50'
        """
        known = plain(value)
        if not self.categories or not isinstance(known, (float, Decimal)) or is_missing(known):
            return text_or_none(known)
        number = number_of(known)
        return next((text for text in self.texts if number_in(text) == number is not None), f"({text_of(known)})")

    def _position(self, value: object) -> int | None:
        text = self.written(value)
        return self.level_of_code[self.texts.index(text)] if text in self.texts else None

    def _bin(self, value: object) -> int | None:
        number, cuts = date_number(value) if self.dates else number_of(value), self.cuts
        if number is None or not math.isfinite(number) or not cuts[0] <= number < cuts[-1]:
            return None
        return sum(number >= cut for cut in cuts) - 1

    # -- checks -----------------------------------------------------------------------------------------------

    def _close(self, level: object) -> None:
        """Let one declared level count everything else: every row keeps a cell, so public totals hold."""
        fits = level in self.declared and all(rules.get(str(level), level) == level for rules in _GOES.values())
        for key in _GOES if level is not None else ():
            if not fits or getattr(self, key) != self.__dataclass_fields__[key].default:
                raise SchemaError(
                    f"Schema: attribute {self.name!r} has closed = {level!r}. Name the declared level that counts all "
                    f"other values, one of {display.listed(self.declared)}, and give neither unknown nor missing."
                )
            object.__setattr__(self, key, level)

    def _check_one_kind(self, faults: Faults) -> None:
        given = [key for key in ("categories", "edges", "dates") if _said(getattr(self, key))]
        if not given:
            faults.add(f"attribute {self.name!r} declares nothing. Give it categories, edges or dates.", "name")
        if len(given) > 1:
            faults.add(f"attribute {self.name!r} has {' and '.join(given)}. Keep one of them.", given[1])
        if self.period is not None and "dates" not in given:
            faults.add(f"attribute {self.name!r} has a period without dates. Give the first and last day.", "period")
        if self.codes and "categories" not in given:
            faults.add(f"attribute {self.name!r} has codes without categories. List the categories.", "codes")

    def _set_list(self, key: str, each: Callable[[object], object], faults: Faults) -> None:
        """Check and keep every entry of a list; the sound ones are kept while the others are named."""
        given, kept = getattr(self, key), []
        if isinstance(given, str) or not isinstance(given, Iterable):
            faults.add(f"attribute {self.name!r} needs its {key} as a list.", key)
            given = ()
        for value in given:
            with faults.at(key):
                kept.append(each(value))
        object.__setattr__(self, key, tuple(kept))

    def _category(self, value: object) -> str:
        if not isinstance(value, (str, int, date)):
            raise SchemaError(
                f"Schema: attribute {self.name!r} has the category {value!r}. Write it as text, in quotes."
            )
        text = text_of(value)
        if not _storable(text) or text == DROPPED:
            raise SchemaError(f"Schema: attribute {self.name!r} cannot have the category {text!r}. Rename.")
        return text

    def _edge(self, value: object) -> float:
        if isinstance(value, date):
            raise SchemaError(f"Schema: attribute {self.name!r} has dates as edges. Write dates = […] instead.")
        try:
            if isinstance(value, str):
                value = checks.number("Schema", "edge", value)
            number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isnan(number):
            raise SchemaError(
                f"Schema: attribute {self.name!r} has the edge {value!r}. Edges are numbers.{checks.hint(str(value))}"
            )
        return number + 0.0  # no negative zero

    def _day(self, value: object) -> date:
        try:
            return date_of(value)
        except ValueError:
            raise SchemaError(
                f"Schema: attribute {self.name!r} has the date {value!r}. Write a day, as in 2026-01-31."
            ) from None

    def _check_cuts(self, faults: Faults) -> None:
        if self.edges and (len(self.edges) < 2 or any(low >= high for low, high in pairwise(self.edges))):
            faults.add(f"attribute {self.name!r} needs two or more edges, each above the one before it.", "edges")
        if self.dates:
            try:
                check_days(self.dates, self.period)
            except SchemaError as problem:
                faults.add(f"attribute {self.name!r} {problem}", "dates")

    def _recodes(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The recodes in the order of the categories."""
        if not self.codes:
            return ()
        pairs = _pairs(self.codes, f"attribute {self.name!r} needs codes as a table, as in {{ works = ['1', '2'] }}.")
        found = {}
        for level, texts in pairs.items():
            listed = [texts] if isinstance(texts, (str, int)) else texts
            if level not in self.categories:
                raise SchemaError(f"Schema: attribute {self.name!r} has codes for {level!r}, which is no category.")
            if not isinstance(listed, (list, tuple)) or not listed:
                raise SchemaError(f"Schema: attribute {self.name!r} needs the codes of {level!r} as a list of texts.")
            found[level] = tuple(self._category(text) for text in listed)
        return tuple((level, found[level]) for level in self.categories if level in found)

    def _labels(self) -> tuple[tuple[str, str], ...]:
        """The labels in the order of the levels."""
        if not self.labels:
            return ()
        pairs = _pairs(self.labels, f"attribute {self.name!r} needs labels as a table, as in {{ 1 = 'male' }}.")
        for level, text in pairs.items():
            if level not in self.levels:
                raise SchemaError(
                    f"Schema: attribute {self.name!r} has a label for {level!r}, which is no level. It has "
                    f"{display.listed(self.levels)}."
                )
            self._check_note(f"label of {level!r}", text)
        return tuple((level, str(pairs[level])) for level in self.levels if level in pairs)

    def _check_note(self, what: str, text: object) -> None:
        if not isinstance(text, str) or not text.isprintable() or len(text) > LONGEST_NOTE:
            raise SchemaError(
                f"Schema: attribute {self.name!r} needs its {what} as a line of at most {LONGEST_NOTE} characters."
            )

    def _check_distinct(self) -> None:
        if repeated := _first_repeated(self.categories):
            raise SchemaError(f"Schema: attribute {self.name!r} repeats the category {repeated!r}. Keep one.")
        if repeated := _first_repeated(self.texts):
            raise SchemaError(
                f"Schema: attribute {self.name!r} has the code {repeated!r} in two categories. Keep one of them."
            )

    def _check_rule(self, key: str, rule: object, rules: Iterable[str]) -> None:
        if rule not in (*rules, *self.declared):
            raise SchemaError(
                f"Schema: attribute {self.name!r} has {key} = {rule!r}. Choose one of {', '.join(rules)}, or a "
                "declared level."
            )


def _said(value: object) -> bool:
    """Whether a list was given; what is no list was given too."""
    return not isinstance(value, (tuple, list)) or bool(value)


def _pairs(value: object, problem: str) -> dict[str, object]:
    """A table, or its pairs."""
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    try:
        return {str(key): item for key, item in value}  # type: ignore[attr-defined]  # anything may be given
    except (TypeError, ValueError):
        raise SchemaError(f"Schema: {problem}") from None


def _storable(text: str) -> bool:
    """Text that every engine can hold: no NUL, and no half of a surrogate pair."""
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _plain(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else str(number)


def _first_repeated(values: tuple[str, ...]) -> str | None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
