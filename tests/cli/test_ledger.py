"""``dpbayes ledger``, as a person and as a program use it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.commands import Done, dpbayes

from dpbayes import Cost, Gaussian, Laplace, Schema, Unit
from dpbayes.hellinger.calibration import with_certificate
from dpbayes.hellinger.certificate import Certificate
from dpbayes.ledger.ledger import Ledger
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.ADD_REMOVE)
CENSUS = """id = "census"
adjacency = "add-remove"
[[attribute]]
name = "sex"
categories = ["F", "M"]
"""


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def run(*arguments: object) -> Done:
    done = dpbayes(*arguments)
    assert done.code == 0, done.err
    return done


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "census.toml").write_text(CENSUS)
    run("ledger", "init", tmp_path / "census.toml", "--epsilon", 1, "--delta", 0)
    return tmp_path / "census.ledger"


@pytest.mark.parametrize(
    ("options", "budget"),
    [
        (["--epsilon", 1, "--delta", 0], {"notion": "pure-dp", "epsilon": 1.0}),
        (
            ["--epsilon", 1, "--delta", 1e-6],
            {"notion": "adaptive-dp", "epsilon": 1.0, "delta": 1e-6, "rule": "gaussian", "slack": 5e-8},
        ),
        (["--guarantee", "RDP(5, 1)"], {"notion": "rdp", "order": 5.0, "epsilon": 1.0}),
        (["--guarantee", "ZCDP(0.5)"], {"notion": "zcdp", "rho": 0.5}),
        (["--guarantee", "TCDP(0.5, 30)"], {"notion": "tcdp", "rho": 0.5, "omega": 30.0}),
    ],
)
def test_init_takes_a_budget_in_any_notion(options: list[object], budget: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(CENSUS.replace('"add-remove"', '"replace-one"\nmax_rows = 2'))
    [shown] = run("ledger", "init", tmp_path / "c.toml", *options, "--json").result
    assert shown["budget"] == budget
    assert shown["unit"] == {"adjacency": "replace-one", "max_rows": 2}
    assert (shown["spent"], shown["left"]) == (0.0, shown["limit"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--guarantee", "ZCDP(1)", "--epsilon", 1], "got both"),
        (["--epsilon", 1], "expected --delta too"),
        ([], "expected --epsilon"),
        (["--delta", 1e-6], "expected epsilon with delta"),
        (["--guarantee", "Gaussian(3)"], "Write RDP(5, 1)"),
    ],
)
def test_a_limit_names_one_notion_and_its_delta(options: list[object], said: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(CENSUS)
    assert said in dpbayes("ledger", "init", tmp_path / "c.toml", *options).sentence
    assert not (tmp_path / "c.ledger").exists()


def test_a_limit_needs_a_schema(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("sex\nF\n")
    said = dpbayes("ledger", "init", tmp_path / "c.csv", "--epsilon", 1, "--delta", 0).err
    assert "`dpbayes schema init" in said
    assert not (tmp_path / "c.ledger").exists()


def test_show_tells_what_is_spent_and_what_became_of_each_charge(path: Path) -> None:
    ledger = Ledger(path)
    ledger.confirm(ledger.charge("census", Cost.of(Laplace(scale=4.0, unit=UNIT), 2), about="[/b] sex, income"))
    ledger.charge("census", Cost.of(Laplace(scale=8.0, unit=UNIT)))
    [shown] = run("ledger", "show", path, "--json").result
    assert (shown["limit"], shown["spent"], shown["left"]) == (1.0, 0.625, 0.375)
    assert (shown["releases"], shown["mechanisms"]) == (2, 3)
    assert shown["spent_also"]["epsilon"] < 0.625 == shown["spent_also"]["epsilon_pure"]
    assert [charge["state"] for charge in shown["charges"]] == ["drawn", "charged"]
    assert [charge["releases"][0]["times"] for charge in shown["charges"]] == [2, 1]
    for_people = run("ledger", "show", path).out
    assert "[/b] sex, income" in for_people
    assert "0.375" in for_people


def test_show_prints_the_last_entries_unless_more_are_asked_for(path: Path) -> None:
    ledger = Ledger(path)
    for _ in range(60):
        ledger.charge("census", Cost.of(Laplace(scale=1000.0, unit=UNIT)))

    def serials(*options: object) -> list[int]:
        [shown] = run("ledger", "show", path, "--json", *options).result
        assert shown["releases"] == 60
        assert shown["charges"][-1]["total"] == pytest.approx(0.06)  # earlier ones count, shown or not
        return [charge["serial"] for charge in shown["charges"]]

    assert serials() == list(range(11, 61))
    assert serials("--all") == list(range(1, 61))
    assert serials("--since", 58) == [58, 59, 60]
    assert serials("--since", "2020-01-01") == list(range(1, 61))
    assert "11 earlier entries not shown" in " ".join(run("ledger", "show", path).out.split())
    assert "not shown" not in run("ledger", "show", path, "--all").out
    [shown] = run("ledger", "show", path, "--json", "--since", "2999-12-31").result
    assert shown["charges"] == []
    assert "--since" in dpbayes("ledger", "show", path, "--since", "yesterday").sentence


def test_limit_changes_the_limit_and_shows_both(path: Path) -> None:
    changed = ["ledger", "limit", path, "--epsilon", 2, "--delta", 0, "--about", "board, 3 May"]
    said = " ".join(run(*changed).out.split())
    assert "Before: ε=1 (pure). One more release of up to ε=1 fits." in said
    [shown] = run(*changed, "--json").result
    assert (shown["limit"], shown["entries"]) == (2.0, 3)
    assert (dpbayes(*changed[:-2]).code, dpbayes(*changed[:-2]).sentence) == (
        2,
        "ledger limit: missing option '--about'.",
    )


def test_verify_names_the_broken_entry(path: Path) -> None:
    receipt = Ledger(path).charge("census", Cost.of(Laplace(scale=4.0, unit=UNIT)))
    [shown] = run("verify", path, "--json").result["checked"]
    assert shown["head"] == receipt.hash
    path.write_bytes(path.read_bytes().replace(b'"times":1', b'"times":2'))
    assert "entry 1 of data set 'census'" in dpbayes("verify", path).sentence


def test_an_export_can_be_verified_by_whoever_has_only_that(path: Path, tmp_path: Path) -> None:
    Ledger(path).charge("census", Cost.of(Laplace(scale=4.0, unit=UNIT)))
    (tmp_path / "survey.toml").write_text(CENSUS.replace("census", "survey"))
    run("ledger", "init", tmp_path / "survey.toml", "--ledger", path, "--guarantee", "ZCDP(1)")
    out = tmp_path / "public.jsonl"
    assert "dpbayes verify" in run("export", path, out).out

    def checked(thing: Path) -> list[dict[str, object]]:
        return [{**each, "thing": ""} for each in run("verify", thing, "--json").result["checked"]]

    assert checked(out) == checked(path)
    assert [shown["dataset"] for shown in checked(out)] == ["census", "survey"]
    assert "exists already" in dpbayes("export", path, out).sentence
    out.write_text(out.read_text()[:-90])
    assert dpbayes("verify", out).sentence.startswith("Ledger: ")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"{}\n", b"[1]\n"])
def test_what_is_no_export_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "public.jsonl").write_bytes(content)
    assert dpbayes("verify", tmp_path / "public.jsonl").sentence.startswith("Ledger: ")


def test_an_export_that_cannot_be_written_is_told(path: Path, tmp_path: Path) -> None:
    assert "cannot be written" in dpbayes("export", path, tmp_path / "absent" / "public.jsonl").sentence
    assert "cannot be read" in dpbayes("verify", tmp_path / "absent.jsonl").sentence


def test_a_ledger_of_several_data_sets_is_asked_about_one(path: Path, tmp_path: Path) -> None:
    (tmp_path / "survey.toml").write_text(CENSUS.replace("census", "survey"))
    run("ledger", "init", tmp_path / "survey.toml", "--ledger", path, "--guarantee", "ZCDP(1)")
    path.rename(tmp_path / "all.ledger")
    both = run("ledger", "show", tmp_path / "all.ledger", "--json").result
    assert [shown["dataset"] for shown in both] == ["census", "survey"]
    changed = ["ledger", "limit", tmp_path / "all.ledger", "--guarantee", "ZCDP(2)", "--about", "x"]
    assert "has several data sets: census, survey" in dpbayes(*changed).err
    [shown] = run(*changed, "--schema", tmp_path / "survey.toml", "--json").result
    assert (shown["dataset"], shown["limit"]) == ("survey", 2.0)


def test_verify_derives_certificates_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may write a whole chain by hand, with digests that fit."""
    unit = Unit(adjacency=Adjacency.REPLACE_ONE)
    claim = Certificate(
        epsilon=0.01, delta=0.0, epsilon_at_delta=0.01, table=(0, 9), neighbour=(1, 8), candidate=(0, 9)
    )
    forged = with_certificate((1.0, 1.0), 9, 50.0, 0.1, unit, claim)
    (tmp_path / "forged.toml").write_text(CENSUS.replace("add-remove", "replace-one"))
    run("ledger", "init", tmp_path / "forged.toml", "--epsilon", 1, "--delta", 0)
    path = tmp_path / "forged.ledger"
    with monkeypatch.context() as patched:
        patched.setattr("dpbayes.ledger.ledger.confirm", lambda _: None)
        Ledger(path).charge("census", Cost.of(forged))
    assert "0.01" in run("ledger", "show", path).out
    assert "enumeration" in dpbayes("verify", path).sentence


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
    run("ledger", "init", tmp_path / "survey.csv", "--epsilon", 2, "--delta", 1e-6)
    return tmp_path


def test_init_takes_everything_from_the_schema(survey: Path) -> None:
    [shown] = run("ledger", "show", survey / "survey.csv", "--json").result
    assert (shown["dataset"], shown["unit"]) == ("survey", {"adjacency": "replace-one", "max_rows": 1})
    assert shown["schemas"] == [Schema.from_toml(SCHEMA).digest]
    again = dpbayes("ledger", "init", survey / "survey.csv", "--epsilon", 1, "--delta", 0)
    assert "`dpbayes ledger limit`" in again.err


def test_accept_keeps_another_schema_and_refuses_another_unit(survey: Path) -> None:
    (survey / "survey.toml").write_text(SCHEMA.replace('"M"]', '"M", "X"]'))
    accept = ["ledger", "accept", survey / "survey.toml", "--about", "X was released"]
    [shown] = run(*accept, "--json").result
    assert len(shown["schemas"]) == 2
    (survey / "survey.toml").write_text(SCHEMA.replace("[[", 'person = "id"\n[[', 1))
    assert "'id'" in dpbayes(*accept).sentence


def test_show_says_for_each_charge_its_own_price_and_the_total_and_what_fits(survey: Path) -> None:
    ledger = Ledger(survey / "survey.ledger")
    unit = Unit(adjacency=Adjacency.REPLACE_ONE)
    for _ in range(3):
        ledger.charge("survey", Cost.of(Gaussian(sigma=10.0, unit=unit)))
    [shown] = run("ledger", "show", survey / "survey.ledger", "--json").result
    own, total = ([charge[key] for charge in shown["charges"]] for key in ("own", "total"))
    assert own[0] == own[1] == own[2] == pytest.approx(total[0])
    assert total[0] < total[1] < total[2] == pytest.approx(shown["spent"])
    words = " ".join(run("ledger", "show", survey / "survey.ledger").out.split())
    assert f"One more release of up to ε={math.floor(shown['left'] * 1000) / 1000:g} at δ=1e-06 fits;" in words
    assert "Had all charges been planned together" in words


def test_a_series_is_charged_from_its_text_or_from_a_file(survey: Path) -> None:
    unit = Unit(adjacency=Adjacency.REPLACE_ONE)
    (survey / "series.json").write_text(json.dumps([{**Laplace(scale=80.0, unit=unit).record(), "times": 12}]))
    charge = ["ledger", "charge", survey / "survey.csv"]
    receipt = run(*charge, survey / "series.json", "--about", "monthly tables", "--json").result
    made = Ledger(survey / "survey.ledger").account("survey").charges[receipt["serial"]]
    assert (made.entry.hash, made.cost.releases, made.state) == (receipt["hash"], 12, "charged")
    same = run(*charge, "12 * Laplace(80)", "--about", "the same", "--json").result
    again = Ledger(survey / "survey.ledger").account("survey").charges[same["serial"]]
    assert again.cost.entries == made.cost.entries
    assert dpbayes(*charge, "Laplace(0.1)", "--about", "too much").code == 3


def test_whether_the_table_changed_is_told_to_the_owner_who_asks(survey: Path) -> None:
    ask = ["schema", "check", survey / "survey.csv", "--read-rows"]
    assert "No change was noticed" in run(*ask).out
    (survey / "survey.csv").write_text("sex\nF\nM\nM\n")
    assert "has changed" in run(*ask).out


def test_calibrate_prices_by_the_ledger(survey: Path) -> None:
    ledger, unit = Ledger(survey / "survey.ledger"), Unit(adjacency=Adjacency.REPLACE_ONE)
    asked = ["calibrate", "Gaussian", "--epsilon", 1, "--json"]

    def sigma(*more: object) -> float:
        [made] = run(*asked, *more).result["mechanisms"]
        return float(made["mechanism"]["sigma"])

    exact, kept = sigma("--delta", 1e-6), sigma("--ledger", survey / "survey.ledger")
    assert exact < kept < 1.005 * exact
    assert ledger.account("survey").budget.amount(Cost.of(Gaussian(sigma=kept, unit=unit))) <= 1.0
    assert dpbayes("calibrate", "Gaussian", "--epsilon", 1, "--ledger", survey / "x").code == 1


def test_no_ledger_is_made_where_none_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "census.toml").write_text(CENSUS)
    done = dpbayes("ledger", "init", tmp_path / "census.toml", "--epsilon", 1, "--delta", 0, "--ledger", "none")
    assert (done.code, "expected --ledger" in done.sentence) == (2, True)
    assert [each.name for each in tmp_path.iterdir()] == ["census.toml"]
