"""``dpbayes fit``, ``predict``, ``synth`` and ``show``, from arguments to files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv
from tests.models.examples import REPLACE, weather, weather_schema
from typer.testing import CliRunner

from dpbayes import ApproxDP, Curator, Histogram, Release, Synthetic, Tables
from dpbayes.base.errors import BudgetExceeded, DpbayesError, InvalidArgument, ReleaseError, SchemaError, TableError
from dpbayes.cli.main import application
from dpbayes.ledger.ledger import Ledger

BUDGET = ("--epsilon", "3", "--delta", "1e-6")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    csv.write_csv(pa.table(weather(3000)), tmp_path / "weather.csv")
    (tmp_path / "weather.toml").write_text(weather_schema().to_toml(), encoding="utf-8")
    (tmp_path / "graph.json").write_text('[["rain", "street"], ["rain", "umbrella"]]', encoding="utf-8")
    Ledger(tmp_path / "weather.ledger").open("weather", ApproxDP(epsilon=10, delta=1e-5), REPLACE)
    return tmp_path


def run(*arguments: object) -> Any:
    return CliRunner().invoke(application(), [str(argument) for argument in arguments])


def fitted(folder: Path, *extra: object, kind: str = "naive-bayes") -> Path:
    what = ("rain", "--as", "naive-bayes") if kind == "naive-bayes" else ("--graph", folder / "graph.json")
    base = ("fit", kind, folder / "weather.csv", "--schema", folder / "weather.toml", *what, *BUDGET)
    result = run(*base, "--out", folder / "model", *(extra or ("--ledger", folder / "weather.ledger")))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return folder / "model"


def left(folder: Path) -> float:
    return Ledger(folder / "weather.ledger").account("weather").left()


@pytest.mark.parametrize("kind", ["naive-bayes", "bayes-net"])
def test_a_model_file_carries_its_guarantee_and_is_charged(folder, kind):
    before = left(folder)
    release = Release.load(fitted(folder, kind=kind))
    model = release.build()
    assert release.verify(ledger=folder / "weather.ledger").ok
    assert model.kind == kind
    assert "at most ε=3 at δ=1e-06" in model.published.statement()
    assert left(folder) < before
    shown = json.loads(run("show", folder / "model", "--json").stdout)
    assert shown["guarantee"] == {"notion": "approx-dp", "epsilon": 3.0, "delta": 1e-6}
    assert "one person" in run("show", folder / "model").output


def test_predictions_are_written_and_printed(folder):
    fitted(folder, "--insecure-seed", 1, "--set", "tempered=true")
    printed = run("predict", folder / "model", folder / "weather.csv").stdout
    assert printed.splitlines()[0].strip('"') == "rain"
    out = folder / "predicted.csv"
    assert run("predict", folder / "model", folder / "weather.csv", "--probabilities", "--out", out).exit_code == 0
    predicted = csv.read_csv(out)
    truth = weather(3000)["rain"]
    right = sum(a == b for a, b in zip(predicted.column("rain").to_pylist(), truth, strict=True))
    assert right / 3000 > 0.9
    assert predicted.column_names == ["rain", "P(no)", "P(yes)", "P(other)"]


def test_synthetic_records_come_with_a_report(folder):
    fitted(folder, "--insecure-seed", 1, kind="bayes-net")
    result = run("synth", folder / "model", "--rows", 5000, "--out", folder / "s.csv", "--json")
    report = json.loads(result.stdout)
    assert csv.read_csv(folder / "s.csv").num_rows == 5000
    assert report["two-way"]["rain,street"]["distance"] < 0.1
    shown = run("synth", folder / "model", "--rows", 50, "--out", folder / "s.parquet", "--report")
    assert "noise" in shown.output


def test_show_draws_and_exports(folder):
    fitted(folder, "--insecure-seed", 1)
    result = run("show", folder / "model", "--node", "street", "--plot", folder / "m.png",
                 "--test", folder / "weather.csv", "--bif", folder / "m.bif", "--json")  # fmt: skip
    shown = json.loads(result.stdout)
    assert shown["public test"]["accuracy"] > 0.9
    assert len(shown["table"]["rows"]) == 3
    assert (folder / "m.png").read_bytes().startswith(b"\x89PNG")
    assert "probability ( street | rain )" in (folder / "m.bif").read_text(encoding="utf-8")


def test_a_dry_run_reads_no_rows_and_charges_nothing(folder):
    before = left(folder)
    (folder / "header.csv").write_text("rain,street,umbrella,day\nthis,row,cannot,be,read,at,all\n")
    asked = ("release", folder / "header.csv", "--schema", folder / "weather.toml", "rain", "--as", "naive-bayes")
    result = run(*asked, *BUDGET, "--dry-run", "--expected-records", 3000, "--json")
    preview = json.loads(result.stdout)
    assert preview["rows_read"] == 0
    assert len(preview["tables"]) == 4
    assert preview["gap"] <= 0
    assert left(folder) == before


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"--target": "snow"}, SchemaError),
        ({"--schema": "none.toml"}, SchemaError),
        ({"--seed": "1"}, InvalidArgument),
        ({"--out": "/dev/null/model"}, ReleaseError),
        ({"--epsilon": "-1"}, InvalidArgument),
    ],
)
def test_refused_fits_write_nothing_and_charge_nothing(folder, change, error):
    before = left(folder)
    options = {
        "--schema": folder / "weather.toml",
        "--target": "rain",
        "--out": folder / "model",
        "--ledger": folder / "weather.ledger",
        "--epsilon": "1",
        "--delta": "1e-6",
        **change,
    }
    flat = [part for pair in options.items() for part in pair]
    result = run("release", folder / "weather.csv", *flat)
    assert isinstance(result.exception, error)
    assert left(folder) == before
    assert not (folder / "model").exists()


def test_cycles_and_wrong_files_are_refused(folder):
    (folder / "graph.json").write_text('[["rain", "street"], ["street", "rain"]]', encoding="utf-8")
    with pytest.raises(InvalidArgument, match="cycle"):
        fitted(folder, kind="bayes-net")
    (folder / "odd.json").write_text("{}", encoding="utf-8")
    for command in (("show",), ("predict",), ("synth", "--rows", "5", "--out", "x.csv")):
        arguments = [
            command[0],
            folder / "model",
            *([folder / "weather.csv"] if command == ("predict",) else []),
            *command[1:],
        ]
        assert isinstance(run(*arguments).exception, ReleaseError)


def test_a_network_cannot_predict_and_a_missing_column_is_named(folder):
    fitted(folder, "--ledger", "none", kind="bayes-net")
    assert isinstance(run("predict", folder / "model", folder / "weather.csv").exception, DpbayesError)
    shutil.rmtree(folder / "model")
    fitted(folder, "--ledger", "none")
    (folder / "short.csv").write_text("street\nwet\n", encoding="utf-8")
    error = run("predict", folder / "model", folder / "short.csv").exception
    assert isinstance(error, TableError)
    assert "umbrella" in str(error)


def test_a_released_distribution_gives_records_too(folder):
    curator = Curator(folder / "weather.csv", folder / "weather.toml")
    curator.release(Histogram(attributes=("rain", "street")), ApproxDP(epsilon=3, delta=1e-6), out=folder / "joint")
    result = run("synth", folder / "joint", "--rows", 3000, "--out", folder / "r.csv")
    assert result.exit_code == 0, result.output
    made = csv.read_csv(folder / "r.csv")
    wet = sum(
        a == "yes" and b == "wet"
        for a, b in zip(*(made.column(n).to_pylist() for n in ("rain", "street")), strict=True)
    )
    assert 0.2 < wet / 3000 < 0.35


def test_a_model_is_built_from_published_tables_without_a_charge(folder):
    curator = Curator(folder / "weather.csv", folder / "weather.toml", ledger=folder / "weather.ledger")
    curator.release(
        Tables("rain", "street|rain", mechanism="gaussian"), ApproxDP(epsilon=2, delta=1e-6), out=folder / "tables"
    )
    before = left(folder)
    built = run("build", "naive-bayes", folder / "tables", "rain", "--as", "naive-bayes", "--feature", "street", "--json")
    assert built.exit_code == 0, built.output
    assert set(json.loads(built.stdout)) >= {"model", "tables", "statement"}
    assert left(folder) == before
    lacking = run("build", "naive-bayes", folder / "tables", "rain", "--as", "naive-bayes", "--feature", "umbrella")
    assert isinstance(lacking.exception, ReleaseError)


def test_one_command_leads_from_a_private_table_to_records(folder):
    before = left(folder)
    asked = ("--schema", folder / "weather.toml", "rain", "--as", "naive-bayes", "--ledger", folder / "weather.ledger", *BUDGET)
    wanted = ("--rows", 500, "--out", folder / "s.csv")
    dry = run("synth", folder / "weather.csv", *asked, *wanted, "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert left(folder) == before
    result = run("synth", folder / "weather.csv", *asked, *wanted, "--published", folder / "measured")
    assert result.exit_code == 0, result.output
    assert left(folder) < before
    assert len(csv.read_csv(folder / "s.csv")) == 500
    assert Release.load(folder / "measured").verify(ledger=folder / "weather.ledger").ok
    spent = left(folder)
    page = folder / "page.html"
    again = run("synth", folder / "measured", "--rows", 700, "--out", folder / "t.csv", "--fidelity", page)
    assert "trustworthy" in page.read_text(encoding="utf-8")
    assert again.exit_code == 0, again.output
    assert left(folder) == spent
    wrong = run("synth", folder / "measured", "--rows", 7, "--out", folder / "t.csv", "--epsilon", 1)
    assert isinstance(wrong.exception, InvalidArgument)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--rows", 0, "--out", "s.csv"), "expected rows to be a whole number"),
        (("--rows", 9, "--out", "s.txt"), "ends in .csv or .parquet"),
        (("--rows", 9, "--out", "nowhere/s.csv"), "Check the folder"),
        (("--rows", 9, "--out", "s.csv", "--sets", 2), "expected 5 sets or more"),
        (("--rows", 9, "--out", "s.csv", "--sets", 9, "--report"), "go with one set"),
        (("--rows", 9, "--out", "s.csv", "--sets", 9, "--fidelity", "page.html"), "go with one set"),
        (("--rows", 9, "--out", "s.csv", "--fidelity", "nowhere/page.html"), "cannot be written"),
        (("--rows", 9, "--out", "s.csv", "--croissant", "nowhere/page.json"), "cannot be written"),
        (("--rows", 9, "--out", "s.csv", "snow", "--as", "naive-bayes"), "no attribute 'snow'"),
    ],
)
def test_what_could_not_be_written_is_refused_before_the_charge(folder, monkeypatch, more, sentence):
    monkeypatch.chdir(folder)
    before = left(folder)
    refused = run("synth", "weather.csv", "--schema", "weather.toml", *BUDGET, "--ledger", "weather.ledger", *more)
    assert isinstance(refused.exception, DpbayesError)
    assert sentence in str(refused.exception)
    assert left(folder) == before


def test_records_that_say_little_are_said_to(folder):
    base = ("synth", folder / "weather.csv", "--schema", folder / "weather.toml", "--ledger", "none", "--delta", "1e-6")
    wanted = ("--rows", 9, "--out", folder / "s.csv")
    faint = run(*base, *wanted, "--epsilon", 0.005)
    assert faint.exit_code == 0, faint.output
    assert "columns of these records are independent" in faint.output
    nothing = run(*base, *wanted, "--epsilon", 0.00001)
    assert "times the ε" in nothing.output
    assert "dpbayes:" not in run(*base, *wanted, "--epsilon", 3).output


def test_several_sets_are_written_to_numbered_files(folder):
    curator = Curator(folder / "weather.csv", folder / "weather.toml")
    curator.release(Synthetic(target="rain"), ApproxDP(epsilon=3, delta=1e-6), out=folder / "measured")
    done = run("synth", folder / "measured", "--rows", 40, "--out", folder / "s.csv", "--sets", 10, "--seed", 1)
    assert done.exit_code == 0, done.output
    names = sorted(path.name for path in folder.glob("s-*.csv"))
    assert names == [f"s-{number:02d}.csv" for number in range(1, 11)]
    assert len({(folder / name).read_text(encoding="utf-8") for name in names}) == 10
    assert isinstance(
        run("synth", folder / "measured", "--rows", 4, "--out", folder / "s.csv", "--sets", 9, "--json").exception,
        InvalidArgument,
    )
    fitted(folder)
    other = run("synth", folder / "model", "--rows", 4, "--out", folder / "s.csv", "--sets", 9)
    assert "whole table" in str(other.exception)


def test_a_paid_release_too_faint_for_several_sets_still_gives_one(folder):
    base = ("synth", folder / "weather.csv", "--schema", folder / "weather.toml", "--ledger", "none", "--delta", "1e-6")
    faint = run(*base, "--epsilon", 0.005, "--rows", 9, "--out", folder / "s.csv", "--sets", 5)
    assert faint.exit_code == 0, faint.output
    assert "one set is written" in faint.output
    assert len(csv.read_csv(folder / "s.csv")) == 9
    assert not list(folder.glob("s-*.csv"))


def test_synth_reads_a_request_and_options_win(folder):
    (folder / "asked.toml").write_text('synthetic = true\nepsilon = 99\ndelta = 1e-6\ntitle = "Rain"', encoding="utf-8")
    before = left(folder)
    base = ("synth", folder / "weather.csv", "--schema", folder / "weather.toml", "--ledger", folder / "weather.ledger")
    wanted = ("--rows", 50, "--out", folder / "s.csv", "--request", folder / "asked.toml")
    refused = run(*base, *wanted)
    assert isinstance(refused.exception, BudgetExceeded)
    assert left(folder) == before
    done = run(*base, *wanted, *BUDGET, "rain", "--as", "naive-bayes", "--published", folder / "measured")
    assert done.exit_code == 0, done.output
    release = Release.load(folder / "measured")
    assert (release.about, release.job["target"]) == ({"title": "Rain"}, "rain")
    (folder / "asked.toml").write_text('tables = ["rain"]', encoding="utf-8")
    assert isinstance(run(*base, *wanted, *BUDGET).exception, InvalidArgument)


def test_a_network_is_fitted_without_a_graph(folder):
    asked = ("--schema", folder / "weather.toml", *BUDGET, "--ledger", folder / "weather.ledger")
    result = run("release", folder / "weather.csv", *asked, "--out", folder / "learned")
    assert result.exit_code == 0, result.output
    assert ("rain", "street") in [
        tuple(sorted(edge)) for edge in Release.load(folder / "learned").build().network.edges
    ]
