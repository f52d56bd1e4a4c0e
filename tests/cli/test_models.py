"""Models and records: ``release --as``, ``model``, ``predict`` and ``synth``, from arguments to files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv
from tests.commands import Done, dpbayes
from tests.models.examples import REPLACE, weather, weather_schema

from dpbayes import ApproxDP, Curator, Release, Synthetic, Tables
from dpbayes.ledger.ledger import Ledger
from dpbayes.models import Histogram

BUDGET = ("--epsilon", 3, "--delta", "1e-6")
NETWORK = ("--as", "network", "rain", "street|rain", "umbrella|rain")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    csv.write_csv(pa.table(weather(3000)), "weather.csv")
    Path("weather.toml").write_text(weather_schema().to_toml(), encoding="utf-8")
    Ledger("weather.ledger").open("weather", ApproxDP(epsilon=10, delta=1e-5), REPLACE)
    return tmp_path


def run(*arguments: object) -> Done:
    done = dpbayes(*arguments)
    assert done.code == 0, done.err
    return done


def fitted(*more: object, what: tuple[str, ...] = ("--as", "naive-bayes", "rain")) -> Path:
    run("release", "weather.csv", *what, *BUDGET, "--out", "model", *more)
    return Path("model")


def left() -> float:
    return Ledger("weather.ledger").account("weather").left()


@pytest.mark.parametrize("what", [("--as", "naive-bayes", "rain"), NETWORK], ids=["naive-bayes", "network"])
def test_a_model_file_carries_its_guarantee_and_is_charged(folder: Path, what: tuple[str, ...]) -> None:
    before = left()
    release = Release.load(fitted(what=what))
    model = release.model()
    assert release.verify(ledger="weather.ledger").ok
    assert model.kind == {"naive-bayes": "naive-bayes", "network": "bayes-net"}[what[1]]
    assert "at most ε=3 at δ=1e-06" in model.published.statement()
    assert left() < before
    assert run("model", "model", "--json").result["guarantee"] == {"notion": "approx-dp", "epsilon": 3.0, "delta": 1e-6}
    assert "one person" in run("model", "model").out


def test_predictions_are_written_and_printed(folder: Path) -> None:
    fitted("--insecure-seed", 1, "--set", "tempered=true")
    printed = run("predict", "model", "weather.csv").out
    assert printed.splitlines()[0].strip('"') == "rain"
    run("predict", "model", "weather.csv", "--probabilities", "--out", "predicted.csv")
    predicted, truth = csv.read_csv("predicted.csv"), weather(3000)["rain"]
    right = sum(a == b for a, b in zip(predicted.column("rain").to_pylist(), truth, strict=True))
    assert right / 3000 > 0.9
    assert predicted.column_names == ["rain", "P(no)", "P(yes)", "P(other)"]
    assert "exists already" in dpbayes("predict", "model", "weather.csv", "--out", "predicted.csv").sentence
    Path("german.csv").write_text(Path("weather.csv").read_text().replace(",", ";"))
    assert run("predict", "model", "german.csv?delimiter=;").out == printed
    assert len(run("predict", "model", "weather.csv", "--json").result["rain"]) == 3000


def test_synthetic_records_come_with_distances_to_the_release(folder: Path) -> None:
    fitted("--insecure-seed", 1, what=NETWORK)
    report = run("synth", "model", "--rows", 5000, "--out", "s.csv", "--json").result
    assert csv.read_csv("s.csv").num_rows == 5000
    assert report["distances"]["two-way"]["rain,street"]["distance"] < 0.1
    assert "noise" in run("synth", "model", "--rows", 50).out
    assert csv.read_csv("records.csv").num_rows == 50
    assert "exists already" in dpbayes("synth", "model", "--rows", 50).sentence


def test_a_model_is_drawn_tested_and_written(folder: Path) -> None:
    fitted("--insecure-seed", 1)
    asked = ("model", "model", "street", "--plot", "m.png", "--test", "weather.csv")
    shown = run(*asked, "--out", "m.bif", "--json").result
    assert shown["public test"]["accuracy"] > 0.9
    assert len(shown["tables of nodes"][0]["rows"]) == 3
    assert Path("m.png").read_bytes().startswith(b"\x89PNG")
    assert "probability ( street | rain )" in Path("m.bif").read_text(encoding="utf-8")
    assert "accuracy" in run(*asked, "--out", "m.json").out
    assert '"street"' in Path("m.json").read_text(encoding="utf-8")
    assert "exists already" in dpbayes(*asked, "--out", "m.bif").sentence
    assert "ends in .bif or .json" in dpbayes(*asked, "--out", "m.txt").sentence
    assert "no attribute 'snow'" in dpbayes("model", "model", "snow").sentence


def test_a_dry_run_reads_no_rows_and_charges_nothing(folder: Path) -> None:
    before = left()
    Path("header.csv").write_text("rain,street,umbrella,day\nthis,row,cannot,be,read,at,all\n")
    asked = ("header.csv", "rain", "--as", "naive-bayes", "--schema", "weather.toml", *BUDGET)
    preview = run("plan", *asked, "--json").result
    assert preview["rows_read"] == 0
    assert len(preview["tables"]) == 4
    assert preview["gap"] <= 0
    assert left() == before


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (("snow",), 1, "no attribute 'snow'"),
        (("rain", "--schema", "none.toml"), 1, "no file 'none.toml'"),
        (("rain", "street"), 2, "expected one table"),
        (("rain,street",), 2, "one name before the bar"),
        (("rain", "--out", "/dev/null/model"), 1, "cannot write"),
        (("rain", "--epsilon", -1), 2, "epsilon > 0"),
        (("rain", "--set", "level=0.9"), 2, "level goes with --as tables"),
        (("rain", "--set", "single_draw=perhaps"), 2, "true or false"),
    ],
)
def test_refused_fits_write_nothing_and_charge_nothing(
    folder: Path, change: tuple[object, ...], code: int, said: str
) -> None:
    before = left()
    done = dpbayes("release", "weather.csv", "--as", "naive-bayes", *BUDGET, "--out", "model", *change)
    assert said in done.sentence
    assert done.code == code
    assert left() == before
    assert not Path("model").exists()


def test_cycles_and_wrong_files_are_refused(folder: Path) -> None:
    cycle = ("--as", "network", "rain|street", "street|rain")
    assert "cycle" in dpbayes("release", "weather.csv", *cycle, *BUDGET, "--out", "model").sentence
    Path("odd.json").write_text("{}", encoding="utf-8")
    for command in (("model", "odd.json"), ("predict", "odd.json", "weather.csv"), ("synth", "odd.json", "--rows", 5)):
        assert dpbayes(*command).sentence.startswith("Release: ")


def test_a_network_cannot_predict_and_a_missing_column_is_named(folder: Path) -> None:
    fitted("--ledger", "none", what=NETWORK)
    assert "expected a naive-bayes model" in dpbayes("predict", "model", "weather.csv").sentence
    shutil.rmtree("model")
    fitted("--ledger", "none")
    Path("short.csv").write_text("street\nwet\n", encoding="utf-8")
    assert "umbrella" in dpbayes("predict", "model", "short.csv").sentence


def test_a_released_distribution_gives_records_too(folder: Path) -> None:
    curator = Curator("weather.csv", "weather.toml")
    curator.release(Histogram(attributes=("rain", "street")), ApproxDP(epsilon=3, delta=1e-6), out="joint")
    run("synth", "joint", "--rows", 3000, "--out", "r.csv", "--independent", "--seed", 1)
    made = csv.read_csv("r.csv")
    wet = sum(
        a == "yes" and b == "wet"
        for a, b in zip(*(made.column(n).to_pylist() for n in ("rain", "street")), strict=True)
    )
    assert 0.2 < wet / 3000 < 0.35


def test_a_model_is_built_from_published_tables_without_a_charge(folder: Path) -> None:
    run("release", "weather.csv", "rain", "--epsilon", 1, "--out", "one")
    run("release", "weather.csv", "street|rain", "--epsilon", 1, "--out", "two")
    before, built = left(), ("model", "one", "--also", "two", "--as")
    assert run(*built, "naive-bayes", "rain|street", "--json").result["kind"] == "naive-bayes"
    assert run(*built, "network", "rain", "street|rain", "--json").result["kind"] == "bayes-net"
    assert left() == before
    assert dpbayes(*built, "naive-bayes", "rain|umbrella").sentence.startswith("Model: ")
    assert "expected --as naive-bayes" in dpbayes("model", "one", "--as", "tables").sentence
    assert "was not made for a model" in dpbayes("model", "one").sentence


def test_one_command_leads_from_a_private_table_to_records(folder: Path) -> None:
    Path("weather.toml").write_text(f"records = 3000\n{weather_schema().to_toml()}", encoding="utf-8")
    Path("weather.ledger").unlink()
    run("ledger", "init", "weather.csv", "--epsilon", 10, "--delta", 1e-5)
    before = left()
    asked = ("weather.csv", "rain", "--as", "synthetic", *BUDGET)
    run("plan", *asked)
    assert left() == before
    assert "3,000 synthetic records to measured-records.csv" in run("release", *asked, "--out", "measured").out
    assert left() < before
    assert len(csv.read_csv("measured-records.csv")) == 3000
    assert run("verify", "measured", "--ledger", "weather.ledger")
    spent = left()
    run("synth", "measured", "--out", "t.csv", "--with", "fidelity", "--with", "croissant")
    assert len(csv.read_csv("t.csv")) == 3000
    assert "trustworthy" in Path("t.fidelity.html").read_text(encoding="utf-8")
    assert '"cr:' in Path("t.croissant.json").read_text(encoding="utf-8")
    assert left() == spent
    gone = dpbayes("synth", "measured", "--rows", 7, "--epsilon", 1)
    assert (gone.code, "no option --epsilon" in gone.sentence) == (2, True)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--rows", 0, "--out", "s.csv"), "expected rows to be a whole number"),
        (("--rows", 9, "--out", "s.txt"), "ends in .csv or .parquet"),
        (("--rows", 9, "--out", "nowhere/s.csv"), "Check the folder"),
        (("--rows", 9, "--out", "weather.csv"), "exists already"),
        (("--rows", 9, "--sets", 2), "expected 5 sets or more"),
        (("--rows", 9, "--sets", 9, "--with", "fidelity"), "says nothing about several sets"),
        (("--rows", 9, "--with", "xlsx"), "croissant or fidelity"),
        (("--out", "s.csv"), "Say how many with --rows"),
    ],
)
def test_what_could_not_be_written_is_refused(folder: Path, more: tuple[object, ...], sentence: str) -> None:
    Curator("weather.csv", "weather.toml").release(Tables("rain"), ApproxDP(epsilon=3, delta=1e-6), out="one")
    said = dpbayes("synth", "one", *more).sentence
    assert sentence in said


def test_records_that_say_little_are_said_to(folder: Path) -> None:
    def told(epsilon: float) -> str:
        made = run("release", "weather.csv", "--as", "synthetic", "--ledger", "none", "--delta", "1e-6",
                   "--epsilon", epsilon, "--out", f"m{epsilon}")  # fmt: skip
        return made.err + run("synth", f"m{epsilon}", "--rows", 9, "--out", f"s{epsilon}.csv").err

    assert "columns of these records are independent" in told(0.005)
    assert "times the ε" in told(0.00001)
    assert "dpbayes:" not in told(3)


def test_several_sets_are_written_to_numbered_files(folder: Path) -> None:
    curator = Curator("weather.csv", "weather.toml")
    curator.release(Synthetic(target="rain"), ApproxDP(epsilon=3, delta=1e-6), out="measured")
    done = run("synth", "measured", "--rows", 40, "--out", "s.csv", "--sets", 10, "--seed", 1, "--json")
    names = sorted(path.name for path in folder.glob("s-*.csv"))
    assert names == done.result["files"] == [f"s-{number:02d}.csv" for number in range(1, 11)]
    assert len({Path(name).read_text(encoding="utf-8") for name in names}) == 10
    fitted()
    assert "whole table" in dpbayes("synth", "model", "--rows", 4, "--sets", 9).sentence


def test_a_release_too_faint_for_several_sets_still_gives_one(folder: Path) -> None:
    asked = ("weather.csv", "--as", "synthetic", "--ledger", "none", "--delta", "1e-6", "--epsilon", 0.005)
    run("release", *asked, "--out", "faint")
    assert "one set is written" in run("synth", "faint", "--rows", 9, "--out", "s.csv", "--sets", 5).err
    assert len(csv.read_csv("s.csv")) == 9
    assert not list(folder.glob("s-*.csv"))


def test_synthetic_records_are_requested_in_a_file_and_options_win(folder: Path) -> None:
    Path("asked.toml").write_text('as = "synthetic"\nepsilon = 99\ntitle = "Rain"', encoding="utf-8")
    before = left()
    assert dpbayes("release", "weather.csv", "-r", "asked.toml").code == 3
    assert left() == before
    run("release", "weather.csv", "-r", "asked.toml", *BUDGET, "rain", "--out", "measured")
    release = Release.load("measured")
    assert (release.about, release.job["target"]) == ({"title": "Rain"}, "rain")
    run("release", "weather.csv", "-r", "asked.toml", *BUDGET, "rain", "--as", "tables", "--out", "tables")
    assert Release.load("tables").kind == "tables"


def test_a_network_is_learned_without_a_graph(folder: Path) -> None:
    fitted(what=("--as", "network"))
    assert ("rain", "street") in [tuple(sorted(edge)) for edge in Release.load("model").model().network.edges]
