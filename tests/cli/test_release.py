"""``dpbayes release``, as a statistician, a careless one and a hostile one use it."""

from __future__ import annotations

import errno
import gzip
import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.commands import Done, dpbayes

from dpbayes import ApproxDP, PureDP, Release, Unit, verify
from dpbayes.ledger.ledger import Ledger

SCHEMA = """
id = "people"
adjacency = "replace-one"
[[attribute]]
name = "sex"
categories = ["F", "M"]
missing = "other"
[[attribute]]
name = "job"
categories = ["cook", "nurse"]
missing = "category"
"""
ROWS = "F,cook\n" * 140 + "M,nurse\n" * 95 + "M,\n" * 17
UNIT = Unit(adjacency="replace-one")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, its schema and a ledger that allows ε = 2."""
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex,job\n" + ROWS)
    Path("people.toml").write_text(SCHEMA)
    Ledger("people.ledger").open("people", ApproxDP(epsilon=2, delta=1e-6), UNIT)
    return tmp_path


def release(
    *more: object,
    table: str = "people.csv",
    schema: str = "people.toml",
    marginal: str = "sex",
    epsilon: float = 1,
    delta: float = 1e-6,
    mechanism: str = "gaussian",
    ledger: str | None = "people.ledger",
) -> Done:
    target = ["--epsilon", epsilon, "--delta", delta, *(["--set", f"mechanism={mechanism}"] if mechanism else [])]
    return dpbayes("release", table, marginal, "--schema", schema, *target, "--ledger", ledger or "none", *more)


def states(ledger: str = "people.ledger") -> list[str]:
    return [charge.state for charge in Ledger(ledger).account("people").charges.values()]


# -- a statistician ---------------------------------------------------------------------------------------------


def test_a_release_writes_its_folder_prints_its_promise_and_verifies(here: Path) -> None:
    done = release("job|sex", "--out", "published/first")
    assert (done.code, done.err) == (0, "")
    assert sorted(path.name for path in Path("published/first").iterdir()) == [
        "1-sex.csv",
        "2-job-by-sex.csv",
        "csv-metadata.json",
        "release.json",
        "report.html",
    ]
    assert [path.name for path in Path("published").iterdir()] == ["first"]
    made = Release.load("published/first/release.json")
    assert verify(made, ledger=Ledger("people.ledger")).ok
    assert " ".join(made.statement().split()) in " ".join(done.out.split())
    assert states() == ["drawn"]


def test_json_is_all_that_standard_output_holds(here: Path) -> None:
    done = release("--json", "--out", "published")
    printed, written = done.release, Release.load("published")
    assert printed.digest() == written.digest()
    assert verify(printed).ok


@pytest.mark.parametrize(
    ("product", "column"),
    [("tables", "% of the records"), ("draw", "% of one draw"), ("pseudo-records", "pseudo-records")],
)
def test_the_table_for_people_shows_what_was_asked_for(here: Path, product: str, column: str) -> None:
    done = release("--as", product, mechanism="dirichlet" if product == "tables" else "", ledger=None)
    assert done.code == 0
    assert column in done.out
    assert "No ledger remembers this release." in done.out


def test_pseudo_records_keep_a_pure_promise(here: Path) -> None:
    Ledger("pure.ledger").open("people", PureDP(epsilon=2), UNIT)
    common = ("people.csv", "sex,job", "--epsilon", 1, "--as", "pseudo-records")
    asked = (*common, "--set", "draws=80", "--ledger", "pure.ledger")
    preview = dpbayes("plan", *asked, "--json").result
    (paid,) = preview["paid"]
    assert (paid["mechanism"]["mechanism"], paid["mechanism"]["records"]) == ("pseudo-records-1", 80)
    done = dpbayes("release", *asked, "--out", "published")
    assert (done.code, done.err) == (0, "")
    assert "ε=1 (pure)" in done.out
    made = Release.load("published/release.json")
    assert sum(made.tables[0].values) == 80
    assert verify(made, ledger=Ledger("pure.ledger")).ok


def test_more_declared_records_than_doubles_carry_are_refused_before_a_charge(here: Path) -> None:
    Path("people.toml").write_text(f"records_guess = {10**9}\n{SCHEMA}")
    done = release(mechanism="dirichlet")
    assert done.code == 1
    assert "Take Gaussian noise" in done.err
    assert states() == []


def test_a_seeded_release_is_never_charged(here: Path) -> None:
    assert release("--insecure-seed", 7).code == 0
    assert states() == []


def test_a_dry_run_needs_no_rows_no_ledger_and_no_folder(here: Path) -> None:
    Path("header.csv").write_text("sex,job\nthis,row,cannot,be,read\n")
    done = release("--dry-run", "--json", "--out", "published", table="header.csv", ledger=None)
    preview = done.result
    assert (preview["rows_read"], preview["columns"]) == (0, ["sex"])
    assert -1e-8 <= preview["gap"] <= 0
    assert preview["tables"][0]["standard_deviation"] > 0
    assert not Path("published").exists()


def test_a_dry_run_names_the_person_column_among_those_to_be_read(here: Path) -> None:
    Path("people.toml").write_text(SCHEMA.replace("[[attribute]]", 'person = "id"\n[[attribute]]', 1))
    Path("people.csv").write_text("id,sex,job\n")
    preview = release("--dry-run", "--json", ledger=None).result
    assert preview["columns"] == ["id", "sex"]


def test_no_person_counts_more_often_than_declared(here: Path) -> None:
    """One person has all 5000 rows; two of them stay."""
    declared = SCHEMA.replace("replace-one", "add-remove")
    Path("people.toml").write_text(declared.replace("[[attribute]]", 'max_rows = 2\nperson = "id"\n[[attribute]]', 1))
    Path("people.csv").write_text("id,sex,job\n" + "7,F,cook\n" * 5000)
    made = release("--json", ledger=None).release
    assert (str(made.unit.adjacency), made.unit.max_rows, made.unit.person) == ("add-remove", 2, "id")
    assert abs(made.tables[0].values[0]) < 200
    assert verify(made).ok


def test_small_groups_are_shown_with_how_much_of_them_is_prior(here: Path) -> None:
    Path("people.csv").write_text("sex,job\n" + "F,cook\n" * 5000 + "M,nurse\n" * 20)
    assert release("--out", "published", "--as", "draw", marginal="job|sex", mechanism="").code == 0
    groups = Release.load("published").tables[0].groups
    assert [group.levels for group in groups] == [("F",), ("M",), ("other",)]
    assert groups[0].prior_share < 0.3 < groups[1].prior_share
    assert "Small groups: M" in Path("published/report.html").read_text()


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_an_empty_table_is_released_like_any_other(here: Path, adjacency: str) -> None:
    Path("people.toml").write_text(SCHEMA.replace("replace-one", adjacency))
    Path("people.csv").write_text("sex,job\n")
    made = release("--json", "job|sex", ledger=None).release
    assert made.records == (0 if adjacency == "replace-one" else None)
    assert sum(made.tables[0].products["population"].values) == pytest.approx(1)
    assert verify(made).ok


def test_a_seeded_release_is_repeatable_and_says_that_it_is_not_private(here: Path) -> None:
    first, second = (release("--insecure-seed", 7, "--json", ledger=None) for _ in range(2))
    made = first.result["release"]
    assert made["tables"] == second.result["release"]["tables"]
    assert (made["seeded"], "spending" in made) == (True, False)
    assert "no privacy at all" in release("--insecure-seed", 7, ledger=None).out.replace("\n", " ")


def test_the_promise_in_words_is_rounded_to_the_private_side(here: Path) -> None:
    made = release("--json", epsilon=0.2000001).release  # e^0.2 = 1.2214…
    assert "ε=0.200001 at δ=1e-06" in made.statement()
    assert "more than 1.23 times as likely" in made.statement()


def test_a_release_does_not_tell_that_the_table_has_changed(here: Path) -> None:
    """That would be a fact about the rows which nobody paid for."""
    assert release("--out", "first", epsilon=0.1).err == ""
    Path("people.csv").write_text("sex,job\n" + ROWS + "F,cook\n")
    assert release("--out", "second", epsilon=0.1).err == ""


def test_a_prior_file_is_read_by_the_names_of_its_cells(here: Path) -> None:
    Path("guess.csv").write_text("share,sex\n1,other\n30,M\n69,F\n")
    made = release("--set", "prior=guess.csv", "--json").release
    (prior,) = made.job["priors"]
    (axis,) = made.axes(made.tables[0])
    shares = {level: share / sum(prior["shares"]) for level, share in zip(axis.levels, prior["shares"], strict=True)}
    assert shares == pytest.approx({"F": 0.69, "M": 0.30, "other": 0.01})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read"),
        ("sex,shares\nF,1\nM,1\n", "one named 'share'"),
        ("sexe,share\nF,1\nM,1\n", "Did you mean 'sex'?"),
        ("sex,share\nF,1\n", "no share for sex='M'"),
        ("sex,share\nF,1\nM,none\n", "expected a number"),
        ("sex,share\nF,1\nM\n", "expected a number"),
        ("sex,share\nF,1\nF,1\n", "twice"),
        ("sex,share\nF,1\nM,0\nother,1\n", "expected every share > 0"),
        ("sex,share\nF,1\nM,nan\nother,1\n", "expected every share > 0"),
        ("sex,share\nF,1\nM,1\nother,1\nX,1\n", "no cell sex='X'"),
        ('sex,share\n"F,1\n', "not CSV"),
        ("job,share\ncook,1\nnurse,1\nmissing,1\nother,1\n", "no marginal is"),
    ],
)
def test_a_prior_that_does_not_fit_is_told_before_anything_is_charged(here: Path, text: str | None, said: str) -> None:
    if text is not None:
        Path("guess.csv").write_text(text)
    assert said in release("--set", "prior=guess.csv").sentence
    assert states() == []


# -- a careless one ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"table": "nowhere.csv"}, "there is no file 'nowhere.csv'"),
        ({"table": "people.toml", "ledger": "people.csv"}, "is not a dpbayes ledger"),
        ({"table": "people.txt"}, "cannot tell what 'people.txt' is"),
        ({"table": "people.csv?delimiter=;"}, "write 'people.csv?delimiter=,'"),
        ({"schema": "nowhere.toml"}, "there is no file 'nowhere.toml'"),
        ({"schema": "people.csv"}, "this is not TOML"),
        ({"marginal": "sexe"}, "Did you mean 'sex'?"),
        ({"marginal": "sex|sex"}, "names an attribute twice"),
        ({"marginal": "sex|"}, "cannot read"),
        ({"ledger": "nowhere.ledger"}, "Create it with `dpbayes ledger init`"),
        ({"ledger": "people.csv"}, "is not a dpbayes ledger"),
        ({"epsilon": "nan"}, "expected --epsilon to be a number"),
        ({"epsilon": "inf"}, "expected epsilon > 0 and finite"),
        ({"epsilon": 1e100}, "expected a guarantee up to 1e+06"),
        ({"delta": 1}, "expected delta strictly between 0 and 1"),
        ({"epsilon": 3}, "A release of up to 2 would fit"),
        ({"table": "p*.csv", "schema": "nowhere.toml"}, "there is no file 'nowhere.toml'"),
    ],
)
def test_a_mistake_is_one_sentence_and_changes_nothing(here: Path, change: dict[str, object], said: str) -> None:
    before = sorted(here.iterdir())
    done = release("--out", "published/new", **change)
    assert done.code in (1, 2, 3)
    assert said in done.sentence
    empty = here / "people.ledger.draws"  # a refused charge leaves no draft in it
    assert [path for path in sorted(here.iterdir()) if path != empty] == before
    assert not empty.exists() or list(empty.iterdir()) == []
    assert states() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--as", "draw"], "mechanism goes with --as"),
        (["--as", "pseudo-records"], "mechanism goes with --as"),
        (["--accounting", "published"], "dpbayes.papers"),
        (["--set", "draws=5"], "draws goes with --as pseudo-records"),
        (["--numbers", "parquet"], "--with parquet"),
        (["--not-private"], "--insecure-seed"),
        (["--seed", 1], "write --insecure-seed NUMBER"),
        (["--guarantee", "ZCDP(1)"], "got both"),
        (["--set", "mechansm=laplace"], "Did you mean 'mechanism'"),
        (["--set", "nothing"], "KEY=VALUE"),
        (["--set", "epsilon=1"], "an option or an argument of its own"),
        (["--as", "tabels"], "Did you mean 'tables'"),
        (["--request", "none.toml"], "no file 'none.toml'"),
        (["job ± 1 point"], "either all tables name an accuracy"),
        (["--set", "level=1"], "level"),
        (["--expected-records", 0], "records_guess = 1000 into the schema"),
        (["--set", "expected_records=9"], "records_guess into the schema"),
        (["--engine", "abacus"], "the address of the table says it"),
        (["sex"], "asked for twice"),
        (["--rho", 1], "--guarantee"),
        (["--out", "people.csv"], "is a file"),
        (["--out", "."], "not empty"),
        (["--out", "people.csv/new"], "cannot write"),
    ],
)
def test_an_option_that_would_be_ignored_or_cannot_be_met_is_refused(
    here: Path, options: list[object], said: str
) -> None:
    assert said in release(*options).sentence
    assert states() == []


@pytest.mark.parametrize("seed", [-1, -(10**30)])
def test_a_seed_that_no_generator_takes_is_refused(here: Path, seed: int) -> None:
    assert "seed" in release("--insecure-seed", seed, ledger=None).sentence


@pytest.mark.parametrize(
    "text",
    [
        b"sex,job\nF,cook\nF\n",
        b"sex,job\nF,cook,3\n",
        b"sex,job\n" + b"F,cook\n" * 10_000 + b"\xff\xfe,cook\n",
        b'sex,job\n"F,cook\n' + b"F,cook\n" * 10_000,
    ],
)
def test_a_line_that_cannot_be_read_refuses_no_table(here: Path, text: bytes) -> None:
    Path("broken.csv").write_bytes(text)
    release("--out", "published", table="broken.csv")
    assert states() == ["drawn"]
    assert Path("published").exists()


def test_a_table_that_breaks_while_it_is_read_keeps_its_charge(here: Path) -> None:
    whole = gzip.compress(b"sex,job\n" + b"".join(b"F,cook%d\n" % number for number in range(50_000)))
    Path("broken.csv.gz").write_bytes(whole[:-1000])
    assert "Table: it " in release("--out", "published", table="broken.csv.gz").sentence
    assert states() == ["charged"]
    assert Ledger("people.ledger").account("people").spent > 0
    assert not Path("published").exists()


def test_a_truncated_parquet_file_is_refused_before_it_is_charged(here: Path) -> None:
    parquet.write_table(pa.table({"sex": ["F"] * 5000, "job": ["cook"] * 5000}), "people.parquet")
    whole = Path("people.parquet").read_bytes()
    Path("people.parquet").write_bytes(whole[: len(whole) // 2])
    assert "is a complete Parquet file" in release("--out", "published", table="people.parquet").sentence
    assert states() == []


def test_a_false_number_of_records_is_refused_with_both_numbers_before_the_charge(here: Path) -> None:
    Path("people.toml").write_text(SCHEMA.replace('id = "people"', 'id = "people"\nrecords = 251'))
    assert release("--out", "published").sentence == (
        "Schema: it declares records = 251, and the table has 252 rows. Correct the one that is wrong; nothing was "
        "charged."
    )
    assert (states(), Path("published").exists()) == ([], False)


def test_totals_that_were_declared_wrongly_are_told_from_the_published_values_alone(here: Path) -> None:
    margin = '[[margin]]\nof = ["sex"]\ntotals = [12, 240, 0]'
    Path("people.toml").write_text(SCHEMA.replace('id = "people"', 'id = "people"\nrecords = 252') + margin)
    done = release("--json", marginal="sex,job")
    assert (done.code, states()) == (0, ["drawn"])
    notes = done.result["release"]["tables"][0]["notes"]  # the noise may leave a level looking empty besides
    assert sum("do not fit the totals of sex" in note for note in notes) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfsex,job\n" + ROWS.encode(),
        ("sex,job\n" + ROWS).replace("\n", "\r\n").encode(),
        b'"sex","job"\n' + ROWS.replace("F,cook", '"F","cook"').encode(),
        b"more,job,sex\n" + b"".join(b"x,%s,%s\n" % tuple(row.split(b",")[::-1]) for row in ROWS.encode().split()),
    ],
)
def test_the_odd_ways_to_write_a_csv_file_are_all_read(here: Path, content: bytes) -> None:
    Path("people.csv").write_bytes(content)
    made = release("--json", "job", epsilon=2, ledger=None, mechanism="laplace").release
    assert made.records == 252
    assert made.tables[0].values == pytest.approx([140, 112, 0], abs=60)
    assert made.tables[1].values == pytest.approx([140, 95, 17, 0], abs=60)


def test_a_ledger_of_another_unit_is_refused_with_both_units(here: Path) -> None:
    Path("people.toml").write_text(SCHEMA.replace("replace-one", "add-remove"))
    assert "protects this unit: replace-one" in release().sentence
    assert states() == []


# -- a hostile one ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE dpbayes_ledger SET format = 3", "written by a newer dpbayes"),
        ("UPDATE dpbayes_entries SET text = replace(text, '\"epsilon\":2', '\"epsilon\":9')", "altered or damaged"),
        ("DELETE FROM dpbayes_entries WHERE serial > 0", "missing"),
        ("DELETE FROM dpbayes_datasets", "no data set 'people'"),
        ("DROP TABLE dpbayes_entries", "is not a dpbayes ledger"),
    ],
)
def test_a_tampered_ledger_is_refused_and_nothing_is_drawn(here: Path, statement: str, said: str) -> None:
    assert release("--out", "first", epsilon=0.5).code == 0
    with sqlite3.connect("people.ledger") as connection:
        connection.execute(statement)
    connection.close()
    assert said in release("--out", "published", epsilon=0.5).sentence
    assert not Path("published").exists()


def test_an_interrupted_count_is_told_and_keeps_its_charge(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpbayes.tables.duckdb import DuckDBEngine

    def count(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(DuckDBEngine, "count", count)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        done = release("--out", "published/new")
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.code == 130
    assert done.sentence.startswith(
        "interrupted. If the ledger was charged already, `dpbayes ledger finish people.ledger`"
    )
    assert states() == ["charged"]
    assert not Path("published").exists()


def test_what_cannot_be_written_is_one_sentence_and_leaves_nothing(here: Path) -> None:
    """Files may hold 10 kB here: too little for the report."""
    code = (
        "import resource, signal, sys; from dpbayes.cli.main import run\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "run()"
    )
    asked = "release people.csv sex --epsilon 1 --delta 1e-6 --set mechanism=laplace"
    command = [sys.executable, "-c", code, *asked.split(), "--ledger", "none", "--out", "published"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert resource.getrlimit(resource.RLIMIT_FSIZE) != (10_000, 10_000)
    assert done.returncode == 1, done.stderr
    assert "cannot write to " in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in here.iterdir()) == ["people.csv", "people.ledger", "people.toml"]


def test_a_ledger_that_goes_away_after_the_charge_does_not_take_the_release_with_it(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpbayes.curator import Curator

    draw = Curator._draw

    def and_lose_the_ledger(*arguments: object) -> object:
        Path("people.ledger").rename("moved.ledger")
        return draw(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Curator, "_draw", and_lose_the_ledger)
    with pytest.warns(UserWarning, match="could not note"):
        done = release("--out", "published")
    assert (done.code, done.err) == (0, "")
    assert states("moved.ledger") == ["charged"]
    Path("moved.ledger").rename("people.ledger")
    assert "1 finished" in dpbayes("ledger", "finish", "people.ledger").out
    assert verify(Release.load("published"), ledger=Ledger("people.ledger")).ok


def test_a_full_standard_output_is_one_sentence(here: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from dpbayes.cli.main import run; run()", "schema", "check", "people.toml"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode != 0
    assert done.stderr.startswith(f"dpbayes: the system refused: {errno_text(errno.ENOSPC)}.")
    assert "Traceback" not in done.stderr


def errno_text(number: int) -> str:
    import os

    return os.strerror(number)


@pytest.mark.slow
def test_eight_releases_at_once_never_overspend(here: Path) -> None:
    asked = "release people.csv sex --epsilon 1 --set mechanism=gaussian"
    start = [sys.executable, "-c", "from dpbayes.cli.main import run; run()", *asked.split()]
    running = [
        subprocess.Popen([*start, "--ledger", "people.ledger", "--out", f"published/{n}"], stdout=subprocess.DEVNULL)
        for n in range(8)
    ]
    codes = [process.wait() for process in running]
    account = Ledger("people.ledger").account("people")
    assert account.budget.amount(account.cost) <= 2 * (1 + 1e-9)
    assert 1 < codes.count(0) < 8
    assert states() == ["drawn"] * codes.count(0)
    assert len(list(Path("published").iterdir())) == codes.count(0)
