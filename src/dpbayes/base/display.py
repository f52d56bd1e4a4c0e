"""What objects offer to whoever holds them: lines of text, a small table in notebooks, and doors to rooms above.

No object shows counts: facts are public parameters, names and promises. HTML cannot be injected into: whatever is not
made by ``tag`` is text, and is escaped.

A door is the name of a function, such as ``save``, that a room above has; ``dpbayes/__init__.py``, which is above all
rooms and runs before them, says in which module. So no room imports from above, and a module is loaded when its door is
first used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar

Facts = Sequence[tuple[str, str]]


T = TypeVar("T")


def as_text(title: str, facts: Facts = ()) -> str:
    """A title and a line for each fact: one screen at most.

    >>> print(as_text("Schema 'survey'", [("sex", "F, M"), ("age", "4 bins")]))
    Schema 'survey'
      sex: F, M
      age: 4 bins
    """
    return "\n".join([shorten(title, 200), *(f"  {name}: {value}" for name, value in _shown(facts))])


def as_html(title: str, facts: Facts = ()) -> str:
    """The same as a table in the style of the report; whatever is in it is text."""
    return embed(table(shorten(title, 200), ("what", "value"), _shown(facts), class_="facts"))


class Shown:
    """What shows itself by its facts: as lines of text, and as a table in notebooks."""

    __slots__ = ()

    def _facts(self) -> tuple[str, Facts]:
        """A title, and what there is to know, with names: nothing private."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return as_text(*self._facts())

    def _repr_html_(self) -> str:
        return as_html(*self._facts())


def listed(items: Iterable[object], most: int = 12) -> str:
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


def nearest(name: str, known: Iterable[str]) -> str:
    """What may be meant by a name that is not known; if nothing is near, all that is.

    >>> nearest("titel", ["title", "author"]), nearest("x", ["title", "author"])
    ("Did you mean 'title'?", 'There is title, author.')
    """
    from difflib import get_close_matches  # takes long to load, and is needed once something is wrong

    names = list(known)
    near = get_close_matches(name, names, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"There is {', '.join(names)}."


def plural(number: int, noun: str) -> str:
    """A number with its noun.

    >>> plural(1, "cell"), plural(1200, "cell"), plural(2, "entry")
    ('1 cell', '1,200 cells', '2 entries')
    """
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else many}"


def shorten(text: str, most: int = 100) -> str:
    """At most this many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _shown(facts: Facts) -> list[tuple[str, str]]:
    shown = [(shorten(name, 50), shorten(value)) for name, value in facts[:12]]
    return shown if len(facts) <= 12 else [*shown, ("…", f"and {len(facts) - 12:,} more")]


POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Whatever text gets into a page, browsers load nothing for it and run nothing."""


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: object) -> Html:
    """One element. Plain children are escaped; an attribute's final underscore is dropped, others become hyphens.

    >>> tag("th", "<b>", tag("i", "x"), class_="name", aria_hidden="true")
    '<th class="name" aria-hidden="true">&lt;b&gt;<i>x</i></th>'
    """
    listed = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{listed}>{joined(children)}</{name}>")


def style() -> str:
    """The style sheet of everything that the library draws."""
    return Path(__file__).with_name("style.css").read_text(encoding="utf-8")


def page(name: str, body: Html) -> str:
    """A self-contained page in the style of everything drawn."""
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        tag("title", name),
        Html(f"<style>{style()}</style>"),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', tag('main', body)), lang='en')}\n"


def picture_style() -> str:
    """The part of it that pictures need, for pages that have a style of their own."""
    return style()[style().index("\n.picture") :]


def embed(body: Html) -> str:
    """A part of a page that brings the style along: for notebooks."""
    scoped = re.sub(r"@page [^}]*}", "", style()).replace(":root", ":scope").replace("\nbody {", "\n:scope {")
    return str(tag("div", Html(f"<style>@scope (.dpbayes) {{{scoped}}}</style>"), body, class_="dpbayes"))


def joined(parts: Iterable[str]) -> Html:
    """The parts one after the other, plain ones escaped."""
    return Html("".join(part if isinstance(part, Html) else _escaped(part) for part in parts))


def _escaped(text: str) -> str:
    """Text for HTML; halves of surrogate pairs, which no file can hold, become question marks."""
    return escape(text.encode("utf-8", "replace").decode("utf-8"))


def table(caption: str, columns: Iterable[str], rows: Iterable[Iterable[str]], **of: object) -> Html:
    """A table whose first column names the row."""
    names = (tag("th", name, scope="col", class_=None if at else "name") for at, name in enumerate(columns))
    head = tag("thead", tag("tr", *names))
    body = tag("tbody", *(_row(*row) for row in rows))
    scrolling = {"class_": "scroll", "tabindex": 0, "role": "region", "aria_label": caption}
    return tag("div", tag("table", tag("caption", caption), head, body, **of), **scrolling)


def _row(head: str, *cells: str) -> Html:
    return tag("tr", tag("th", head, scope="row", dir="auto"), *(tag("td", cell) for cell in cells))


# -- doors ----------------------------------------------------------------------------------------------------

WARNING = "Warning"
"""What a warning begins with, wherever people read it."""

DOORS: dict[str, str] = {}
"""The module of each function that is called from below."""


def on_demand(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """What a package offers, and its modules: each is loaded when it is first asked for, so that imports stay light."""

    def attribute(name: str) -> object:
        if name in homes:
            return getattr(import_module(f"dpbayes.{homes[name]}"), name)
        try:
            if not name.startswith("_"):
                return import_module(f"{package}.{name}")
        except ModuleNotFoundError as problem:
            if problem.name != f"{package}.{name}":
                raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return attribute


class Chart(Protocol):
    """A picture, to those below the room that draws."""

    @property
    def svg(self) -> str:
        """It as SVG."""

    @property
    def figure(self) -> str:
        """The drawing with its title and note."""

    def save(self, path: str | Path) -> Path:
        """Write it to a file, in the format that its name says."""

    def _repr_html_(self) -> str: ...


def door(name: str, *of: Any, **options: Any) -> T:  # type: ignore[type-var]  # what the method that calls declares
    """What the function behind a door makes."""
    result: T = getattr(import_module(f"dpbayes.{DOORS[name]}"), name)(*of, **options)
    return result


def picture(name: str, *of: object, path: str | Path | None) -> Chart:
    """What is drawn behind a door, written to ``path`` if there is one."""
    drawn: Chart = door(name, *of)
    if path is not None:
        drawn.save(path)
    return drawn


LAST_BITS = Decimal(2) ** -50
"""A number that is a short decimal but for this share of it is that decimal: the rounding of a sum or two."""


def rounded_up(number: float, digits: int = 6) -> str:
    """A number for people, never below the true one, but for the last bits: a cost is not stated too small.

    >>> rounded_up(1.2214, digits=3), rounded_up(0.5)
    ('1.23', '0.5')
    """
    return _rounded(number, digits, ROUND_CEILING)


def rounded_down(number: float, digits: int = 6) -> str:
    """A number for people, never above the true one, but for the last bits: what is left is not stated too large.

    >>> rounded_down(2.1679, digits=3)
    '2.16'
    """
    return _rounded(number, digits, ROUND_FLOOR)


def _rounded(number: float, digits: int, rounding: str) -> str:
    if not math.isfinite(number):
        return f"{number:g}"
    exact, context = Decimal(number), Context(prec=digits, rounding=rounding)
    near = Context(prec=digits).create_decimal(exact)
    # 0.1 + 0.2 is 0.3 but for its last bit, and is not turned into 0.300001
    stated = near if abs(exact - near) <= LAST_BITS * abs(exact) else context.create_decimal(exact)
    return f"{float(stated):.{digits}g}"
