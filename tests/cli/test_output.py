"""Nothing that comes from a file is obeyed by a terminal."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
from tests.commands import Done, dpbayes

from dpbayes import PureDP, Unit, cli
from dpbayes.cli.output import printable, tell_programs
from dpbayes.ledger.ledger import Ledger

EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\rover\x08\u202eltr"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    evil = "".join(f"\\u{ord(character):04x}" for character in EVIL)
    attributes = "".join(f'[[attribute]]\nname = "{name}{evil}"\ncategories = ["x{evil}", "y"]\n' for name in "ab")
    Path("evil.toml").write_text(f'id = "evil"\nadjacency = "add-remove"\n{attributes}')
    Path("evil.csv").write_bytes(f'"a{EVIL}","b{EVIL}"\n"x{EVIL}",y\ny,y\n'.encode())
    Ledger("evil.ledger").open("evil", PureDP(epsilon=10), Unit(adjacency="add-remove"))
    return tmp_path


def commands() -> dict[str, list[object]]:
    paid = ["--epsilon", 1, "--ledger", "none"]
    release = ["release", "evil.csv", f"a{EVIL}", "--set", "mechanism=laplace"]
    fit = ["release", "evil.csv", f"a{EVIL}", "--as", "naive-bayes", *paid]
    categories = ["release", "evil.csv", f"a{EVIL}", "--as", "categories"]
    return {
        "release": [*release, *paid],
        "release as JSON": [*release, *paid, "--json"],
        "release to a folder": [*release, *paid, "--out", "published"],
        "release, previewed": [*release, *paid, "--dry-run"],
        "release, refused": [*release, f"c{EVIL}", *paid],
        "schema init": ["schema", "init", "evil.csv", "--out", "-"],
        "schema show": ["schema", "check", "evil.toml"],
        "schema check": ["schema", "check", "evil.csv"],
        "fit": fit,
        "fit, previewed": [*fit, "--dry-run"],
        "ledger show": ["ledger", "show", "evil.ledger"],
        "ledger export": ["export", "evil.ledger", "evil.jsonl"],
        "fit to a folder": [*fit, "--out", "model"],
        "discover": [*categories, *paid, "--delta", 0.5],
        "a file that is not there": ["verify", f"none{EVIL}.json"],
    }


def assert_harmless(done: Done) -> None:
    for text in (done.out, done.err):
        assert OBEYED.search(text) is None


@pytest.mark.parametrize("command", commands().values(), ids=commands())
def test_control_characters_of_files_are_shown_and_not_obeyed(here: Path, command: list[object]) -> None:
    done = dpbayes(*command)
    assert done.code in (0, 1), done.err
    assert_harmless(done)


def test_models_and_releases_are_shown_harmlessly_and_json_still_says_the_same(here: Path) -> None:
    for name in ("fit to a folder", "release to a folder"):
        assert dpbayes(*commands()[name]).code == 0
    for command in (
        ["model", "model"],
        ["model", "model", f"b{EVIL}"],
        ["verify", "published/release.json"],
    ):
        done = dpbayes(*command)
        assert done.code == 0, done.err
        assert_harmless(done)
    done = dpbayes("model", "model", f"b{EVIL}", "--json")
    assert_harmless(done)
    assert done.result["tables of nodes"][0]["levels"][0] == f"x{EVIL}"


def test_predictions_are_raw_for_programs_and_harmless_for_people(here: Path) -> None:
    assert dpbayes(*commands()["fit to a folder"]).code == 0
    raw = dpbayes("predict", "model", "evil.csv").out
    assert raw.startswith(f'"a{EVIL}"\n')

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    with contextlib.redirect_stdout(Terminal()) as terminal:
        tell_programs(raw)
    assert terminal.getvalue() == printable(raw)
    assert_harmless(Done(code=0, out=terminal.getvalue(), err=""))


@pytest.mark.parametrize("path", sorted(Path(cli.__file__).parent.glob("*.py")), ids=lambda path: path.name)
def test_every_command_prints_through_one_place(path: Path) -> None:
    if path.name != "output.py":
        found = re.findall(r"click\.(?:echo|secho)|Console\(|(?<![\w.])print\(", path.read_text("utf-8"))
        assert not found, "print with the functions of cli/output.py, which escape what terminals obey"


def test_ordinary_writing_is_left_alone() -> None:
    for text in ("naïve 名前 👩‍👩‍👧 [bold] \\n", "two\nlines\tand a tab", "עברית עם רווחים"):
        assert printable(text) == text
