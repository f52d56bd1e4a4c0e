"""Wide distributions from a table, its schema and its ledger; in Python and on the command line."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.commands import dpbayes

from dpbayes import ApproxDP, Ledger, Marginal, PrivacyUnit, Schema, open_table
from dpbayes.errors import BudgetExceeded, InvalidArgument, ReleaseError, TableError
from dpbayes.tables.coded import CodedTable
from dpbayes.wide import WideDistribution, open_wide

UNIT = PrivacyUnit(adjacency="replace-one")
NAMES = [f"a{number}" for number in range(12)]
MARGINAL = Marginal(tuple(NAMES))
TARGET = ApproxDP(epsilon=1, delta=1e-6)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    rows = rng.binomial(8, 0.4, (4000, 12)).astype(str)
    rows[0] = "unheard of"
    return pa.table(dict(zip(NAMES, rows.T, strict=True)))


@pytest.fixture(scope="module")
def schema() -> Schema:
    attributes = "\n".join(f'[[attribute]]\nname = "{name}"\ncategories = {list("012345678")}' for name in NAMES)
    return Schema.from_toml(f'id = "wide"\nadjacency = "replace-one"\nrecords = 4000\n{attributes}'.replace("'", '"'))


@pytest.fixture(scope="module")
def wide(table: pa.Table, schema: Schema) -> WideDistribution:
    """Seeded, not private."""
    sources = {"engine": open_table(table), "schema": schema, "marginal": MARGINAL, "target": TARGET}
    return open_wide(**sources, ledger=None, seed=1)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "wide.ledger")
    made.open("wide", TARGET, UNIT)
    return made


def test_occupied_cells_are_those_of_the_small_tables(table, schema):
    engine = open_table(table)
    sparse = engine.occupied(schema, Marginal(("a3", "a1")))
    (dense,) = engine.count(schema, [Marginal(("a3", "a1"))])
    found = np.zeros(dense.array.size, dtype=np.int64)
    found[sparse.cells] = sparse.counts
    assert found.tolist() == dense.array.ravel().tolist()


def test_a_trillion_cells_cost_what_was_asked_and_answers_are_free(table, schema, ledger):
    wide = open_wide(engine=open_table(table), schema=schema, marginal=MARGINAL, target=TARGET, ledger=ledger)
    assert wide.counts.size == 10**12
    spent = ledger.account("wide").cost.epsilon(1e-6)
    assert 0.99 < spent <= 1
    first = wide.table(["a0", "a1"])
    assert first.sum() == pytest.approx(1)
    assert wide.share({"a0": "3"}) == pytest.approx(first.sum(axis=1)[3])
    assert wide.share(dict.fromkeys(NAMES, "3")) > 0
    assert ledger.account("wide").cost.epsilon(1e-6) == spent
    with pytest.raises(BudgetExceeded):
        open_wide(engine=open_table(table), schema=schema, marginal=MARGINAL, target=TARGET, ledger=ledger)


def test_the_first_tables_are_close_to_the_truth(wide, table, schema):
    truth = open_table(table).count(schema, [Marginal("a0")])[0].array / 4000
    assert abs(wide.table(["a0"]) - truth).sum() < 0.25


def test_the_law_of_cells_costs_one_release_and_drowns_in_its_concentration(table, schema):
    sources = {"engine": open_table(table), "schema": schema, "marginal": MARGINAL, "target": TARGET, "ledger": None}
    wide = open_wide(**sources, law="cells", seed=1)
    assert wide.table(["a0"]) == pytest.approx(0.1, abs=1e-4)
    assert wide.lazy().cost.epsilon(1e-6) <= 1


def test_a_wide_distribution_is_kept_in_a_file_of_its_own(wide, tmp_path):
    path = tmp_path / "kept.wide"
    wide.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = WideDistribution.load(path)
    assert again.table(["a1"]).tolist() == wide.table(["a1"]).tolist()
    assert again.seeded
    assert repr(again) == repr(wide)
    with pytest.raises(ReleaseError, match="exists already"):
        wide.save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ReleaseError, match="damaged"):
        WideDistribution.load(path)
    with pytest.raises(ReleaseError, match="cannot be read"):
        WideDistribution.load(tmp_path / "nowhere")


def test_a_disk_that_fills_up_leaves_no_counts_behind(wide, tmp_path, monkeypatch):
    def full(*_args, **_arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(ReleaseError, match="No space left"):
        wide.save(tmp_path / "kept.wide")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seed", [-1, 2**256, 1.5])
def test_a_seed_that_is_no_key_is_refused_before_anything_is_read(seed, table, schema):
    with pytest.raises(InvalidArgument, match="whole number"):
        open_wide(engine=open_table(table), schema=schema, marginal=MARGINAL, target=TARGET, ledger=None, seed=seed)


def test_what_cannot_be_counted_is_not_charged(table, schema, ledger):
    with pytest.raises(TableError, match="no column 'a11'"):
        open_wide(
            engine=open_table(table.drop(["a11"])), schema=schema, marginal=MARGINAL, target=TARGET, ledger=ledger
        )
    codes = CodedTable({name: np.zeros(4000, dtype=np.int64) for name in NAMES})
    with pytest.raises(TableError, match="cannot list"):
        open_wide(engine=codes, schema=schema, marginal=MARGINAL, target=TARGET, ledger=ledger)
    asked = Marginal(("a1",), ("a0",))
    with pytest.raises(InvalidArgument, match="joint"):
        open_wide(engine=open_table(table), schema=schema, marginal=asked, target=TARGET, ledger=ledger)
    assert len(ledger.account("wide").entries) == 1  # the opening


@pytest.mark.parametrize(
    ("names", "where", "sentence"),
    [
        (["b"], {}, "no attribute 'b'"),
        ([], {"a0": "unheard of"}, "no level 'unheard of'"),
        (["a0", "a0"], {}, "different axes"),
        (["a9"], {}, "places of the tree"),
    ],
)
def test_questions_outside_the_domain_are_refused(wide, names, where, sentence):
    with pytest.raises(InvalidArgument, match=sentence):
        wide.table(names, where)


def test_the_command_line_opens_once_and_answers_the_same_twice(table, schema, ledger, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parquet.write_table(table, "wide.parquet")
    Path("wide.toml").write_text(schema.to_toml())
    opening = ("wide", "open", "wide.parquet", "--schema", "wide.toml", "--marginal", "a0,a1,a2", "--ledger")
    asked = ("wide.ledger", "--epsilon", 0.5, "--delta", 1e-6, "--state", "kept.wide")
    made = dpbayes(*opening, *asked)
    assert made.code == 0, made.err
    assert "1,000 cells" in made.out
    assert "exists already" in dpbayes(*opening, *asked).sentence
    first = dpbayes("wide", "ask", "kept.wide", "--marginal", "a1", "--where", "a0=3", "--json")
    assert first.out == dpbayes("wide", "ask", "kept.wide", "--marginal", "a1", "--where", "a0=3", "--json").out
    answer = json.loads(first.out)
    assert len(answer["shares"]) == len(answer["levels"][0]) == 10
    whole = json.loads(dpbayes("wide", "ask", "kept.wide", "--where", "a0=3", "--json").out)
    assert whole["shares"] == pytest.approx(sum(answer["shares"]))
    assert "expected --marginal" in dpbayes("wide", "ask", "kept.wide").sentence
    assert "name=level" in dpbayes("wide", "ask", "kept.wide", "--where", "a0").sentence
    assert "no level" in dpbayes("wide", "ask", "kept.wide", "--where", "a0=99").sentence
    assert "share" in dpbayes("wide", "ask", "kept.wide", "--marginal", "a0").out
