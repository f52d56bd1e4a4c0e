"""What a refusal tells: guesses at private counts, and reading before paying.

A guess is declared as a public total. If the answer to a wrong guess differs from the answer to a right one, it tells
something about the table, and the ledger must keep a charge for it.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from audit.command import dpbayes
from audit.result import Effort, Row
from dpbayes import Attribute, Curator, Ledger, PureDP, Schema, Tables, Unit
from dpbayes.base.errors import DpbayesError
from dpbayes.schema.public import Margin

AREA = "ledger"
UNIT = Unit(adjacency="replace-one")
EPSILON = 0.001
SECRET, ALL = 37, 100
"""How many of the records are in the first cell."""

SIDE = Attribute(name="side", categories=("left", "right"), unknown="drop", missing="drop")
PLACE = Attribute(name="place", categories=("here", "there"), missing="other")
TABLE = pa.table({"side": ["left"] * SECRET + ["right"] * (ALL - SECRET), "place": ["here"] * ALL, "age": [40.0] * ALL})
NO_BUDGET = 1e-9
USAGE = 2
"""The exit code of a command that was not understood: such an attack would prove nothing."""


def run(effort: Effort) -> list[Row]:
    """Guesses through the library and the command; then who speaks first, the table or the ledger."""
    return [_guesses(28 if effort.thorough else 3), _guesses_by_command(), _order()]


def _guesses(wrong: int) -> Row:
    """Guess the count upwards until a release comes out; see what the wrong guesses cost."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "sides.ledger")
        ledger.open("sides", PureDP(epsilon=1.0), UNIT)
        asked = Tables("side,place", mechanism="laplace")  # a table of what is declared alone is refused as public
        free, found = 0, False
        for guess in range(SECRET - wrong, SECRET + 1):
            margin = Margin(of=("side",), totals=(guess, ALL - guess, 0))
            schema = Schema(id="sides", unit=UNIT, attributes=(SIDE, PLACE), margins=(margin,))
            before = _state(ledger)
            try:
                Curator(TABLE, schema, ledger=ledger).release(asked, PureDP(epsilon=EPSILON))
                found = True
            except DpbayesError:
                free += _state(ledger) != before and _paid(ledger) == before[1]
    return _judged("guess a count by declaring it (library)", free, found)


def _guesses_by_command() -> Row:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        parquet.write_table(TABLE, place / "sides.parquet")
        Ledger(place / "sides.ledger").open("sides", PureDP(epsilon=1.0), UNIT)
        ledger = Ledger(place / "sides.ledger")
        free, found = 0, False
        for guess in (SECRET - 1, SECRET):
            margin = Margin(of=("side",), totals=(guess, ALL - guess, 0))
            schema = Schema(id="sides", unit=UNIT, attributes=(SIDE, PLACE), margins=(margin,))
            (place / "sides.toml").write_text(schema.to_toml(), encoding="utf-8")
            before = _state(ledger)
            asked = ["--epsilon", EPSILON, "--set", "mechanism=laplace", "--out", place / f"published{guess}", "--json"]
            done = dpbayes("release", place / "sides.parquet", "side,place", *asked)
            assert done.code != USAGE, done.err
            found = found or done.code == 0
            free += done.code != 0 and _state(ledger) != before and _paid(ledger) == before[1]
    return _judged("guess a count by declaring it (command)", free, found)


def _judged(attack: str, free: int, found: bool) -> Row:
    return Row(
        area=AREA,
        attack=attack,
        claim="no answer from the table without a charge",
        measured=f"{free} wrong guesses answered for nothing" + ("" if found else ", and none was released"),
        holds=found and free == 0,
    )


def _state(ledger: Ledger) -> tuple[int, int]:
    """Entries, and charges that count: a refusal before the table was read leaves both as they were."""
    return len(ledger.account("sides").entries), _paid(ledger)


def _paid(ledger: Ledger) -> int:
    return sum(charge.state != "void" for charge in ledger.account("sides").charges.values())


def _order() -> Row:
    """A table that cannot be read, and a ledger that has nothing left: the ledger must speak first."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        parquet.write_table(TABLE, place / "sides.parquet")
        _spoil(place / "sides.parquet")
        schema = Schema(id="sides", unit=UNIT, attributes=(SIDE, PLACE))
        (place / "sides.toml").write_text(schema.to_toml(), encoding="utf-8")
        Ledger(place / "sides.ledger").open("sides", PureDP(epsilon=NO_BUDGET), UNIT)
        asking = ["release", place / "sides.parquet", "--epsilon", 1, "--out", place / "published"]
        common = [*asking, "side"]
        bounds = ["--set", "bounds=0:1", "--set", "bins=2"]
        commands = {
            "tables": [*common, "--set", "mechanism=laplace"],
            "naive-bayes": [*common, "--as", "naive-bayes"],
            "naive-bayes, tempered": [*common, "--as", "naive-bayes", "--set", "tempered=true"],
            "categories": [*common, "--as", "categories", "--delta", 1e-6],
            "edges": [*asking, "age", "--as", "edges", *bounds],
            "wide": [*common, "--as", "wide", "--delta", 1e-6],
        }
        early = [name for name, asked in commands.items() if not _ledger_spoke(dpbayes(*asked).err)]
        early += [] if _estimator_pays_first(place / "people.ledger") else ["the estimator"]
    return Row(
        area=AREA,
        attack="ask with no budget left for a table that cannot be read",
        claim="the ledger refuses before a row is read",
        measured=f"read first: {', '.join(early) or 'none'}, of {len(commands) + 1} ways",
        holds=not early,
    )


def _spoil(path: Path) -> None:
    """The footer still says which columns there are, and of which types; no row can be read."""
    content = path.read_bytes()
    rows = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:4] + b"\xff" * (rows - 4) + content[rows:])


def _ledger_spoke(sentence: str) -> bool:
    """That there is nothing left, and nothing else: any other refusal would prove nothing."""
    return re.search(r"Ledger: '\w+' allows ", sentence) is not None


class _Bomb:
    """A value that nobody can look at unnoticed."""

    touched = False

    def _touch(self) -> int:
        type(self).touched = True
        return 0

    def __hash__(self) -> int:
        return self._touch()

    def __eq__(self, other: object) -> bool:
        return bool(self._touch()) and other is self

    def __str__(self) -> str:
        return str(self._touch())

    def __float__(self) -> float:
        return float(self._touch())


def _estimator_pays_first(ledger: Path) -> bool:
    """The default estimator on records that note when they are read."""
    from dpbayes.sklearn import PrivateCategoricalNB

    _Bomb.touched = False
    Ledger(ledger).open("sklearn", PureDP(epsilon=NO_BUDGET), UNIT)
    X = np.array([[_Bomb()], [_Bomb()]], dtype=object)
    made = PrivateCategoricalNB(
        epsilon=1.0,
        delta=None,
        categories=[["a", "b"]],
        classes=[0, 1],
        ledger=str(ledger),
        unit=UNIT,
    )
    try:
        made.fit(X, np.array([0, 1]))
    except Exception as problem:
        return _ledger_spoke(str(problem)) and not _Bomb.touched
    return False
