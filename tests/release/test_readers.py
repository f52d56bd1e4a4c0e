"""Files that nobody wrote: every reader takes them, or refuses them in a sentence; nothing else is ever raised."""

from __future__ import annotations

import copy
import json
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.releases import ASKED, KINDS, PEOPLE, USUAL, a_release, made_by_a_curator, people

from dpbayes import Curator, Release, Schema, Tables, verify
from dpbayes.base.errors import DpbayesError, ReleaseError
from dpbayes.inference import GaussianNoise, Measurement, Posterior
from dpbayes.jobs.base import plan_from_record, plan_record
from dpbayes.jobs.request import Request
from dpbayes.ledger.history import read as read_export
from dpbayes.ledger.ledger import Ledger
from dpbayes.models.bayes_net import BayesNet
from dpbayes.report.page import report_html
from dpbayes.schema.marginal import Marginal, Prior

Json = Any

ODD: list[Json] = [
    None, True, False, 0, 1, -1, 2, 57, 10**9, -(10**9), 2**53 + 1, 2**63, 10**400, 0.0, 0.5, -0.5, 1e-320, 1e9, 1e308,
    "", "x", "inf", "-inf", "nan", "gammas", "shares", "pure-dp", "zcdp", "adaptive-dp", "dirichlet-1", "laplace-1",
    "pseudo-records-1", "\ud800", "\x00", "a" * 300, [], [1], [[]], ["x", 1], {}, {"x": 1}, {"mechanism": "gaussian-1"},
    {"notion": "rdp", "order": "inf", "epsilon": 1}, float("nan"), float("inf"),
]  # fmt: skip


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Files as dpbayes writes them, for each reader."""
    releases, exports = [a_release(kind).to_json() for kind in KINDS if kind != "large"], []
    for number, kind in enumerate(ASKED):
        made = made_by_a_curator(kind, tmp_path_factory.mktemp(f"made{number}"))
        releases.append(made.release.to_json())
        exports.append("\n".join(Ledger(made.ledger).export("people")))
    plans = [
        Curator(people(), PEOPLE).plan(asked.job(tmp_path_factory.mktemp("plan")), asked.target)
        for asked in ASKED.values()
    ]
    return {
        "release": releases,
        "ledger export": exports,
        "plan in a draft": [json.dumps(plan_record(plan)) for plan in plans],
        "graph": ['[["a", "b"], ["b", "c"]]', '{"edges": [["a", "b"]], "nodes": ["a", "b", "c"]}'],
        "schema": [PEOPLE.to_toml()],
        "request": [REQUEST.to_toml()],
        "prior": [
            "sex,share\nF,0.6\nM,0.3\nother,0.1\n",
            'age,share\n"[0, 30)",0.5\n"[30, 60)",0.2\n"[60, 120)",0.2\nother,0.1\n',
            "income,share\nlow,0.5\nhigh,0.25\nmissing,0.2\nother,0.05\n",
        ],
        "marginal": ["sex", "sex,job", "sex|job", '"sex, at birth"|"job"'],
        "question": ["share(sex='F' | job in ('a', 'b')) - 2 * share(sex='M')", "count(sex != 'F') / count(job='a')"],
    }


REQUEST = Request(
    tables=("sex", "sex|job"),
    target=USUAL,
    title="A title",
    author="Us",
    keys={"mechanism": "gaussian", "level": 0.9},
)
LEVELS = {"sex": {"F": 0, "M": 1}, "job": {"a": 0, "b": 1, "c": 2}}
LISTED = ("schema", "ledger export", "request", "prior", "marginal", "question")
"""Readers of texts that are no JSON as a whole."""


@lru_cache(maxsize=1)
def a_posterior() -> Posterior:
    measured = Measurement(axes=("sex", "job"), values=np.full((2, 3), 40.0), noise=GaussianNoise(sigma=3.0))
    return Posterior([measured], {name: len(each) for name, each in LEVELS.items()}, records=240)


READERS: dict[str, Callable[[str], object]] = {
    "release": Release.from_json,
    "ledger export": lambda text: read_export(text.split("\n")),
    "plan in a draft": lambda text: plan_from_record(json.loads(text)),
    "graph": BayesNet.of,
    "schema": Schema.from_toml,
    "request": Request.from_toml,
    "prior": lambda text: Prior.from_csv(text, PEOPLE),
    "marginal": Marginal.parse,
    "question": lambda text: a_posterior().ask(text, LEVELS),
}


def places(record: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place of a JSON value; of long lists only the ends."""
    found = [path] if path else []
    items = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, value in items:
        if not isinstance(key, int) or key in (0, len(record) - 1):
            found += places(value, (*path, key))
    return found


@lru_cache(maxsize=64)
def loaded(text: str) -> tuple[Json, list[tuple[str | int, ...]]]:
    record = json.loads(text)
    return record, places(record)


def mutated(text: str, rng: random.Random) -> str:
    """A JSON file with one to three values replaced, removed, doubled or renamed."""
    record, known = loaded(text)
    record = copy.deepcopy(record)
    for _ in range(rng.randint(1, 3)):
        *path, last = rng.choice(known)
        parent = record
        try:
            for key in path:
                parent = parent[key]
            match rng.choice(["replace", "replace", "replace", "remove", "double", "rename"]):
                case "replace":
                    parent[last] = copy.deepcopy(rng.choice(ODD))
                case "remove":
                    del parent[last]
                case "double" if isinstance(parent, list):
                    parent.append(parent[last])
                case "rename" if isinstance(parent, dict):
                    parent[rng.choice(["x", "", "mechanism", "kind"])] = parent.pop(last)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    return json.dumps(record)


VALUES = (
    "0", "-1", "1e9", "1e400", "9" * 30, "nan", "-inf", "true", '""', '"\\u0000"', '"x"', "[]", "[[]]", "{}", "{x=1}",
    '["sex","sex"]', '["sex|"]', "1979-05-27", "07:32:00", "0x10", '"\\u001b[31m"', '"""\n"""', "=1+1",
)  # fmt: skip


def damaged(text: str, rng: random.Random) -> str:
    """A text that was cut, or has other characters somewhere."""
    at = rng.randrange(len(text))
    match rng.choice(["cut", "overwrite", "insert", "value", "swap"]):
        case "cut":
            return text[:at]
        case "overwrite":
            return text[:at] + rng.choice(['"', "{", "]", "9", "-", "e", "\x00", "é", "\ud800"]) + text[at + 1 :]
        case "insert":
            return text[:at] + rng.choice(["[" * 50, "9" * 400, '"x":1,', "\n", "= ", "[[attribute]]\n"]) + text[at:]
        case "value" if values := list(re.finditer(r"(?<== )[^\n]+|(?<=,)[^\n,]+", text)):
            found = rng.choice(values)
            return text[: found.start()] + rng.choice(VALUES) + text[found.end() :]
    return text[at:] + text[:at]


def inputs(name: str, texts: list[str], many: int, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(many):
        text = rng.choice(texts)
        yield damaged(text, rng) if name in LISTED or rng.random() < 0.3 else mutated(text, rng)


def read_or_refused(name: str, text: str) -> object:
    try:
        return READERS[name](text)
    except DpbayesError as problem:
        said = str(problem)
    except json.JSONDecodeError:
        assert name == "plan in a draft"  # read by ``kept``, which has its own sentence for it
        return None
    assert said
    assert "\n" not in said or " faults:\n" in said or name in LISTED  # a schema has all its faults named at once
    return None


@pytest.mark.parametrize("name", READERS)
def test_a_foreign_or_damaged_file_is_read_or_refused_in_a_sentence(name: str, texts: dict[str, list[str]]) -> None:
    found = [read_or_refused(name, text) for text in inputs(name, texts[name], 900, seed=1)]
    assert None in found  # damage was found out


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_ten_times_as_many(name: str, texts: dict[str, list[str]]) -> None:
    found = [read_or_refused(name, text) for text in inputs(name, texts[name], 9000, seed=2)]
    assert None in found


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "", "null", "[]", "1", '"x"', "{}", "\ufeff{}", "NaN"]
)
def test_what_is_hardly_json_is_refused(text: str) -> None:
    for given in (text, text.encode("utf-16"), b"\xff\xfe" + text.encode()):
        with pytest.raises(ReleaseError):
            Release.from_json(given)


def test_what_can_be_read_is_read_again_as_the_same(texts: dict[str, list[str]]) -> None:
    for text in inputs("release", texts["release"], 400, seed=3):
        found = read_or_refused("release", text)
        if isinstance(found, Release):
            assert Release.from_json(found.to_json()).record() == found.record()


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """A stop for what would run for ever; what is meant takes a small part of it."""

    def stop(*_: object) -> None:
        raise AssertionError("it takes for ever")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_whatever_can_be_read_can_be_verified_and_shown(texts: dict[str, list[str]]) -> None:
    shown = 0
    for text in inputs("release", texts["release"], 200, seed=4):
        found = read_or_refused("release", text)
        if isinstance(found, Release):
            with at_most(60):
                assert isinstance(verify(found).ok, bool)
            report_html(found).encode()
            repr(found)
            shown += 1
    assert shown > 15


HUGE = (1e9, 1e15)


def numbers(record: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """One place for every number, and one for each list of them."""
    if isinstance(record, dict):
        for key, value in record.items():
            yield from numbers(value, (*path, key))
    elif isinstance(record, list):
        for at, value in enumerate(record[:1] if all(isinstance(v, (int, float)) for v in record) else record):
            yield from numbers(value, (*path, at))
    elif isinstance(record, (int, float)) and not isinstance(record, bool):
        yield path


@pytest.mark.parametrize("kind", ["tables", "tables, drawn", "tables of records", "posterior"])
def test_one_huge_number_does_not_keep_verify_busy(kind: str, tmp_path: Path) -> None:
    record = json.loads(made_by_a_curator(kind, tmp_path).release.to_json())
    slowest = 0.0
    for path in numbers(record):
        if "products" in path or "groups" in path:
            continue
        for huge in (10**9,) if path[-1] in ("times", "records", "by") else HUGE:
            edited = copy.deepcopy(record)
            parent = edited
            for key in path[:-1]:
                parent = parent[key]
            parent[path[-1]] = huge
            try:
                found = Release.from_json(json.dumps(edited))
            except ReleaseError:
                continue
            start = time.process_time()
            with at_most(120):
                assert not verify(found).ok
            slowest = max(slowest, time.process_time() - start)
    assert slowest < 60


def test_the_examples_are_read_as_they_are(texts: dict[str, list[str]]) -> None:
    for name, listed in texts.items():
        for text in listed:
            READERS[name](text)
    assert Curator(people(), PEOPLE, seed=1).release(Tables("sex", mechanism="gaussian"), USUAL)
