"""Wide distributions from a table, its schema and its ledger; in Python and on the command line."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.commands import dpbayes

from dpbayes import ApproxDP, Curator, Ledger, Schema, Tables, Unit, finish
from dpbayes.base.codec import digest
from dpbayes.base.errors import (
    BudgetExceeded,
    InvalidArgument,
    ReleaseError,
    SchemaError,
    TableError,
    TargetUnreachable,
    Unfinished,
)
from dpbayes.jobs import Wide, WideDistribution
from dpbayes.jobs.base import plan_from_record
from dpbayes.ledger.kept import Slot
from dpbayes.schema import Marginal
from dpbayes.tables import open_table
from dpbayes.tables.engine import CodedTable

UNIT = Unit(adjacency="replace-one")
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
    attributes = "\n".join(
        f'[[attribute]]\nname = "{name}"\ncategories = {list("012345678")}\nmissing = "other"' for name in NAMES
    )
    return Schema.from_toml(f'id = "wide"\nadjacency = "replace-one"\nrecords = 4000\n{attributes}'.replace("'", '"'))


@pytest.fixture(scope="module")
def wide(table: pa.Table, schema: Schema, tmp_path_factory: pytest.TempPathFactory) -> WideDistribution:
    """Seeded, not private."""
    return opened(Curator(table, schema, seed=1), tmp_path_factory.mktemp("wide"))


def opened(curator: Curator, folder: Path, **options: object) -> WideDistribution:
    job = Wide(marginal=MARGINAL, state=str(folder / "state.wide"), **options)  # type: ignore[arg-type]
    curator.release(job, TARGET)
    return WideDistribution.load(folder / "state.wide")


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


def test_a_concentration_that_doubles_cannot_carry_is_refused_before_the_charge(
    table, schema, ledger, tmp_path, monkeypatch
):
    monkeypatch.setattr("dpbayes.jobs.wide.LEAST_CONCENTRATION", 1e9)  # a guarantee so loose takes minutes to calibrate
    with pytest.raises(TargetUnreachable, match="doubles"):
        opened(Curator(table, schema, ledger=ledger), tmp_path)
    assert not ledger.account("wide").charges


def test_a_trillion_cells_cost_what_was_asked_and_answers_are_free(table, schema, ledger, tmp_path):
    wide = opened(Curator(table, schema, ledger=ledger), tmp_path)
    assert wide.counts.size == 10**12
    spent = ledger.account("wide").cost.epsilon(1e-6)
    assert 0.9 < spent <= 1
    first = wide.table(["a0", "a1"])
    assert first.sum() == pytest.approx(1)
    assert wide.table([], {"a0": "3"}) == pytest.approx(first.sum(axis=1)[3])
    assert wide.table([], dict.fromkeys(NAMES, "3")) > 0
    for answer in (wide.answer(["a0", "a1"]), wide.answer([], {"a0": "3"}), wide.answer(["a1"], {"a0": "3"})):
        assert answer.verify(ledger=ledger).ok
        assert "state" not in answer.job
    assert ledger.account("wide").cost.epsilon(1e-6) == spent
    with pytest.raises(BudgetExceeded):
        Curator(table, schema, ledger=ledger).release(Wide(marginal=MARGINAL, state=str(tmp_path / "other")), TARGET)
    assert not (tmp_path / "other").exists()


def interrupted(table, schema, ledger, state, owner, name, *, after=False):
    """Open a wide distribution and stop at a step, before or after it is taken."""
    real = getattr(owner, name)

    def stop(*arguments, **named):
        if after:
            real(*arguments, **named)
        raise MemoryError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, stop)
        with pytest.raises(MemoryError):
            Curator(table, schema, ledger=ledger).release(Wide(marginal=MARGINAL, state=str(state)), TARGET)


STEPS = [
    (Slot, "keep", False),
    (Slot, "keep", True),
    (Ledger, "confirm", False),
    (Ledger, "confirm", True),
    (Wide, "store", False),
    (Wide, "store", True),
    (Slot, "done", False),
]


@pytest.mark.parametrize(("owner", "name", "after"), STEPS)
def test_no_second_draw_is_made_under_one_charge_wherever_the_first_was_interrupted(
    owner, name, after, table, schema, ledger, tmp_path
):
    """The state is there only when the draw is kept; whoever asks it, moves it away and finishes, gets the same."""
    state = tmp_path / "state.wide"
    interrupted(table, schema, ledger, state, owner, name, after=after)
    kept = bool(list((tmp_path / "wide.ledger.draws").glob("*.draw.json")))
    assert kept or not state.exists()
    keys = set()
    for number in range(2):
        if state.exists():
            found = WideDistribution.load(state)
            keys.add((found.key, tuple(found.table(["a0"]).tolist())))
            state.rename(tmp_path / f"moved{number}.wide")
        finish(ledger, table=table)
    if state.exists():
        found = WideDistribution.load(state)
        keys.add((found.key, tuple(found.table(["a0"]).tolist())))
    assert len(keys) == 1
    assert [charge.state for charge in ledger.account("wide").charges.values()] == ["drawn"]
    assert not list((tmp_path / "wide.ledger.draws").glob("*.private"))
    last = state if state.exists() else tmp_path / "moved1.wide" if (tmp_path / "moved1.wide").exists() else None
    answer = WideDistribution.load(last or tmp_path / "moved0.wide").answer(["a0"])
    assert answer.verify(ledger=ledger).ok, answer.verify(ledger=ledger)


def test_a_state_that_0_2_0_left_before_its_draw_was_kept_is_the_draw(table, schema, ledger, tmp_path):
    """Answers may have come out of it."""
    state = tmp_path / "state.wide"
    interrupted(table, schema, ledger, state, Slot, "keep")
    with ledger.kept.unfinished() as (slot,):
        plan = replace(plan_from_record(slot.draft["plan"]), lock=digest(slot.key))
    left = WideDistribution(plan=plan, counts=open_table(table).occupied(schema, MARGINAL), key=b"k" * 32)
    left.save(state)
    finish(ledger, table=table)
    assert WideDistribution.load(state).key == b"k" * 32
    assert WideDistribution.load(state).answer(["a0"]).verify(ledger=ledger).ok


def test_answers_by_another_key_do_not_pass_for_those_of_the_charge(table, schema, ledger, tmp_path):
    """What the ledger notes fixes the key; neither a new key nor an answer that says nothing of it is verified."""
    wide = opened(Curator(table, schema, ledger=ledger), tmp_path)
    assert wide.answer(["a0"]).verify(ledger=ledger).ok
    other = replace(wide, key=b"k" * 32)
    said = wide.opened | {"key": other.commitment.values[0]}
    for each in (replace(other, opened=said), replace(other, opened={}), replace(wide, opened={})):
        (failed,) = [check for check in each.answer(["a0"]).verify(ledger=ledger).checks if not check.passed]
        assert failed.name == "ledger"
        assert "something else was drawn" in failed.detail


def test_no_release_escapes_its_note_by_calling_itself_wide(table, schema, ledger):
    made = Curator(table, schema, ledger=ledger).release(Tables("a0"), ApproxDP(epsilon=0.1, delta=1e-6))
    assert made.verify(ledger=ledger).ok
    moved = replace(made.tables[0], values=made.tables[0].values + 1.0, products={})
    for opened_ in (None, {"key": "0" * 64}):
        job = {**made.job, "kind": "wide"} | ({} if opened_ is None else {"opened": opened_})
        forged = replace(made, job=job, tables=(moved,), seal="")
        assert not {check.name: check.passed for check in forged.verify(ledger=ledger).checks}["ledger"]


def test_a_state_of_another_charge_is_left_alone(table, schema, ledger, tmp_path, monkeypatch):
    state = tmp_path / "state.wide"
    monkeypatch.setattr(Slot, "reading", lambda _: state.write_bytes(b"somebody else's"))
    with pytest.raises(Unfinished, match="is not a wide distribution"):
        Curator(table, schema, ledger=ledger).release(Wide(marginal=MARGINAL, state=str(state)), TARGET)
    assert state.read_bytes() == b"somebody else's"


def test_the_first_tables_are_close_to_the_truth(wide, table, schema):
    truth = open_table(table).count(schema, [Marginal("a0")])[0].array / 4000
    assert abs(wide.table(["a0"]) - truth).sum() < 0.4  # one draw of a seed


def test_the_law_of_cells_costs_one_release_and_drowns_in_its_concentration(table, schema, tmp_path):
    wide = opened(Curator(table, schema, seed=1), tmp_path, law="cells")
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


def test_what_cannot_be_counted_is_not_charged(table, schema, ledger, tmp_path):
    job = Wide(marginal=MARGINAL, state=str(tmp_path / "state.wide"))
    with pytest.raises(TableError, match="no column 'a11'"):
        Curator(table.drop(["a11"]), schema, ledger=ledger).release(job, TARGET)
    codes = CodedTable({name: np.zeros(4000, dtype=np.int64) for name in NAMES})
    with pytest.raises(TableError, match="cannot list"):
        Curator(codes, schema, ledger=ledger).release(job, TARGET)
    with pytest.raises(InvalidArgument, match="joint"):
        Wide(marginal=Marginal(("a1",), ("a0",)), state="x")
    (tmp_path / "taken").write_text("mine")
    for bad, said in ((tmp_path / "taken", "exists already"), (tmp_path / "no" / "folder", "no folder")):
        with pytest.raises(InvalidArgument, match=said):
            Curator(table, schema, ledger=ledger).release(Wide(marginal=MARGINAL, state=str(bad)), TARGET)
    assert len(ledger.account("wide").entries) == 1  # the opening
    assert (tmp_path / "taken").read_text() == "mine"


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
    with pytest.raises((InvalidArgument, SchemaError), match=sentence):
        wide.table(names, where)


def test_the_command_line_opens_once_and_answers_the_same_twice(table, schema, ledger, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parquet.write_table(table, "wide.parquet")
    Path("wide.toml").write_text(schema.to_toml())
    opening = ("release", "wide.parquet", "a0,a1,a2", "--as", "wide", "--epsilon", 0.5, "--delta", 1e-6)
    made = dpbayes(*opening)
    assert made.code == 0, made.err
    assert "1,000 cells" in made.out
    assert "exists already" in dpbayes(*opening).sentence
    first, second = (dpbayes("ask", "wide.wide", "a1|a0='3'", "--json").result for _ in range(2))
    assert first["answers"] == second["answers"]
    (answer,) = first["answers"]
    assert len(answer["values"]) == 10
    assert dpbayes("ask", "wide.wide", "a0", "--out", "asked").code == 0
    assert dpbayes("verify", "asked", "--ledger", "wide.ledger").code == 0
    assert "expected one table" in dpbayes("ask", "wide.wide").sentence
    assert "joint table" in dpbayes("ask", "wide.wide", "a1|a0").sentence
    assert "no level" in dpbayes("ask", "wide.wide", "a1|a0='99'").sentence
    assert "%" in dpbayes("ask", "wide.wide", "a0").out


def test_a_file_whose_text_is_no_unicode_is_damaged(tmp_path):
    path = tmp_path / "state.wide"
    with path.open("wb") as file:
        letters = np.array(["{", '"', "x", '"', ":", "1", "}"]).view("<u4")
        letters[2] = 0x110000
        np.savez(file, about=letters.view("<U7").reshape(()), cells=[0], counts=[1])
    with pytest.raises(ReleaseError, match="damaged"):
        WideDistribution.load(path)
