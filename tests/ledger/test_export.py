"""The chain as a public file: whoever reads it can check and price it, and notices any change."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes import Cost, Laplace, PureDP, Unit
from dpbayes.base.errors import LedgerError
from dpbayes.ledger.account import canonical
from dpbayes.ledger.history import read
from dpbayes.ledger.ledger import Ledger


@pytest.fixture
def lines(ledger: Ledger, unit: Unit) -> list[str]:
    ledger.open("census", PureDP(epsilon=1.0), unit)
    receipt = ledger.charge("census", Cost.of(Laplace(scale=4.0, unit=unit), 2), about="sex × income")
    ledger.charge("census", Cost.of(Laplace(scale=4.0, unit=unit)))
    ledger.void(receipt, about="not reached")
    return ledger.export("census")


def rewritten(lines: list[str], place: int, **changes: object) -> list[str]:
    """The export with one entry changed, and every hash from there on made to fit."""
    bodies = [json.loads(line) for line in lines]
    bodies[place] |= changes
    for i in range(place, len(bodies) - 1):
        bodies[i + 1]["hash" if i == len(bodies) - 2 else "previous"] = hashlib.sha256(
            canonical(bodies[i]).encode()
        ).hexdigest()
    return [canonical(body) for body in bodies]


def test_an_export_says_what_the_ledger_says(lines: list[str], ledger: Ledger) -> None:
    account = read(lines)["census"]
    assert account == ledger.account("census")
    assert account.left() == 0.75


def test_the_hash_of_a_line_is_what_the_next_line_names(lines: list[str]) -> None:
    for line, following in pairwise(lines):
        named = json.loads(following)
        assert hashlib.sha256(line.encode()).hexdigest() == named.get("previous", named.get("hash"))


def test_a_change_of_any_byte_is_noticed(lines: list[str]) -> None:
    for place, line in enumerate(lines):
        for i, letter in enumerate(line):
            changed = [*lines]
            changed[place] = line[:i] + chr(ord(letter) ^ 1) + line[i + 1 :]
            with pytest.raises(LedgerError):
                read(changed)


@pytest.mark.parametrize("place", range(5))
def test_a_missing_line_is_noticed(place: int, lines: list[str]) -> None:
    with pytest.raises(LedgerError, match=r"missing|does not follow"):
        read(lines[:place] + lines[place + 1 :])


def test_lines_in_another_order_are_noticed(lines: list[str]) -> None:
    with pytest.raises(LedgerError, match="entry 1 "):
        read([lines[0], lines[2], lines[1], *lines[3:]])


@pytest.mark.parametrize(
    ("place", "changes"),
    [
        (0, {"budget": {"notion": "pure-dp", "epsilon": -1.0}}),
        (0, {"unit": {"adjacency": "replace-one", "max_rows": 1}}),
        (1, {"releases": []}),
        (1, {"releases": [{"mechanism": {"mechanism": "laplace-1", "scale": 4.0}, "times": 1}]}),
        (1, {"releases": [{"mechanism": {"mechanism": "laplace-1", "scale": 4.0}, "times": 10**400}]}),
        (1, {"kind": "gift"}),
        (1, {"kind": []}),
        (1, {"serial": True}),
        (1, {"about": "\x1b[2J"}),
        (3, {"charge": 2}),
        (3, {"charge": 99}),
        (3, {"key": "0" * 64}),
        (3, {"key": "\ud800"}),
    ],
)
def test_a_rewritten_chain_that_makes_no_sense_is_refused_and_the_entry_named(
    place: int, changes: dict[str, object], lines: list[str]
) -> None:
    with pytest.raises(LedgerError, match=r"entry [013] of"):
        read(rewritten(lines, place, **changes))


@pytest.mark.parametrize(
    ("place", "changes"),
    [(0, {"format": 3}), (1, {"releases": [{"mechanism": {"mechanism": "laplace-2"}, "times": 1}]})],
)
def test_an_entry_of_a_newer_version_asks_for_an_upgrade(
    place: int, changes: dict[str, object], lines: list[str]
) -> None:
    with pytest.raises(LedgerError, match="Upgrade"):
        read(rewritten(lines, place, **changes))


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.text() | JSON.map(json.dumps) | st.dictionaries(st.sampled_from(["dataset", "kind"]), JSON).map(str))
)
def test_anything_else_is_refused_in_one_sentence(texts: list[str]) -> None:
    with pytest.raises(LedgerError):
        read(texts)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(LedgerError):
        read(['{"dataset":' * 100_000])


def test_an_export_holds_nothing_but_entries(lines: list[str], path: Path) -> None:
    assert {key for line in lines[:-1] for key in json.loads(line)} == {
        *("dataset", "serial", "previous", "kind", "time", "about"),
        *("format", "budget", "unit", "releases", "lock", "charge", "key", "schema", "software"),
    }
