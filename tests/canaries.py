"""Values that must not be seen again, and a way to look for them in everything that a call leaves behind.

A new kind of value is one line of ``KINDS``. A new entry point is one function in ``test_canaries.py``.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import logging
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path

import numpy as np

WORD = "Kanari-Zyxwvut"
NUMBER = "47114711"
DAY = datetime.date(4711, 7, 13)
NEEDLES = (WORD, NUMBER, "4711-07-13", "4711, 7, 13", "4711000")


class Hostile:
    """A value whose every method quotes it in an error."""

    def _refuse(self, *_: object) -> str:
        raise ValueError(WORD)

    __str__ = __repr__ = __hash__ = __eq__ = __lt__ = __float__ = __int__ = __bool__ = __format__ = _refuse  # type: ignore[assignment]


class Chosen(Enum):
    WORD = WORD


ZONE = datetime.timezone(datetime.timedelta(hours=-11))
KINDS: dict[str, list[object]] = {
    "texts": [WORD, f" {WORD}\n", ""],
    "texts with halves of pairs": [f"{WORD}\udcff", "\ud800"],
    "texts with NUL": [f"{WORD}\x00"],
    "texts like numbers": [f"{NUMBER}e{NUMBER}", f"{NUMBER},5", f"0x{NUMBER}", "nan"],
    "bytes": [WORD.encode(), b"\xff" + WORD.encode()],
    "dates": [DAY, datetime.date.min],
    "times": [datetime.datetime.combine(DAY, datetime.time(4, 7, 11)), datetime.datetime.max.replace(tzinfo=ZONE)],
    "clock times": [datetime.time(4, 7, 11), datetime.timedelta(days=47114711)],
    "decimals": [Decimal(f"{NUMBER}.4711"), Decimal(f"{NUMBER}E+4711"), Decimal("sNaN4711")],
    "fractions": [Fraction(int(NUMBER), 3), Fraction(int(NUMBER) * 10**400)],
    "huge integers": [int(NUMBER) * 10**30, 4711 * 10**5000, -(10**5000)],
    "floats": [float(f"{NUMBER}.5"), float("inf"), np.float64("nan"), np.longdouble(NUMBER)],
    "complex numbers": [complex(int(NUMBER), 1.0)],
    "lists": [[WORD], [WORD, [NUMBER]], [1, 2]],
    "dictionaries": [{WORD: [NUMBER]}, {}],
    "sets and arrays": [{WORD}, np.array([WORD, NUMBER])],
    "enumerations and classes": [Chosen.WORD, Chosen],
    "hostile objects": [Hostile()],
    "all sorts": [WORD, int(NUMBER), None, WORD.encode(), DAY, 1.5, True, [WORD], Decimal(NUMBER)],
}


def column(values: list[object]) -> np.ndarray:
    """Enough of them, among ordinary values, as objects."""
    made = np.empty(60, dtype=object)
    for position in range(60):
        made[position] = values[position // 3 % len(values)] if position % 3 == 0 else ("a", "b")[position % 2]
    return made


@dataclass
class Heard:
    """All that a call said."""

    texts: list[str] = field(default_factory=list)
    problem: BaseException | None = None


def chain(problem: BaseException) -> Iterator[str]:
    """The texts of an error and of those that a traceback shows with it."""
    yield "".join(traceback.format_exception(problem))
    following: BaseException | None = problem
    while following is not None:
        yield from (repr(following), str(following), repr(following.args), repr(getattr(following, "__notes__", "")))
        shown = None if following.__suppress_context__ else following.__context__
        following = following.__cause__ or shown


@contextlib.contextmanager
def listening() -> Iterator[Heard]:
    """Collect what is raised, warned, logged and printed meanwhile."""
    heard, out = Heard(), io.StringIO()
    handler = logging.StreamHandler(out)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(out):
            warnings.simplefilter("always")
            with contextlib.redirect_stderr(out):
                try:
                    yield heard
                except Exception as problem:
                    heard.problem = problem
                    heard.texts += chain(problem)
        heard.texts += [str(warning.message) for warning in warned]
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        heard.texts.append(out.getvalue())


def left_in(*folders: Path) -> Iterator[str]:
    """Names and contents of the files in these folders."""
    for folder in folders:
        for path in folder.rglob("*"):
            yield str(path.relative_to(folder))
            if path.is_file():
                yield path.read_bytes().decode("latin-1")


def found_in(texts: list[str]) -> list[str]:
    """Where a canary sings."""
    return [text for text in texts if any(needle in text for needle in NEEDLES)]


def temporary() -> set[Path]:
    """What is in the folder for temporary files now."""
    return set(Path(tempfile.gettempdir()).iterdir())


Call = Callable[[np.ndarray, Path], object]
