"""The release path: charge, then count, then draw; nothing leaves that was not paid for."""

import json
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from dpbayes import RDP, Adjacency, ApproxDP, Cost, PrivacyUnit, PureDP
from dpbayes.curator import Curator, Request
from dpbayes.domain.attribute import Attribute
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.prior import Prior
from dpbayes.domain.schema import Schema
from dpbayes.errors import BudgetExceeded, InvalidArgument, SchemaError, TableError
from dpbayes.ledger.ledger import Ledger
from dpbayes.mechanisms.records import from_record
from dpbayes.release import Release
from dpbayes.tables.sources import open_table
from dpbayes.verify import verify

REPLACE = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)
ADD = PrivacyUnit(adjacency=Adjacency.ADD_REMOVE)
TARGET = ApproxDP(epsilon=1, delta=1e-6)


def schema(unit=REPLACE, **more):
    return Schema(
        id="people",
        unit=unit,
        attributes=(
            Attribute(name="sex", categories=("F", "M")),
            Attribute(name="income", categories=("low", "high"), missing="category"),
        ),
        **more,
    )


def people(rows=400):
    rng = np.random.default_rng(4)
    return {"sex": rng.choice(["F", "M"], rows).tolist(), "income": rng.choice(["low", "high", None], rows).tolist()}


def curator(tmp_path, unit=REPLACE, budget=ApproxDP(epsilon=3, delta=1e-6), table=None, **more):  # noqa: B008
    ledger = Ledger(tmp_path / "people.ledger")
    if "people" not in (ledger.datasets() if (tmp_path / "people.ledger").exists() else []):
        ledger.open("people", budget, unit)
    made = Curator(engine=open_table(people() if table is None else table), schema=schema(unit), ledger=ledger, **more)
    return made, ledger


def request(*marginals, mechanism="gaussian", target=TARGET, **more):
    return Request(
        marginals=tuple(Marginal.parse(text) for text in marginals), target=target, mechanism=mechanism, **more
    )


@pytest.mark.parametrize("mechanism", ["dirichlet", "gaussian", "laplace"])
@pytest.mark.parametrize("unit", [REPLACE, ADD])
def test_a_release_costs_what_it_says_and_the_ledger_knows(tmp_path, mechanism, unit):
    made, ledger = curator(tmp_path, unit)
    release = made.release(request("sex", "sex,income", mechanism=mechanism))
    cost = Cost.total([from_record(table.mechanism) for table in release.tables])
    assert -1e-9 <= TARGET.gap(cost) <= 0
    account = ledger.account("people")
    assert account.cost.epsilon(1e-6) == pytest.approx(cost.epsilon(1e-6), abs=1e-9)
    assert release.ledger.receipt["hash"] == account.charges[1].entry.hash
    assert account.charges[1].state == "drawn"
    assert release.records == (400 if unit is REPLACE else None)
    assert Release.from_json(release.to_json()) == release


@pytest.mark.parametrize("mechanism", ["dirichlet", "gaussian", "laplace"])
def test_a_public_prior_guides_estimates_is_published_and_verifies(tmp_path, mechanism):
    made, ledger = curator(tmp_path)
    sizes = {name: len(Marginal.parse(name).axes(schema())[0].levels) for name in ("sex", "income")}
    steps = tuple(float(2**k) for k in range(sizes["income"] * sizes["sex"]))
    asked = request(
        "sex,income",
        "income|sex",
        mechanism=mechanism,
        priors=(Prior(of=("income", "sex"), shares=steps), Prior(of=("income",), shares=steps[: sizes["income"]])),
        target=ApproxDP(epsilon=0.001, delta=1e-6),  # so much noise that no guess can be outvoted
    )
    release = made.release(asked)
    joint, conditional = (np.array(table.prior) for table in release.tables)
    by_income = np.array(steps).reshape(sizes["income"], sizes["sex"])
    assert joint == pytest.approx(by_income.T.ravel() / by_income.sum())
    assert conditional == pytest.approx(np.array(steps[: sizes["income"]]) / sum(steps[: sizes["income"]]))
    assert verify(Release.from_json(release.to_json()), ledger=ledger).ok
    without = [table.model_copy(update={"prior": None}) for table in release.tables]
    assert not verify(release.model_copy(update={"tables": without})).ok


@pytest.mark.parametrize("mechanism", ["dirichlet", "gaussian", "laplace"])
def test_estimates_are_near_the_truth_at_a_generous_budget(tmp_path, mechanism):
    made, _ = curator(tmp_path, budget=ApproxDP(epsilon=50, delta=1e-6))
    release = made.release(request("sex,income", mechanism=mechanism, target=ApproxDP(epsilon=20, delta=1e-6)))
    table = release.tables[0]
    truth = open_table(people()).count(schema(), [Marginal.parse("sex,income")])[0].array / 400
    assert np.abs(table.array("empirical") - truth).max() < 0.02
    assert table.array("empirical").sum() == pytest.approx(1, abs=1e-6)
    assert (table.array("empirical", "lower") <= table.array("empirical") + 1e-9).all()


def test_rows_of_a_conditional_release_are_distributions_with_their_group_sizes(tmp_path):
    made, _ = curator(tmp_path)
    table = made.release(request("income|sex", mechanism="dirichlet")).tables[0]
    assert table.array("population").sum(axis=1) == pytest.approx(np.ones(3), abs=1e-6)
    assert table.array("draw").sum(axis=1) == pytest.approx(np.ones(3), abs=1e-9)
    assert [group.levels for group in table.groups] == [["F"], ["M"], ["other"]]
    assert table.groups[2].prior_share > table.groups[0].prior_share


def test_gammas_leave_only_on_the_public_grid(tmp_path):
    made, _ = curator(tmp_path)
    table = made.release(request("sex", mechanism="dirichlet", purpose="draw")).tables[0]
    steps = np.asarray(table.values) / table.grid
    assert (steps == np.rint(steps)).all()
    assert (steps >= 1).all()


def test_pseudo_records_are_whole_and_as_many_as_asked(tmp_path):
    made, _ = curator(tmp_path)
    table = made.release(request("sex,income", mechanism="dirichlet", purpose="draw", pseudo_records=57)).tables[0]
    assert sum(table.values) == 57
    assert all(isinstance(value, int) for value in table.values)


def test_overspending_is_refused_before_the_table_is_read(tmp_path):
    made, ledger = curator(tmp_path, budget=ApproxDP(epsilon=0.5, delta=1e-6))
    made._engine = _Untouchable(made._engine)
    with pytest.raises(BudgetExceeded) as refusal:
        made.release(request("sex"))
    assert refusal.value.asked == pytest.approx(1, abs=1e-6)
    assert refusal.value.limit == 0.5
    assert 0 < refusal.value.fits <= 0.5
    assert ledger.account("people").charges == {}


class _Untouchable:
    """An engine that must not be counted."""

    def __init__(self, engine):
        self.columns = engine.columns

    def count(self, schema, marginals):
        raise AssertionError("the table was read")


class _Failing(_Untouchable):
    def count(self, schema, marginals):
        raise TableError("Table: it went away.")


def test_a_failed_count_voids_its_charge(tmp_path):
    made, ledger = curator(tmp_path)
    made._engine = _Failing(made._engine)
    with pytest.raises(TableError):
        made.release(request("sex"))
    account = ledger.account("people")
    assert account.charges[1].state == "void"
    assert account.cost.releases == 0


@pytest.mark.parametrize(
    ("bad", "error"),
    [(["sexx"], SchemaError), (["sex|sex"], SchemaError), (["sex", "sex"], InvalidArgument), ([], InvalidArgument)],
)
def test_refused_requests_charge_nothing(tmp_path, bad, error):
    made, ledger = curator(tmp_path)
    with pytest.raises(error):
        made.release(request(*bad))
    assert ledger.account("people").charges == {}


def test_a_seeded_release_is_stamped_repeatable_and_never_charged(tmp_path):
    made, ledger = curator(tmp_path, seed=7)
    first, second = made.release(request("sex")), made.release(request("sex"))
    assert first.seeded
    assert "no privacy" in first.statement()
    assert first.tables == second.tables
    assert first.ledger is None
    assert ledger.account("people").charges == {}


def test_auto_chooses_without_data_and_says_why(tmp_path):
    made, _ = curator(tmp_path)
    proposal = made.propose(request("sex,income", mechanism="auto"))
    assert "no data was read" in proposal.choice
    assert made.propose(request("sex,income", mechanism="auto")).mechanism == proposal.mechanism
    pure = made.propose(request("sex", mechanism="auto", target=PureDP(epsilon=1)))
    assert pure.mechanism.record()["mechanism"] == "laplace-1"


def test_a_changed_table_is_noticed(tmp_path):
    made, ledger = curator(tmp_path)
    marginals = [Marginal.parse("sex")]
    assert made.remember(marginals) is False
    assert made.remember(marginals) is False
    other = Curator(engine=open_table(people(401)), schema=schema(), ledger=ledger)
    assert other.remember(marginals) is True


def test_an_empty_table_is_released_like_any_other(tmp_path):
    empty = pa.table({"sex": pa.array([], pa.string()), "income": pa.array([], pa.string())})
    made, _ = curator(tmp_path, table=empty, unit=ADD)
    release = made.release(request("sex"))
    assert len(release.tables[0].values) == 3


@pytest.mark.parametrize(
    ("step", "charged"),
    [("calibrating", 0), ("charging the ledger", 0), ("counting", 1), ("drawing", 1), ("estimating", 1), ("never", 1)],
)
def test_a_kill_at_any_step_never_leaves_a_draw_without_a_charge(tmp_path, step, charged):
    ledger = Ledger(tmp_path / "people.ledger")
    ledger.open("people", ApproxDP(epsilon=3, delta=1e-6), REPLACE)
    code = f"""
import os, signal
from dpbayes import ApproxDP, PrivacyUnit
from dpbayes.curator import Curator, Request
from dpbayes.domain.attribute import Attribute
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.ledger.ledger import Ledger
from dpbayes.tables.sources import open_table
def progress(name):
    if name == {step!r}:
        os.kill(os.getpid(), signal.SIGKILL)
schema = Schema(id="people", unit=PrivacyUnit(adjacency="replace-one"),
                attributes=(Attribute(name="sex", categories=("F", "M")),))
curator = Curator(engine=open_table({{"sex": ["F", "M", "F"]}}), schema=schema,
                  ledger=Ledger({str(tmp_path / "people.ledger")!r}), progress=progress)
made = curator.release(Request(marginals=(Marginal.parse("sex"),), target=ApproxDP(epsilon=1, delta=1e-6),
                               mechanism="gaussian"))
print(made.to_json())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == (0 if step == "never" else -signal.SIGKILL), done.stderr
    account = ledger.account("people")
    assert len(account.charges) == charged
    if done.stdout:
        assert json.loads(done.stdout)["ledger"]["receipt"]["hash"] == account.charges[1].entry.hash
    if charged and step in ("counting", "drawing"):
        assert account.charges[1].state == "charged"  # may have been drawn: it counts for ever
        assert account.cost.releases == 1


def test_an_rdp_target_is_met_at_its_order(tmp_path):
    made, _ = curator(tmp_path, budget=RDP(order=5, epsilon=2))
    target = RDP(order=5, epsilon=0.5)
    release = made.release(request("sex", mechanism="dirichlet", target=target))
    assert -1e-9 <= target.gap(Cost.of(from_record(release.tables[0].mechanism))) <= 0
