"""How objects show themselves: a few lines of text, and the same facts as a small table in notebooks.

No object shows counts: facts are public parameters, names and promises.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpbayes.domain.markup import embedded, table

Facts = Sequence[tuple[str, str]]

MOST, WIDTH = 12, 100


def as_text(title: str, facts: Facts = ()) -> str:
    """A title and a line for each fact: one screen at most.

    >>> print(as_text("Schema 'survey'", [("sex", "F, M"), ("age", "4 bins")]))
    Schema 'survey'
      sex: F, M
      age: 4 bins
    """
    return "\n".join([shortened(title, 2 * WIDTH), *(f"  {name}: {value}" for name, value in _shown(facts))])


def as_html(title: str, facts: Facts = ()) -> str:
    """The same as a table in the style of the report; whatever is in it is text."""
    return embedded(table(shortened(title, 2 * WIDTH), ("what", "value"), _shown(facts), class_="facts"))


def listed(items: Iterable[object], most: int = MOST) -> str:
    """The first few, and how many more there are.

    >>> listed(range(5), most=2)
    '0, 1, … and 3 more'
    """
    found = [str(item) for item in items]
    more = f", … and {len(found) - most:,} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def listed_and(items: Iterable[str], most: int = 8) -> str:
    """A list in a sentence.

    >>> listed_and(["a", "b", "c"]), listed_and("abcdefghij", most=2)
    ('a, b and c', 'a, b and 8 others')
    """
    found = list(items)
    if len(found) > most:
        found = [*found[:most], f"{len(found) - most} others"]
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}" if found else ""


def plural(number: int, noun: str) -> str:
    """A number with its noun.

    >>> plural(1, "cell"), plural(1200, "cell"), plural(2, "entry")
    ('1 cell', '1,200 cells', '2 entries')
    """
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else many}"


def shortened(text: str, most: int = WIDTH) -> str:
    """At most this many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _shown(facts: Facts) -> list[tuple[str, str]]:
    shown = [(shortened(name, WIDTH // 2), shortened(value)) for name, value in facts[:MOST]]
    return shown if len(facts) <= MOST else [*shown, ("…", f"and {len(facts) - MOST:,} more")]
