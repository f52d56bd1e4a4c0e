"""``dpbayes ledger``, as a person and as a program use it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.commands import dpbayes
from typer.testing import CliRunner

from dpbayes import Adjacency, Cost, Gaussian, Laplace, PrivacyUnit, Schema
from dpbayes.base.errors import InvalidArgument, LedgerError, ReleaseError, UnitMismatch
from dpbayes.cli.main import application
from dpbayes.hellinger.calibration import with_certificate
from dpbayes.hellinger.certificate import Certificate
from dpbayes.ledger.ledger import Ledger

UNIT = PrivacyUnit(adjacency=Adjacency.ADD_REMOVE)

app = application("ledger")


def run(*arguments: object) -> str:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["ledger", *map(str, arguments)])
    if done.exception is not None:
        raise done.exception
    return done.output


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "census.ledger"
    run("init", path, "--dataset", "census", "--epsilon", 1, "--adjacency", "add-remove")
    return path


@pytest.mark.parametrize(
    ("options", "budget"),
    [
        (["--epsilon", 1], {"notion": "pure-dp", "epsilon": 1.0}),
        (
            ["--epsilon", 1, "--delta", 1e-6],
            {"notion": "adaptive-dp", "epsilon": 1.0, "delta": 1e-6, "rule": "gaussian", "slack": 5e-8},
        ),
        (["--epsilon", 1, "--order", 5], {"notion": "rdp", "order": 5.0, "epsilon": 1.0}),
        (["--rho", 0.5], {"notion": "zcdp", "rho": 0.5}),
        (["--rho", 0.5, "--omega", 30], {"notion": "tcdp", "rho": 0.5, "omega": 30.0}),
    ],
)
def test_init_takes_a_budget_in_any_notion(options: list[object], budget: dict[str, object], tmp_path: Path) -> None:
    unit = ["--adjacency", "replace-one", "--max-rows", 2]
    [shown] = json.loads(run("init", tmp_path / "new", "--dataset", "census", *options, *unit, "--json"))
    assert shown["budget"] == budget
    assert shown["unit"] == {"adjacency": "replace-one", "max_rows": 2}
    assert (shown["spent"], shown["left"]) == (0.0, shown["limit"])


def test_init_needs_one_notion_and_an_adjacency(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="expected epsilon alone"):
        run("init", tmp_path / "new", "--dataset", "census", "--rho", 1, "--epsilon", 1, "--adjacency", "add-remove")
    with pytest.raises(InvalidArgument, match="--adjacency"):
        run("init", tmp_path / "new", "--dataset", "census", "--epsilon", 1)
    assert not (tmp_path / "new").exists()


def test_show_tells_what_is_spent_and_what_became_of_each_charge(path: Path) -> None:
    ledger = Ledger(path)
    ledger.confirm(ledger.charge("census", Cost.of(Laplace(scale=4.0, unit=UNIT), 2), about="[/b] sex, income"))
    ledger.charge("census", Cost.of(Laplace(scale=8.0, unit=UNIT)))
    [shown] = json.loads(run("show", path, "--json"))
    assert (shown["limit"], shown["spent"], shown["left"], shown["releases"]) == (1.0, 0.625, 0.375, 3)
    assert shown["spent_also"]["epsilon"] < 0.625 == shown["spent_also"]["epsilon_pure"]
    assert [charge["state"] for charge in shown["charges"]] == ["drawn", "charged"]
    assert [charge["releases"][0]["times"] for charge in shown["charges"]] == [2, 1]
    for_people = run("show", path)
    assert "[/b] sex, income" in for_people
    assert "0.375" in for_people


def test_show_prints_the_last_entries_unless_more_are_asked_for(path: Path) -> None:
    ledger = Ledger(path)
    for _ in range(60):
        ledger.charge("census", Cost.of(Laplace(scale=1000.0, unit=UNIT)))

    def serials(*options: object) -> list[int]:
        [shown] = json.loads(run("show", path, "--json", *options))
        assert shown["releases"] == 60
        assert shown["charges"][-1]["total"] == pytest.approx(0.06)  # earlier ones count, shown or not
        return [charge["serial"] for charge in shown["charges"]]

    assert serials() == list(range(11, 61))
    assert serials("--all") == list(range(1, 61))
    assert serials("--since", 58) == [58, 59, 60]
    assert serials("--since", "2020-01-01") == list(range(1, 61))
    assert "11 earlier entries not shown" in " ".join(run("show", path).split())
    assert "not shown" not in run("show", path, "--all")
    [shown] = json.loads(run("show", path, "--json", "--since", "2999-12-31"))
    assert shown["charges"] == []
    with pytest.raises(InvalidArgument, match="--since"):
        run("show", path, "--since", "yesterday")


def test_budget_changes_the_limit(path: Path) -> None:
    [shown] = json.loads(
        run("budget", path, "--dataset", "census", "--epsilon", 2, "--about", "board, 3 May", "--json")
    )
    assert (shown["limit"], shown["entries"]) == (2.0, 2)


def test_verify_names_the_broken_entry_and_misses_a_lost_release(path: Path) -> None:
    receipt = Ledger(path).charge("census", Cost.of(Laplace(scale=4.0, unit=UNIT)))
    [shown] = json.loads(run("verify", path, "--holds", receipt.hash, "--json"))
    assert shown["head"] == receipt.hash
    with pytest.raises(LedgerError, match="older copy"):
        run("verify", path, "--holds", "0" * 64)
    path.write_bytes(path.read_bytes().replace(b'"times":1', b'"times":2'))
    with pytest.raises(LedgerError, match="entry 1 of data set 'census'"):
        run("verify", path)


def test_an_export_can_be_verified_by_whoever_has_only_that(path: Path, tmp_path: Path) -> None:
    Ledger(path).charge("census", Cost.of(Laplace(scale=4.0, unit=UNIT)))
    run("init", path, "--dataset", "survey", "--rho", 1, "--adjacency", "replace-one")
    out = tmp_path / "public.jsonl"
    assert run("export", path, "--out", out) == ""
    assert run("export", path) == out.read_text()
    assert json.loads(run("verify", out, "--exported", "--json")) == json.loads(run("verify", path, "--json"))
    only = json.loads(run("verify", out, "--exported", "--dataset", "survey", "--json"))
    assert [shown["dataset"] for shown in only] == ["survey"]
    out.write_text(out.read_text()[:-90])
    with pytest.raises(LedgerError):
        run("verify", out, "--exported")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"{}\n", b"[1]\n"])
def test_what_is_no_export_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "public.jsonl").write_bytes(content)
    with pytest.raises(LedgerError):
        run("verify", tmp_path / "public.jsonl", "--exported")


def test_an_export_that_cannot_be_written_is_told(path: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be written"):
        run("export", path, "--out", tmp_path / "absent" / "public.jsonl")
    with pytest.raises(LedgerError, match="cannot be read"):
        run("verify", tmp_path / "absent.jsonl", "--exported")
    with pytest.raises(LedgerError, match="no data set"):
        run("export", path, "--dataset", "sensus")


def test_verify_derives_certificates_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may write a whole chain by hand, with digests that fit."""
    unit = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)
    claim = Certificate(
        epsilon=0.01, delta=0.0, epsilon_at_delta=0.01, table=(0, 9), neighbour=(1, 8), candidate=(0, 9)
    )
    forged = with_certificate((1.0, 1.0), 9, 50.0, 0.1, unit, claim)
    path = tmp_path / "forged.ledger"
    run("init", path, "--dataset", "census", "--epsilon", 1, "--adjacency", "replace-one")
    with monkeypatch.context() as patched:
        patched.setattr("dpbayes.ledger.ledger.confirm", lambda _: None)
        Ledger(path).charge("census", Cost.of(forged))
    assert "0.01" in run("show", path)
    with pytest.raises(ReleaseError, match="enumeration"):
        run("verify", path)


SCHEMA = """id = "survey"
adjacency = "replace-one"
[[attribute]]
name = "sex"
categories = ["F", "M"]
"""


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    """A schema, its ledger, and a table."""
    (tmp_path / "survey.toml").write_text(SCHEMA)
    (tmp_path / "survey.csv").write_text("sex\nF\nM\nF\n")
    run("init", tmp_path / "survey.ledger", "--schema", tmp_path / "survey.toml", "--epsilon", 2, "--delta", 1e-6)
    return tmp_path


def test_init_takes_everything_from_the_schema(survey: Path) -> None:
    [shown] = json.loads(run("show", survey / "survey.ledger", "--json"))
    assert (shown["dataset"], shown["unit"]) == ("survey", {"adjacency": "replace-one", "max_rows": 1})
    assert shown["schemas"] == [Schema.from_toml(SCHEMA).digest]
    with pytest.raises(InvalidArgument, match="--schema, or --dataset"):
        run("init", survey / "x", "--schema", survey / "survey.toml", "--dataset", "survey", "--epsilon", 1)


def test_accept_keeps_another_schema_and_refuses_another_unit(survey: Path) -> None:
    (survey / "survey.toml").write_text(SCHEMA.replace('"M"]', '"M", "X"]'))
    accept = ["accept", survey / "survey.ledger", "--schema", survey / "survey.toml", "--about", "X was bought"]
    [shown] = json.loads(run(*accept, "--json"))
    assert len(shown["schemas"]) == 2
    (survey / "survey.toml").write_text(SCHEMA.replace("[[", 'person = "id"\n[[', 1))
    with pytest.raises(UnitMismatch, match="'id'"):
        run(*accept)


def test_show_says_for_each_charge_its_own_price_and_the_total_and_what_fits(survey: Path) -> None:
    ledger = Ledger(survey / "survey.ledger")
    unit = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)
    for _ in range(3):
        ledger.charge("survey", Cost.of(Gaussian(sigma=10.0, unit=unit)))
    [shown] = json.loads(run("show", survey / "survey.ledger", "--json"))
    own, total = ([charge[key] for charge in shown["charges"]] for key in ("own", "total"))
    assert own[0] == own[1] == own[2] == pytest.approx(total[0])
    assert total[0] < total[1] < total[2] == pytest.approx(shown["spent"])
    words = " ".join(run("show", survey / "survey.ledger").split())
    assert f"One more release of up to ε={math.floor(shown['left'] * 1000) / 1000:g} at δ=1e-06 fits;" in words
    assert "Had all charges been planned together" in words


def test_a_series_is_charged_from_a_file(survey: Path) -> None:
    unit = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)
    (survey / "series.json").write_text(json.dumps([{**Laplace(scale=80.0, unit=unit).record(), "times": 12}]))
    given = ["--dataset", "survey", "--from", survey / "series.json", "--about", "monthly tables"]
    receipt = json.loads(run("charge", survey / "survey.ledger", *given))
    charge = Ledger(survey / "survey.ledger").account("survey").charges[receipt["serial"]]
    assert (charge.entry.hash, charge.cost.releases, charge.state) == (receipt["hash"], 12, "charged")


def test_whether_the_table_changed_is_told_to_the_owner_who_asks(survey: Path) -> None:
    ask = ["changed", survey / "survey.ledger", survey / "survey.csv", "--schema", survey / "survey.toml"]
    assert "No change was noticed" in run(*ask)
    (survey / "survey.csv").write_text("sex\nF\nM\nM\n")
    assert "has changed" in run(*ask)


def test_plan_and_calibrate_price_by_the_ledger(survey: Path) -> None:
    ledger, unit = Ledger(survey / "survey.ledger"), PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)
    asked = ["--epsilon", 1, "--delta", 1e-6, "--json"]

    def sigma(*more: object) -> float:
        return float(json.loads(dpbayes("calibrate", "gaussian", *asked, *more).out)["sigma"])

    exact, kept = sigma(), sigma("--ledger", survey / "survey.ledger", "--dataset", "survey")
    assert exact < kept < 1.005 * exact < 1.03 * exact < sigma("--adaptive", "renyi")
    assert ledger.account("survey").price(Cost.of(Gaussian(sigma=kept, unit=unit))) <= 1.0
    assert dpbayes("calibrate", "gaussian", *asked, "--ledger", "x").code == 1
