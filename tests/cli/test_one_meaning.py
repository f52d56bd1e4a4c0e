"""The command line as a whole: one meaning for each name, ceilings, old names, JSON and exit codes alike everywhere."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import click
import pytest
from tests.commands import dpbayes

from dpbayes import ApproxDP, Ledger, Schema
from dpbayes.cli import COMMANDS, GROUPS, PANELS, main, old
from dpbayes.cli.command import Command, loaded
from dpbayes.cli.options import ARGUMENTS, OPTIONS
from dpbayes.jobs.base import requestable

LOADED: dict[str, Command] = {name: loaded(name) for name in COMMANDS}
SLOTS = [(name, each) for name, command in LOADED.items() for each in command.params if isinstance(each, click.Option)]


def spelt(option: click.Option) -> str:
    return next(name for name in option.opts if name.startswith("--"))


def test_the_ceilings_hold() -> None:
    assert len(COMMANDS) <= 28
    assert len(SLOTS) <= 150
    assert len({spelt(each) for _, each in SLOTS}) <= 60
    for name in COMMANDS:
        assert sum(at == name and spelt(each) != "--json" for at, each in SLOTS) <= 12, name
    assert len(PANELS["Publish"]) == 8


def test_an_option_has_one_type_one_default_and_one_meaning() -> None:
    said: dict[str, tuple[object, ...]] = {}
    for name, option in SLOTS:
        default = None if repr(option.default).startswith("Sentinel") else option.default
        told = (repr(option.type), default, option.multiple, option.is_flag, option.help, tuple(option.opts))
        assert said.setdefault(spelt(option), told) == told, (name, spelt(option))


def test_every_option_and_argument_that_is_explained_is_used() -> None:
    used = {each.name for command in LOADED.values() for each in command.params}
    assert {*OPTIONS, *ARGUMENTS} <= used


def test_each_command_is_in_a_panel_and_says_what_the_list_says() -> None:
    first = [word for words in PANELS.values() for word in words]
    assert sorted(first) == sorted({name.split()[0] for name in COMMANDS})
    for name, command in LOADED.items():
        summary, *_ = (command.help or "").strip().split("\n\n")
        assert " ".join(summary.split()) == COMMANDS[name][1], name
        assert f"Example: dpbayes {name}" in " ".join((command.help or "").split()), name


def test_help_is_written_without_loading_a_command() -> None:
    top = dpbayes("--help").out
    assert [line[:-1] for line in top.splitlines() if line.endswith(":") and not line.startswith(" ")] == list(PANELS)
    for name in COMMANDS:
        assert name.split()[0] in top
        shown = dpbayes(*name.split(), "--help")
        assert (shown.code, f"Example: dpbayes {name}" in " ".join(shown.out.split())) == (0, True)
    for group in GROUPS:
        assert "init" in dpbayes(group, "--help").out


def test_release_lists_what_it_makes_with_the_keys_of_each() -> None:
    shown = " ".join(dpbayes("release", "--help").out.split())
    for product, job in requestable().items():
        assert f" {product} " in shown
        for key in job.MAKES[product].keys:
            assert key in shown


# -- old names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", old.COMMANDS)
def test_an_old_command_is_answered_with_the_new_one(name: str) -> None:
    done = dpbayes(*name.split(), "survey.csv", "--epsilon", 1)
    assert (done.code, done.out) == (2, "")
    expected = old.COMMANDS[name]
    assert (f"`dpbayes {expected}`" if expected else "is gone since 0.1.0") in done.sentence


@pytest.mark.parametrize("name", old.COMMANDS.values())
def test_the_new_command_is_one(name: str) -> None:
    words = name.split()
    assert not words or words[0] in COMMANDS or " ".join(words[:2]) in COMMANDS


@pytest.mark.parametrize("name", old.OPTIONS)
def test_an_old_option_is_answered_with_what_took_its_place(name: str) -> None:
    command = "plan" if name not in ("--seed",) else "release"
    done = dpbayes(*command.split(), "survey.csv", name, 1)
    assert done.code == 2
    assert f"{command}: {name} is gone since 0.2.0: {old.OPTIONS[name]}." == done.sentence


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["relase"], "there is no command relase. Did you mean release?"),
        (["ledger", "shwo"], "there is no command ledger shwo. Did you mean ledger show?"),
        (["plan", "x.csv", "--epsilom", 1], "plan: there is no option --epsilom. Did you mean --epsilon?"),
        (["plan"], "plan: missing argument 'DATA'."),
        (["ledger", "init", "x.csv", "--rule", "x"], "'x' is not one of 'gaussian', 'renyi'"),
        (["calibrate", "--times", "x"], "'x' is not a valid integer"),
    ],
)
def test_wrong_usage_is_one_sentence_with_the_nearest_name(words: list[object], said: str) -> None:
    done = dpbayes(*words)
    assert (done.code, said in done.sentence) == (2, True)


# -- JSON and exit codes ----------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex\n" + "F\n" * 60 + "M\n" * 40)
    Path("people.toml").write_text(
        'id = "people"\nadjacency = "replace-one"\nrecords = 100\n'
        '[[attribute]]\nname = "sex"\ncategories = ["F", "M"]\n'
    )
    Ledger("people.ledger").open(Schema.load("people.toml"), ApproxDP(epsilon=2, delta=1e-6))
    return tmp_path


@pytest.mark.parametrize("before", [True, False])
def test_json_is_asked_for_before_or_after_the_name(here: Path, before: bool) -> None:
    words = ["plan", "people.csv", "sex", "--epsilon", 1, "--delta", 0.02]
    done = dpbayes(*(["--json", *words] if before else [*words, "--json"]))
    found = json.loads(done.out)
    assert set(found) == {"command", "version", "found", "result", "warnings"}
    assert found["command"] == "plan"
    assert found["found"] == {"table": "people.csv", "schema": "people.toml", "ledger": "people.ledger"}


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (["release", "people.csv", "age", "--epsilon", 1], 1, "refused"),
        (["release", "people.csv", "sex", "--epsilom", 1], 2, "usage"),
        (["nothing"], 2, "usage"),
        (["release", "people.csv", "sex", "--epsilon", 9], 3, "budget"),
    ],
)
def test_a_failure_is_one_object_with_its_code(here: Path, words: list[object], code: int, kind: str) -> None:
    done = dpbayes(*words, "--json")
    assert (done.code, done.out) == (code, "")
    error = json.loads(done.err)["error"]
    assert (error["code"], error["kind"]) == (code, kind)
    assert dpbayes(*words).sentence == error["sentence"]


def test_what_is_charged_and_not_written_has_a_code_of_its_own(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    from dpbayes.release.format import Release

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as patch:
        patch.setattr(Release, "save", full)
        done = dpbayes("release", "people.csv", "sex", "--epsilon", 1)
    assert done.code == 4
    assert "`dpbayes ledger finish people.ledger` completes the release" in done.sentence
    assert Path("published/1").is_dir()  # nobody else gets it
    assert dpbayes("ledger", "finish", "people.csv").code == 0
    assert dpbayes("verify", "published", "--ledger", "people.ledger").code == 0


def test_cautions_are_told_on_standard_error_or_are_in_the_json(here: Path) -> None:
    words = ["release", "people.csv", "sex", "--epsilon", 1.9]
    assert "Warning: It takes" in dpbayes(*words, "--out", "a").err
    Path("people.ledger").unlink()
    dpbayes("ledger", "init", "people.csv", "--epsilon", 2, "--delta", 1e-6)
    done = dpbayes(*words, "--out", "b", "--json")
    assert done.err == ""
    assert any("Warning: It takes" in each for each in json.loads(done.out)["warnings"])


def test_nothing_is_charged_to_the_ledger_of_another_data_set(here: Path) -> None:
    """What lies beside a table by its name still has to hold the id of its schema."""
    Path("people.toml").write_text(Path("people.toml").read_text().replace('"people"', '"others"'))
    assert "no data set 'others'" in dpbayes("release", "people.csv", "sex", "--epsilon", 1).sentence
    Path("copy.csv").write_bytes(Path("people.csv").read_bytes())
    missing = dpbayes("release", "copy.csv", "sex", "--epsilon", 1, "--schema", "people.toml").sentence
    assert "`dpbayes ledger init copy.csv" in missing
    assert not Ledger("people.ledger").account("people").charges
    assert not Path("copy.ledger").exists()
    assert not Path("published").exists()


def test_only_what_may_read_rows_imports_the_curator() -> None:
    folder = Path(main.__file__).parent
    found = {
        path.name for path in folder.glob("*.py")
        if re.search(r"^ *from dpbayes\.(curator|recovery) import", path.read_text(encoding="utf-8"), re.MULTILINE)
    }  # fmt: skip
    assert found == {"release.py", "ledger.py", "schema.py"}


def test_modules_of_commands_name_no_command_line_library_but_click() -> None:
    for path in Path(main.__file__).parent.glob("*.py"):
        names = [
            alias.name.split(".")[0]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Import)
            for alias in node.names
        ]
        assert not {"typer", "argparse"} & set(names)
