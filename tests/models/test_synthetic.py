from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from scipy import stats

from dpbayes import ApproxDP, Attribute, Curator, PureDP, Release, Schema, Unit
from dpbayes.base.errors import InvalidArgument, ReleaseError
from dpbayes.jobs import Fit
from dpbayes.models.bayes_net import BayesNet
from dpbayes.models.fidelity import fidelity
from dpbayes.models.histogram import Histogram
from dpbayes.models.naive_bayes import NaiveBayes
from dpbayes.models.network import pick
from dpbayes.models.synthetic import columns_of, synthetic_table, write_table

from .examples import REPLACE, fitted, weather

CLEAR = ApproxDP(epsilon=200.0, delta=1e-6)
SPECS = {
    "histogram": Histogram(attributes=("rain", "street")),
    "naive-bayes": NaiveBayes(target="rain"),
    "bayes-net": BayesNet(edges=(("rain", "street"), ("rain", "umbrella")), nodes=("day",)),
}


def release_of(kind: str, target=CLEAR) -> Release:
    return fitted(SPECS[kind], target, rows=5000, seed=1)


def model_of(kind: str, target=CLEAR):
    return release_of(kind, target).model()


@pytest.mark.parametrize("kind", SPECS)
def test_every_model_gives_records_that_follow_the_data(kind):
    table = synthetic_table(model_of(kind), 40_000, rng=np.random.default_rng(0))
    data = weather(5000)
    for name in table.column_names:
        drawn = np.asarray(table.column(name).to_pylist())
        for level in np.unique(data[name]):
            assert (drawn == level).mean() == pytest.approx((data[name] == level).mean(), abs=0.02)
    both = np.mean(
        [
            r == "yes" and s == "wet"
            for r, s in zip(*(table.column(n).to_pylist() for n in ("rain", "street")), strict=True)
        ]
    )
    assert both == pytest.approx(((data["rain"] == "yes") & (data["street"] == "wet")).mean(), abs=0.02)


@pytest.mark.parametrize("kind", SPECS)
def test_every_model_survives_its_file(kind, tmp_path):
    release = release_of(kind)
    model = release.model()
    release.save(tmp_path / "model")
    again = Release.load(tmp_path / "model").model()
    assert again.kind == kind
    assert again.published.statement() == model.published.statement()
    one, two = (each.sample(1000, np.random.default_rng(3)) for each in (model, again))
    assert all((one[name] == two[name]).all() for name in one)


def test_damaged_models_are_refused_in_one_sentence(tmp_path):
    release = release_of("naive-bayes")
    text = release.to_json()
    for broken in ("", "[]", text[:-50], text.replace('"version": 2', '"version": 9', 1)):
        with pytest.raises(ReleaseError, match="Release"):
            Release.from_json(broken)
    with pytest.raises(ReleaseError, match="cannot read"):
        Release.load(tmp_path / "none.json")
    for model in ({"kind": "oracle"}, {"kind": "naive-bayes"}, {"kind": "naive-bayes", "target": 7}, {}, None, []):
        record = json.loads(text)
        record["job"]["model"] = model
        with pytest.raises((ReleaseError, InvalidArgument)):
            Release.from_record(record).model()


def test_types_follow_the_schema(tmp_path):
    schema = Schema(
        id="people",
        unit=REPLACE,
        attributes=(
            Attribute(name="age", edges=(0, 18, 65, float("inf")), missing="category"),
            Attribute(name="height", edges=(0.5, 1.5, 2.5), missing="other"),
            Attribute(name="children", categories=("0", "1", "other"), missing="other"),
            Attribute(name="sex", categories=("F", "M"), unknown="drop", missing="drop"),
        ),
    )
    rng = np.random.default_rng(0)
    data = pa.table(
        {
            "age": pa.array(rng.integers(0, 90, 3000), mask=rng.random(3000) < 0.2),
            "height": rng.uniform(0.6, 2.4, 3000),
            "children": rng.choice(["0", "1", "7"], 3000),
            "sex": rng.choice(["F", "M", "?"], 3000),
        }
    )
    spec = BayesNet(edges=(("age", "height"),), nodes=("children", "sex"))
    model = Curator(data, schema, seed=0).release(spec, CLEAR).model()
    table = synthetic_table(model, 20_000, rng=rng)
    assert table.schema.field("age").type == pa.int64()
    assert table.schema.field("height").type == pa.float64()
    assert table.column("age").null_count / 20_000 == pytest.approx(0.2, abs=0.03)
    ages = np.array([age for age in table.column("age").to_pylist() if age is not None])
    assert ages.min() >= 0
    assert ((ages < 18).mean()) == pytest.approx(18 / 90, abs=0.03)
    assert set(table.column("sex").to_pylist()) == {"F", "M"}
    for path, read in ((tmp_path / "t.parquet", parquet.read_table), (tmp_path / "t.csv", csv.read_csv)):
        write_table(table, path)
        assert read(path).num_rows == 20_000
    with pytest.raises(InvalidArgument, match=r"\.csv or \.parquet"):
        write_table(table, tmp_path / "t.xls")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_records_are_written_whole_under_a_name_of_their_own(name: str, tmp_path, monkeypatch):
    """Nothing that lies beside the file is touched, and the records are on disk before they have their name."""
    table, events = synthetic_table(model_of("histogram"), 10), []
    other = tmp_path / f"{name}.partial"
    other.write_text("somebody else's")
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (sync(handle), events.append(os.fstat(handle).st_ino)))
    monkeypatch.setattr(
        Path, "replace", lambda self, to: (events.append(("named", self.stat().st_ino)), replace(self, to))
    )
    write_table(table, tmp_path / name)
    assert other.read_text() == "somebody else's"
    written = (tmp_path / name).stat().st_ino
    assert events == [written, ("named", written), tmp_path.stat().st_ino]
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, f"{name}.partial"]


def test_no_rows_are_refused():
    with pytest.raises(InvalidArgument, match="rows"):
        synthetic_table(model_of("histogram"), 0)


def test_fidelity_stays_near_the_noise_of_the_release():
    model = model_of("naive-bayes", ApproxDP(epsilon=1.0, delta=1e-6))
    table = synthetic_table(model, 50_000, rng=np.random.default_rng(0))
    columns = columns_of(table)
    report = fidelity(model.published, columns)
    assert set(report["one-way"]) == {"rain", "street", "umbrella", "day"}
    assert "rain,street" in report["two-way"]
    for entry in report["two-way"].values():
        assert entry["distance"] < 2 * entry["noise"] + 0.02
    shuffled = {**columns, "street": np.where(columns["street"] == "wet", "dry", "wet")}
    assert fidelity(model.published, shuffled)["one-way"]["street"]["distance"] > 0.2


def test_fidelity_reads_missing_values_back_as_missing():
    """Texts and numbers, with a tenth of each missing; numbers outside all bins are written as missing too."""
    schema = Schema(
        id="pay",
        unit=Unit(adjacency="replace-one"),
        attributes=(
            Attribute(name="job", categories=("a", "b"), missing="category"),
            Attribute(name="pay", edges=(0, 10, 20), missing="category"),
        ),
    )
    rows = {"job": ["a", "b", "a", "b", None] * 200, "pay": [5, 15, None, 99, 15] * 200}
    model = (
        Curator(rows, schema, seed=0)
        .release(Fit(model=Histogram(attributes=("job", "pay"))), PureDP(epsilon=50))
        .model()
    )
    found = fidelity(model.published, columns_of(synthetic_table(model, 1000, rng=np.random.default_rng(0))))
    assert max(entry["distance"] for kind in ("one-way", "two-way") for entry in found[kind].values()) < 0.01


@pytest.mark.parametrize("rows", [3, 5000])
def test_picks_follow_their_rows(rows):
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(7, 0.3), rows)
    shares[0] = [0, 0, 1, 0, 0, 0, 0]
    given = rng.integers(3, size=200_000)
    drawn = pick(shares, given, rng)
    assert (drawn[given == 0] == 2).all()
    for row in (1, 2):
        found = np.bincount(drawn[given == row], minlength=7) / (given == row).sum()
        assert found == pytest.approx(shares[row], abs=0.01)


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 300])
def test_picks_are_where_a_search_of_each_row_alone_finds_them(width: int) -> None:
    rng = np.random.default_rng(width)
    shares = rng.dirichlet(np.full(width, 0.3), 20) * (rng.random((20, width)) < 0.8)
    shares[:, 0] += 0.01
    rows = rng.integers(20, size=40_000)
    uniform = np.random.default_rng(5).random(len(rows))
    drawn = pick(shares, rows, np.random.default_rng(5))
    for row, law in enumerate(shares):
        ends = np.cumsum(law) / law.sum()
        assert (drawn[rows == row] == np.searchsorted(ends, uniform[rows == row], side="right")).mean() > 0.999
        assert (law[drawn[rows == row]] > 0).all()


@pytest.mark.parametrize("number", [3, 70_000])
def test_even_values_come_out_within_one_of_their_expectation(number: int) -> None:
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(5), number)
    rows = rng.integers(0, 3, 20_000)
    values = pick(shares, rows, rng, even=True)
    for row in range(3):
        found = np.bincount(values[rows == row], minlength=5)
        assert abs(found - shares[row] * (rows == row).sum()).max() < 1.0 + 1e-9


def test_an_even_value_alone_has_the_law_of_its_row() -> None:
    shares = np.array([[0.5, 0.2, 0.3]])
    rows = np.zeros(7, dtype=np.int64)
    first = [pick(shares, rows, np.random.default_rng(seed), even=True)[0] for seed in range(4000)]
    assert stats.chisquare(np.bincount(first), 4000 * shares[0]).pvalue > 1e-4


def test_even_records_are_closer_to_the_model_than_independent_ones() -> None:
    model = model_of("bayes-net")
    tables = {}
    for even in (True, False):
        drawn = model.sample(5000, np.random.default_rng(0), even=even)
        node = model.network.nodes[0]
        tables[even] = np.bincount(drawn[node], minlength=len(model.network.levels[node])) / 5000
    expected = model.network.tables[model.network.nodes[0]][0]
    assert abs(tables[True] - expected).max() < 1 / 5000 < abs(tables[False] - expected).max()
