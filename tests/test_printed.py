"""Every command that is printed, runs: in README, on every page, and in the help of every command.

The blocks of a page run in order, in an empty folder. A block that needs more than the page gives says so in its first
line, ``# needs …``, for the reader and for this test. A block of TOML that begins with the name of a file is that file.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest
from tests.commands import Done, dpbayes
from tests.test_docs import PAGES, ROOT, _name, reference

from dpbayes.schema.schema import Schema

BLOCK = re.compile(
    r"^(<!-- run on the example survey -->\n)? *```(sh|bash|console|toml|python)\n(.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
SHELL = ("sh", "bash", "console")
NEEDS = "# needs "
FOREIGN = ("make", "pip", "uv", "python", "git", "docker", "gh", "hatch", "source", "brew")
"""Programs that are tested elsewhere, or need a network."""


def steps(text: str) -> list[str]:
    """What a page has its reader do, in order: its commands, the files that it shows, its Python for the survey.

    A command that is shown with its refusal is left out: such blocks are compared word by word elsewhere.
    """
    found = []
    for marked, kind, block in BLOCK.findall(text):
        if kind == "python":
            found += [f"python\n{block}"] if marked else []
        elif kind == "toml":
            found += [f"file\n{block}"] if re.match(r"# [\w.-]+\n", block) else []
        elif kind in SHELL and not block.lstrip().startswith(NEEDS):
            lines = re.sub(r"\\\n\s*", " ", block)
            if kind == "console":
                shown = re.findall(r"^ *\$ (.*)\n((?: *[^ $].*\n)*)", lines, re.MULTILINE)
                lines = "\n".join(
                    line for line, output in shown if not re.search(r"^ *dpbayes: ", output, re.MULTILINE)
                )
            found += [line.strip() for line in lines.splitlines() if shlex.split(line, comments=True)]
    if any(step.startswith("python\n") for step in found) and not any("dpbayes example" in step for step in found):
        found[:0] = ["dpbayes example .", LIMIT]
    return found


LIMIT = "dpbayes ledger init survey.csv --epsilon 4 --delta 1e-6"


def run(step: str, names: dict[str, object]) -> Done:
    """A step as its reader would take it; dpbayes and Python run in this process."""
    kind, _, block = step.partition("\n")
    if kind == "file":
        Path(block.split()[1]).write_text(block, encoding="utf-8")
        return Done(code=0, out="", err="")
    if kind == "python":
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(block, "page", "exec"), names)
        return Done(code=0, out="", err="")
    words = shlex.split(kind, comments=True)
    if words[0] in FOREIGN or words[:2] == ["dpbayes", "studio"]:  # a studio runs until it is stopped
        return Done(code=0, out="", err="")
    if words[0] != "dpbayes" or ">" in words:
        command = ["sh", "-c", step]
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        done = subprocess.run(
            command, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=120, check=False
        )
        return Done(code=done.returncode, out=done.stdout, err=done.stderr)
    return dpbayes(*words[1:])


def wrong_steps(page: Path) -> list[str]:
    """The steps of a page that cannot be taken in this folder, each with what it says."""
    wrong, names = [], {}
    for step in steps(page.read_text(encoding="utf-8")):
        done = run(step, names)
        if done.code != 0:
            wrong.append(f"$ {step}\n{done.err.strip()[-400:]}")
    return wrong


PRINTED = [page for page in PAGES if page.name not in ("CHANGELOG.md", "cli.md") and steps(page.read_text("utf-8"))]


MARKS = {
    "docs/how-to/make-synthetic-records.md": [pytest.mark.slow],
}


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=_name(page), marks=MARKS.get(_name(page), [])) for page in PRINTED]
)
def test_the_steps_of_a_page_can_be_taken_in_order_in_an_empty_folder(page, tmp_path):
    with contextlib.chdir(tmp_path):
        assert not (wrong := wrong_steps(page)), "\n".join(wrong)
        if page.name == "README.md":  # and once more, in the same folder
            assert not (wrong := wrong_steps(page)), "\n".join(wrong)


ELSEWHERE = {
    ("docs/how-to/add-a-mechanism.md", "python"): "mechanisms/test_added.py",
    ("docs/how-to/use-other-libraries.md", "r"): "test_r.py",
    ("docs/reference/ledger.md", "sql"): "ledger/test_witness.py",
    ("docs/reference/request.md", "toml"): "test_printed.py",
    ("docs/reference/schema.md", "toml"): "test_printed.py",
}
"""Blocks that another test runs, and where."""


def test_every_block_runs_or_says_what_it_needs():
    """A block of code is never left out in silence."""
    fence = re.compile(r"^(<!-- [^\n]* -->\n)? *```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
    needy, silent = [], []
    for page in PAGES:
        for marked, kind, block in fence.findall(page.read_text("utf-8")):
            runs = kind in (*SHELL, "text") or marked or (kind == "toml" and re.match(r"# [\w.-]+\n", block))
            if found := re.match(r"(?:#|--) needs (.{10,})", block.lstrip()):
                needy.append((_name(page), found[1]))
            elif not runs and (_name(page), kind) not in ELSEWHERE:
                silent.append((_name(page), kind))
    assert not silent
    assert [name for name, _ in needy] == [
        "docs/how-to/add-a-model.md",
        "docs/how-to/scale-out.md",
        "docs/reference/ledger.md",
    ]
    for (page, kind), test in ELSEWHERE.items():
        text = (ROOT / "tests" / test).read_text("utf-8")
        assert f"```{kind}" in text, f"{test} runs no {kind} of {page}"


@pytest.mark.parametrize(
    "block", re.findall(r"```toml\n(.*?)^```", (ROOT / "docs/reference/schema.md").read_text("utf-8"), re.M | re.S)
)
def test_every_schema_that_is_printed_is_read(block):
    head = "" if block.startswith("id =") else 'id = "example"\nunit = "replace-one"\n'
    assert Schema.from_toml(head + block).attributes


def test_the_request_that_is_printed_is_that_of_the_example():
    page = (ROOT / "docs/reference/request.md").read_text("utf-8")
    (block,) = re.findall(r"```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    shipped = (ROOT / "src/dpbayes/example/request.toml").read_text("utf-8")
    assert tomllib.loads(block) == tomllib.loads(shipped)


EARLY = """
plan survey.csv region
release survey.csv region --epsilon 1
release survey.csv -r request.toml
ledger init survey.csv --epsilon 4 --delta 1e-6
ledger show survey.csv
ledger charge survey.csv '12 * Gaussian(400)' --about later
schema check survey.csv
schema adopt regions survey.toml
ask published income
verify published/1
model published/1
predict published/1 survey.csv
synth published/1
export published/1 public
risk published/1
sign published/1 --key office.key
""".strip().splitlines()
"""Commands of pages, typed in a folder in which nothing was made."""


@pytest.mark.parametrize("command", EARLY)
def test_a_command_that_comes_too_early_says_what_makes_what_it_misses(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = dpbayes(*shlex.split(command))
    assert done.code == 1
    assert re.search(r"`dpbayes (example|release|schema init|ledger init|keys)\b", done.sentence), done.sentence
    assert list(tmp_path.iterdir()) == []


FIRST = ("example", "ledger init", "ledger limit", "release", "keys", "sign")
LAST = ("schema adopt", "ledger accept")
"""Commands whose products others use, and commands that change the schema."""

EXEMPT = {"studio": "runs until it is stopped"}


def examples() -> list[tuple[str, str]]:
    """The examples of all commands, each after those whose products it uses."""
    found = []
    for name, command in reference.commands():
        text = " ".join(inspect.cleandoc(command.help or "").split())
        each = re.findall(r"Example: (dpbayes .*?)(?= Example:|$)", text)
        assert each, f"{name} shows no example"
        found += [(name, example) for example in each]

    def place(item: tuple[str, str]) -> int:
        early = [number for number, name in enumerate(FIRST) if item[0] == name]
        return early[0] if early else len(FIRST) + (item[0] in LAST and 1 + LAST.index(item[0]))

    return sorted(found, key=place)


@pytest.mark.slow
def test_the_examples_in_the_help_of_every_command_run(tmp_path):
    wrong = []
    with contextlib.chdir(tmp_path):
        for name, example in examples():
            done = Done(code=0, out="", err="") if name in EXEMPT else dpbayes(*shlex.split(example)[1:])
            if done.code != 0:
                wrong.append(f"$ {example}\n{done.err.strip()[-400:]}")
    assert not wrong, "\n".join(wrong)


def test_help_shows_no_emoji_for_a_range():
    for command in ("schema init", "release", "plan"):
        assert not re.search("[\U0001f300-\U0001faff]", dpbayes(*command.split(), "--help").out)
