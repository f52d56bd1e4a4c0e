"""Every option, and every key of a request or a schema, makes a difference: without it the outcome is another.

Which options and keys there are is read off the commands, the jobs and the formats; one that no line here gives fails.
An outcome is the exit code, what is printed, and every file. A line runs twice as it is: what differs then, as noise
and times do, does not count.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import fields
from datetime import date
from pathlib import Path
from unittest.mock import patch

import click
import pytest
from tests.commands import dpbayes
from tests.test_finish import failing

from dpbayes import ApproxDP, Attribute, Curator, Ledger, Schema, Tables
from dpbayes.base import toml
from dpbayes.cli import COMMANDS
from dpbayes.cli import ledger as ledger_commands
from dpbayes.cli.command import loaded
from dpbayes.jobs.base import requestable
from dpbayes.jobs.request import NUMBERS
from dpbayes.ledger.history import lines
from dpbayes.release.words import ABOUT
from dpbayes.schema import file as schema_file

SCHEMA = """\
id = "people"
unit = "replace-one"
records = 200
[attributes]
sex = ["F", "M"]
age = [0, 30, 60, 90]
job = ["none", "some", "full"]
"""
OTHER = SCHEMA.replace('"people"', '"others"')
PLAIN = SCHEMA.replace("records = 200\n", "")
BUDGET = "--epsilon 1 --delta 1e-6"

LINES = [
    line.replace(" \\\n", "")
    for line in """
example .
schema init raw.csv --categories sex=F,M --edges age=0:90:30 --preset smokes=yes-no --leave-out note --person id \
 --unit add-remove:2
schema init raw.csv --dates admitted=quarter:2019-01-01:2020-01-01 --codebook codes.csv --from-public public.csv \
 --records 4 --out x.toml
schema init raw.csv --interactive --out -
schema check people.csv --read-rows --ledger none
schema check people.csv --schema other.toml
schema adopt edges people.toml
ledger init new.toml --epsilon 2 --delta 1e-6 --rule renyi --about why --witness w.ledger --ledger l.ledger
ledger init people.csv --guarantee 'ZCDP(0.5)' --schema other.toml --ledger l.ledger
ledger show people.csv --all
ledger show people.csv --since 2 --schema other.toml
ledger show other.toml --ledger others.ledger
ledger limit people.csv --epsilon 8 --delta 1e-5 --about board --schema other.toml --ledger others.ledger
ledger limit people.csv --guarantee 'ZCDP(9)' --about board
ledger accept people.csv --about why --schema changed.toml
ledger accept more.toml --about why --ledger others.ledger
ledger charge people.csv 'Gaussian(900)' --about why --schema other.toml --ledger others.ledger
ledger finish people.csv --out late --ledger unfinished.ledger
ledger finish people.csv --give-up --ledger unfinished.ledger
ledger finish people.csv --only NAME --ledger two.ledger
ledger finish people.csv --schema other.toml --ledger unfinished.ledger
plan people.csv sex --epsilon 1 --delta 1e-9 --as draw --schema plain.toml --ledger none
plan people.csv --request r.toml --set level=0.5
plan people.csv sex --guarantee 'ZCDP(0.1)'
release people.csv job --epsilon 1 --delta 1e-9 --as draw --schema changed.toml --ledger none --out here
release people.csv --request r.toml --set level=0.5 --insecure-seed 1
release people.csv sex --guarantee 'ZCDP(0.1)' --dry-run
ask published/1 sex --also published/2 --population --level 0.5 --out answers.csv
verify published/1 --ledger people.ledger --key office.pub --thorough
studio . --public --port 18765 --expose 127.0.0.2 --no-browser
model published/1 'sex|job' --as naive-bayes --also published/2 --plot p.svg --out m.bif
model nb sex --test public.csv
predict nb public.csv --out predicted.csv --probabilities
synth synthetic --rows 30 --out drawn.csv --seed 3 --with croissant --also published/1
synth synthetic --rows 30 --independent --seed 3
synth synthetic --rows 30 --sets 5
export published/1 public --with registry --set curator=Office --set curator_type=Government --set region=here
keys fresh
sign published/1 --key office.key --about why
price 'Gaussian(9)' --at epsilon=1 --unit add-remove --plot p.svg
calibrate Gaussian --epsilon 1 --delta 1e-5 --unit add-remove --times 3 --cells 4 --records 300 \
 --ledger others.ledger --plot p.svg
calibrate Dirichlet --guarantee 'RDP(5, 1)'
risk --epsilon 1 --delta 1e-5 --unit add-remove --blind 0.2 --plot p.svg
risk --guarantee 'GDP(0.5)'
papers rdp figure 3 --out p.png
doctor
""".strip()
    .replace(" \\\n", "")
    .splitlines()
]

KEYS = """
sex,job --set title=T --set author=A --set contact=C --set purpose=P --set supersedes=aaaaaaaaaaaa
sex --set mechanism=laplace --set prior=prior.csv --set level=0.5
sex --as draw --set prior=prior.csv
sex --as pseudo-records --set draws=50
sex --as posterior --set prior=0.5 --set mechanism=hellinger --set even_if_noise=true
job --as naive-bayes --set mechanism=laplace --set tempered=true
job --as naive-bayes --set single_draw=true
sex 'job|sex' --as network --set mechanism=laplace
sex 'job|sex' --as network --set single_draw=true
--as synthetic --set mechanism=laplace
age --as edges --set bounds=0:90 --set bins=3
sex --as vector --set scores=scores.csv --set weight=0.01 --set concentration=9
sex,job --as wide --set law=cells
""".strip().splitlines()
"""What a request says beside its tables and its guarantee, each part as a key of what is made."""

REQUESTS = (
    'tables = ["sex"]\nas = "draw"\nepsilon = 1\ndelta = 1e-9\n',
    "tables = [\"sex\"]\nguarantee = 'ZCDP(0.1)'\n",
)

ATTRIBUTES: dict[str, dict[str, object]] = {
    "sex": {"categories": ["female", "male"], "codes": {"female": ["F"], "male": ["M"]}, "unknown": "drop",
            "labels": {"female": "women"}, "source": "a form", "max_rows": 1},
    "age": {"edges": [0, 30, 60, 90], "missing": "other"},
    "day": {"dates": [date(2020, 1, 1), date(2021, 1, 1)], "period": "quarter"},
    "job": {"categories": ["none", "some", "full"], "closed": "none"},
}  # fmt: skip
TOP: dict[str, object] = {
    "id": "full",
    "unit": "add-remove:2",
    "person": "id",
    "records_guess": 150,
    "impossible": [{"sex": ["male"], "job": ["full"]}],
    "within": [
        {"inner": "age", "outer": "sex", "map": {"[0, 30)": "female", "[30, 60)": "female", "[60, 90)": "male"}}
    ],
}
SCHEMA_LINES = (
    "schema check full.csv --read-rows",
    "plan full.csv sex,job age,sex day --epsilon 1",
    "release full.csv sex,job age,sex day --epsilon 9 --insecure-seed 1 --ledger none --out made",
)
FIXED: dict[str, object] = {
    "id": "full",
    "unit": "replace-one",
    "records": 200,
    "margin": [{"of": ["job"], "totals": [150, 30, 20]}],
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the lines name."""
    here = tmp_path_factory.mktemp("template")
    with contextlib.chdir(here):
        rows = [(("F", "M", "X")[at % 20 // 9], at % 100, ("none", "some", "full")[at % 7 // 3]) for at in range(200)]
        Path("people.csv").write_text("sex,age,job\n" + "".join(f"{sex},{age},{job}\n" for sex, age, job in rows))
        days = [f"20{20 + at % 2}-0{1 + at % 9}-10" if at % 9 else "" for at in range(200)]
        each = [f"{at // 3},{sex},{age if at % 8 else ''},{day},{job}\n"
                for at, ((sex, age, job), day) in enumerate(zip(rows, days, strict=True))]  # fmt: skip
        Path("full.csv").write_text("id,sex,age,day,job\n" + "".join(each))
        Path("public.csv").write_bytes(Path("people.csv").read_bytes())
        more = ('"full"]', '"full", "more"]')
        for name, text in {"people": SCHEMA, "other": OTHER, "plain": PLAIN, "new": SCHEMA.replace("people", "new"),
                           "changed": SCHEMA.replace(*more), "more": OTHER.replace(*more)}.items():  # fmt: skip
            Path(f"{name}.toml").write_text(text)
        Path("raw.csv").write_text("id,sex,age,job,smokes,admitted,note\n1,F,20,none,yes,2019-02-03,-\n")
        Path("codes.csv").write_text("column,code,label\njob,none,without\njob,some,part\n")
        Path("prior.csv").write_text("sex,share\nF,5\nM,4\nmissing,1\nother,1\n")
        Path("scores.csv").write_text("sex,one,two\nF,1,0\nM,0,1\n")
        Path("r.toml").write_text('tables = ["sex", "job|sex"]\nepsilon = 1\ndelta = 1e-6\ntitle = "Jobs"\n')
        for ledger, schema in {"people": SCHEMA, "others": OTHER, "unfinished": SCHEMA, "two": SCHEMA}.items():
            Ledger(f"{ledger}.ledger").open(Schema.from_toml(schema), ApproxDP(20, 1e-4))
        Ledger("people.ledger").open(Schema.from_toml(OTHER), ApproxDP(7, 1e-4))
        for words in ("sex,job", "age sex,job"):
            assert dpbayes("release", "people.csv", *words.split(), *BUDGET.split()).code == 0
        for out, words in {"nb": "sex --as naive-bayes", "synthetic": "--as synthetic",
                           "edges": "age --as edges --set bounds=0:90 --set bins=3"}.items():  # fmt: skip
            done = dpbayes("release", "people.csv", *words.split(), *BUDGET.split(), "--out", out)
            assert done.code == 0, done.err
        dpbayes("ledger", "charge", "others.ledger", "Gaussian(900)", "--about", "first")
        for ledger, out in (("unfinished", "late"), ("two", "later"), ("two", "latest")):
            curator = Curator("people.csv", "people.toml", f"{ledger}.ledger")
            with failing("charge", KeyboardInterrupt(), 0, after=True), pytest.raises(KeyboardInterrupt):
                curator.release(Tables("sex"), ApproxDP(1, 1e-6), out=out)
        dpbayes("keys", "office")
        dpbayes("sign", "published/1", "--key", "office.key")
    return here


def tokens(path: Path) -> list[str]:
    """What a file says, in words; of a ledger, its entries."""
    if path.suffix == ".ledger":
        with contextlib.suppress(Exception):
            book = Ledger(path)
            return " ".join(line for name in book.datasets() for line in lines(book.account(name))).split()
    return path.read_bytes().decode("latin-1").split()


def outcome(words: list[str], template: Path, folder: Path) -> dict[str, list[str]]:
    """Exit code, output and files of a command, each in words."""
    shutil.copytree(template, folder)
    with contextlib.chdir(folder), patch.object(sys, "stdin", io.StringIO("s\n" * 20)):
        if "NAME" in words:
            [name, _] = [each.name for each in Ledger("two.ledger").kept.unfinished().__enter__()]
            words = [name if each == "NAME" else each for each in words]
        done = dpbayes(*words)
        found = {"code": [str(done.code)], "out": done.out.split(), "err": done.err.split()}
        found |= {str(path): tokens(path) for path in Path().rglob("*") if path.is_file() and path.suffix != ".draws"}
    shutil.rmtree(folder)
    return found


def stable(first: dict[str, list[str]], second: dict[str, list[str]]) -> dict[str, list[str | None]]:
    """What two runs have in common: None for a word that differs; nothing of a file whose length does."""
    kept: dict[str, list[str | None]] = {}
    for name in first.keys() & second.keys():
        one, other = first[name], second[name]
        if len(one) == len(other):
            kept[name] = [each if each == again else None for each, again in zip(one, other, strict=True)]
    return kept


def differs(usual: dict[str, list[str | None]], names: set[str], other: dict[str, list[str]]) -> bool:
    """Whether an outcome is another one, whatever noise does."""
    if names != other.keys():
        return True
    return any(
        len(words) != len(other[name]) or any(a is not None and a != b for a, b in zip(words, other[name], strict=True))
        for name, words in usual.items()
    )


def options_of(name: str) -> Iterator[str]:
    for each in loaded(name).params:
        if isinstance(each, click.Option) and each.name != "_json":
            yield next(option for option in each.opts if option.startswith("--"))


def command_of(line: str) -> str:
    first, second, *_ = [*line.split(), ""]
    return first if first in COMMANDS else f"{first} {second}"


def without(words: list[str], option: str) -> list[str]:
    """The line without an option and its value, wherever it stands."""
    flag = next(
        each.is_flag
        for each in loaded(command_of(shlex.join(words))).params
        if isinstance(each, click.Option) and option in each.opts
    )
    kept, skip = [], 0
    for word in words:
        if word == option:
            skip = 1 if flag else 2
        if not skip:
            kept.append(word)
        skip = max(skip - 1, 0)
    return kept


def test_every_option_is_given() -> None:
    given = {(command_of(line), word) for line in LINES for word in shlex.split(line) if word.startswith("--")}
    assert {(name, option) for name in COMMANDS for option in options_of(name)} == given
    assert {command_of(line) for line in LINES} == set(COMMANDS)


def marked(given: Iterable[str]) -> list[object]:
    """Lines, the long ones for long runs only."""
    long = ("calibrate", "synth", "--as synthetic")
    return [pytest.param(line, marks=[pytest.mark.slow] if line.startswith(long) else []) for line in given]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A studio that stops at once, and a ledger that shows its last entry only."""
    monkeypatch.setattr(ledger_commands, "PAGE", 1)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("webbrowser.open", lambda address: sys.stdout.write(f"opened {address}"))
    monkeypatch.setattr("uvicorn.Server.run", lambda _, sockets: sockets[0].close())
    monkeypatch.setattr("dpbayes.studio.app.warm", lambda: None)  # else it goes on beside the tests that follow


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("line", marked(line for line in LINES if "--" in line))
def test_every_option_makes_a_difference(line: str, template: Path, tmp_path: Path) -> None:
    words = shlex.split(line)
    first, second = (outcome(words, template, tmp_path / "here") for _ in range(2))
    assert first["code"] == ["0"] or line.startswith("ledger finish"), first["err"]
    usual, idle = stable(first, second), []
    for option in sorted({word for word in words if word.startswith("--")}):
        if not differs(usual, set(first), outcome(without(words, option), template, tmp_path / "here")):
            idle.append(option)
    assert not idle


def keys_of(words: list[str]) -> list[str]:
    return [each for before, each in itertools.pairwise(words) if before == "--set"]


def test_every_key_of_a_request_is_given() -> None:
    given = set()
    for words in map(shlex.split, KEYS):
        product = words[words.index("--as") + 1] if "--as" in words else "tables"
        given |= {(product, each.partition("=")[0]) for each in keys_of(words)}
    known = {(product, key) for product, job in requestable().items() for key in job.MAKES[product].keys}
    assert known | {("tables", key) for key in ABOUT} == given
    written = {key for text in REQUESTS for key in tomllib.loads(text)}
    assert written == {"tables", "as", *NUMBERS}


@pytest.mark.parametrize("line", marked(KEYS))
def test_every_key_of_a_request_makes_a_difference(line: str, template: Path, tmp_path: Path) -> None:
    common = "release people.csv --epsilon 1 --ledger none --insecure-seed 1 --out made"
    words = [*common.split(), *shlex.split(line)]
    if "posterior" not in words and "laplace" not in line:
        words += ["--delta", "1e-6"]
    first, second = (outcome(words, template, tmp_path / "here") for _ in range(2))
    assert first["code"] == ["0"], first["err"]
    usual, idle = stable(first, second), []
    for each in keys_of(words):
        at = words.index(each)
        if not differs(usual, set(first), outcome(words[: at - 1] + words[at + 1 :], template, tmp_path / "here")):
            idle.append(each)
    assert not idle


@pytest.mark.parametrize("text", REQUESTS)
def test_every_key_of_a_request_file_makes_a_difference(text: str, template: Path, tmp_path: Path) -> None:
    def planned(lines: list[str]) -> dict[str, list[str]]:
        Path(tmp_path / "asked.toml").write_text("\n".join(lines))
        return outcome(["plan", "people.csv", "--request", str(tmp_path / "asked.toml")], template, tmp_path / "here")

    usual = planned(text.splitlines())
    assert usual["code"] == ["0"], usual["err"]
    for line in text.splitlines():
        assert planned([each for each in text.splitlines() if each != line]) != usual, line


def schema_text(top: dict[str, object], attributes: dict[str, dict[str, object]]) -> str:
    said = [f"{key} = {toml.value_text(value)}" for key, value in top.items()]
    return "\n".join(
        [*said, "[attributes]", *(f"{name} = {toml.value_text(each)}" for name, each in attributes.items())]
    )


@pytest.mark.slow
@pytest.mark.parametrize("top", [TOP, FIXED])
def test_every_key_of_a_schema_makes_a_difference(top: dict[str, object], template: Path, tmp_path: Path) -> None:
    """In what is printed and written of a release, but for the release itself, which holds the schema."""

    def made(top: dict[str, object], attributes: dict[str, dict[str, object]]) -> dict[str, list[str]]:
        (template / "full.toml").write_text(schema_text(top, attributes))
        found: dict[str, list[str]] = {}
        for line in SCHEMA_LINES:
            left = outcome(line.split(), template, tmp_path / "here")
            found |= {f"{line} {name}": said for name, said in left.items()}
        return {name: said for name, said in found.items() if not name.endswith(("release.json", "full.toml"))}

    first, second = made(top, ATTRIBUTES), made(top, ATTRIBUTES)
    assert {name: said for name, said in first.items() if name.endswith("code") and said != ["0"]} == {}, first
    usual, idle = stable(first, second), []
    for key in top:
        if not differs(usual, set(first), made({name: each for name, each in top.items() if name != key}, ATTRIBUTES)):
            idle.append(key)
    for name, declared in ATTRIBUTES.items() if top is TOP else ():
        for key in declared:
            rest = {each: value for each, value in declared.items() if each != key}
            if not differs(usual, set(first), made(top, ATTRIBUTES | {name: rest})):
                idle.append(f"{name}.{key}")
    assert not idle


def test_every_key_of_a_schema_is_given() -> None:
    assert {*TOP, *FIXED, "attributes"} == set(schema_file.KEYS)
    given = {key for declared in ATTRIBUTES.values() for key in declared}
    assert given == {each.name for each in fields(Attribute) if each.init} - {"name"} | {"closed"}
