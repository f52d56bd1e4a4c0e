"""What a release says in plain English: its guarantee, the same in files, reports and on the terminal, and its about.

The about is free text that its author chose, and no number depends on it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from dpbayes.base.display import rounded_up
from dpbayes.base.errors import InvalidArgument
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.schema.unit import Unit

SEEDED = "This release was drawn with a seed, so it promises no privacy at all. Use it for tests only."
"""Word for word what sealed files of seeded releases hold."""


def statement(promise: Guarantee, unit: Unit, *, tables: int, seeded: bool) -> str:
    """What is guaranteed to one person.

    >>> unit = Unit(adjacency="replace-one")
    >>> import textwrap
    >>> from dpbayes import ApproxDP
    >>> print(textwrap.fill(statement(ApproxDP(epsilon=1, delta=1e-6), unit, tables=2, seeded=False), 80))
    Replacing the data of any one person (one row) changes what these 2 tables can
    say by at most ε=1 at δ=1e-06: no outcome becomes more than 2.72 times as
    likely, except with probability one in a million.
    """
    if seeded:
        return SEEDED
    change = "Replacing" if unit.replaces else "Adding or removing"
    what = "this release" if tables == 0 else "this table" if tables == 1 else f"these {tables} tables"
    who = f"{change} the data of any one person ({rows(unit)})"
    return f"{who} changes what {what} can say by at most {promise}{_meaning(promise)}."


def rows(unit: Unit) -> str:
    """How many rows of a person are protected.

    >>> rows(Unit(adjacency="add-remove", max_rows=3))
    'up to 3 rows'
    """
    return "one row" if unit.max_rows == 1 else f"up to {unit.max_rows} rows"


def _meaning(promise: Guarantee) -> str:
    epsilon, delta = promise.epsilon_delta or (math.inf, 0.0)
    if epsilon > 700.0:  # e^ε overflows, and promises nothing anyway
        return ""
    return f": {likely(epsilon, delta)}"


def likely(epsilon: float, delta: float) -> str:
    """How much more likely an outcome can become."""
    return f"no outcome becomes more than {rounded_up(math.exp(epsilon), 3)} times as likely{unless(delta)}"


def unless(delta: float) -> str:
    """The exception that a δ makes."""
    return f", except with probability {chance(delta)}" if delta else ""


def chance(probability: float) -> str:
    """A small probability in words where words are shorter.

    >>> chance(1e-6), chance(2e-9), chance(0.01)
    ('one in a million', '2e-09', '0.01')
    """
    words = {1e-3: "one in a thousand", 1e-6: "one in a million", 1e-9: "one in a billion", 1e-12: "one in a trillion"}
    return words.get(probability, rounded_up(probability))


def times(number: int) -> str:
    """How often.

    >>> times(1), times(2), times(10)
    ('once', 'twice', '10 times')
    """
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


ABOUT = ("title", "author", "contact", "purpose", "supersedes")
"""A line each, but for the purpose; ``supersedes`` is the id of an earlier release that this one replaces."""

LONGEST = {"purpose": 4000}
"""Characters; 300 for the others."""

_ID = re.compile(r"[0-9a-f]{12,64}")


def checked(about: Mapping[str, str], *, owner: str = "Release") -> dict[str, str]:
    """The texts without those that are empty; a key that is not known, or a text that is too long, is refused.

    >>> checked({"title": "Income by sex ", "purpose": ""})
    {'title': 'Income by sex'}
    """
    found = {}
    for key, text in about.items():
        if key not in ABOUT:
            raise InvalidArgument(f"{owner}: expected about to have the keys {', '.join(ABOUT)}, got {key!r}.")
        if not isinstance(text, str):
            raise InvalidArgument(f"{owner}: expected {key} to be text, got {type(text).__name__}.")
        longest, lines = LONGEST.get(key, 300), text.strip().splitlines()
        if len(text) > longest:
            raise InvalidArgument(f"{owner}: expected {key} to have at most {longest} characters, got {len(text)}.")
        if not all(line.isprintable() for line in lines) or (len(lines) > 1 and key not in LONGEST):
            raise InvalidArgument(f"{owner}: expected {key} to be one line of printable text.")
        if key == "supersedes" and lines and not _ID.fullmatch(lines[0]):
            raise InvalidArgument(
                f"{owner}: expected supersedes to be the id of a release, 12 or more hexadecimal digits, "
                f"got {lines[0][:40]!r}. `dpbayes ledger show` lists the ids."
            )
        if lines:
            found[key] = "\n".join(lines)
    return found
