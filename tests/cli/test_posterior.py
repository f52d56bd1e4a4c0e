"""A posterior: released and certified, from arguments to files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Done, dpbayes

from dpbayes import Ledger, PureDP, Release, Unit

SCHEMA = """
id = "coins"
adjacency = "replace-one"
records = 48
[[attribute]]
name = "side"
categories = ["heads", "other"]
missing = "other"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("coins.csv").write_text("side\n" + "heads\n" * 31 + "tails\n" * 17)
    Path("coins.toml").write_text(SCHEMA)
    Ledger("coins.ledger").open("coins", PureDP(epsilon=1.0), Unit(adjacency="replace-one"))
    return tmp_path


def posterior(*more: object, epsilon: object = 0.8, paid: tuple[object, ...] = ("--ledger", "none")) -> Done:
    table = () if more and more[0] in ("side|side2", "colour") else ("side",)
    asked = ("--as", "posterior", "--epsilon", epsilon, "--delta", 0)
    return dpbayes("release", "coins.csv", *table, *asked, *paid, *more)


def released(*more: object, **options: Any) -> dict[str, Any]:
    return posterior(*more, "--json", **options).result["release"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("extra", "backed"),
    [
        (("--set", "mechanism=hellinger"), "certified"),
        (("--set", "mechanism=improved-laplace"), "proved"),
        (("--set", "mechanism=laplace"), "proved"),
        (("--set", "mechanism=exponential", "--set", "even_if_noise=true"), "proved"),
    ],
)
def test_a_release_states_its_posterior_and_what_backs_its_guarantee(
    here: Path, extra: tuple[object, ...], backed: str
) -> None:
    found = released(*extra)
    assert f"the guarantee is {backed}" in found["choice"]
    assert found["promise"]["epsilon"] == 0.8
    assert "seeded" not in found or found["seeded"] is False
    (table,) = found["tables"]
    assert sum(table["values"]) == pytest.approx(50.0)
    assert Release.from_json(json.dumps(found)).verify().ok


def test_many_candidates_fall_back_to_the_proved_bound_and_say_so(here: Path) -> None:
    Path("coins.toml").write_text(
        SCHEMA.replace("48", "1000").replace('["heads", "other"]', '["a", "b", "c", "other"]')
    )
    Path("coins.csv").write_text("side\n" + "a\n" * 300 + "b\n" * 400 + "c\n" * 300)
    confirmed = ("--set", "mechanism=hellinger", "--set", "even_if_noise=true", "--delta", 1e-8)
    assert "the guarantee is proved" in released(*confirmed)["choice"]


def test_a_release_that_is_mostly_noise_is_refused_before_the_charge_unless_it_is_confirmed(here: Path) -> None:
    levels = ", ".join(f'"{letter}"' for letter in "abcdefg")
    Path("coins.toml").write_text(SCHEMA.replace('"heads", "other"', levels + ', "other"'))
    said = posterior("--set", "mechanism=hellinger", paid=()).sentence
    assert "drawn at random" in said
    assert "--set even_if_noise=true" in said
    assert Ledger("coins.ledger").account("coins").charges == {}
    confirmed = ("--set", "mechanism=hellinger", "--set", "even_if_noise=true")
    assert "drawn at random" in released(*confirmed)["choice"]


def test_people_get_a_table(here: Path) -> None:
    said = posterior("--set", "mechanism=hellinger").out
    assert "released parameter" in said
    assert "certified" in said
    assert "heads" in said


def test_a_seed_repeats_an_experiment_that_is_not_called_private(here: Path) -> None:
    one, two = (released("--insecure-seed", 7, paid=()) for _ in range(2))
    assert one["tables"] == two["tables"]
    assert one["seeded"] is True
    assert "no privacy at all" in Release.from_json(json.dumps(one)).statement()


def test_a_posterior_is_charged_before_it_is_drawn_and_refused_when_it_no_longer_fits(here: Path) -> None:
    paid = ("--set", "mechanism=improved-laplace")
    assert posterior("--out", "one", paid=paid, epsilon=0.6).code == 0
    assert dpbayes("verify", "one", "--ledger", "coins.ledger").code == 0
    account = Ledger("coins.ledger").account("coins")
    assert account.spent == pytest.approx(0.6, abs=1e-9)
    assert [charge.state for charge in account.charges.values()] == ["drawn"]
    assert "would fit" in posterior("--out", "two", paid=paid, epsilon=0.6).sentence
    assert not Path("two").exists()
    assert len(Ledger("coins.ledger").account("coins").charges) == 1


def test_a_table_of_another_size_than_declared_is_refused_before_the_charge(here: Path) -> None:
    with Path("coins.csv").open("a") as file:
        file.write("heads\n")
    done = posterior(paid=("--set", "mechanism=improved-laplace", "--out", "out"))
    assert (done.code, "declares records = 48, and the table has 49 rows" in done.err) == (1, True)
    assert Ledger("coins.ledger").account("coins").spent == 0


def test_a_certificate_is_derived_again(here: Path) -> None:
    assert posterior("--set", "mechanism=hellinger", "--out", "one").code == 0
    [found] = dpbayes("verify", "one", "--thorough", "--json").result["checked"]
    assert found["verified"] is True
    assert 0.99 * found["claimed_epsilon"] < found["certificate"]["epsilon"] <= found["claimed_epsilon"]
    assert "pass  certificate: it costs ε=" in dpbayes("verify", "one", "--thorough").out


def test_a_forged_certificate_or_promise_is_not_believed(here: Path) -> None:
    honest = Release.from_json(json.dumps(released("--set", "mechanism=hellinger")))
    boast = replace(honest, promise=PureDP(epsilon=0.3))
    Path("boast.json").write_text(boast.to_json())
    boasting = dpbayes("verify", "boast.json", "--thorough")
    assert (boasting.code, "FAIL  certificate" in boasting.out) == (1, True)
    assert dpbayes("verify", "boast.json").code == 1
    record = json.loads(honest.to_json())
    record["paid"][0]["mechanism"]["certificate"]["epsilon"] = 0.1
    for change in ("kept", "removed"):
        if change == "removed":
            record["paid"][0]["mechanism"]["certificate"].pop("digest", None)
        Path("forged.json").write_text(json.dumps(record))
        done = dpbayes("verify", "forged.json")
        assert done.code == 1, done.out


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"mechanism": {"mechanism": "laplace-1"}}', '"posterior"'])
def test_files_that_are_no_release_are_refused(here: Path, text: str) -> None:
    Path("odd.json").write_text(text, encoding="utf-8")
    for name in ("odd.json", "absent.json"):
        assert dpbayes("verify", name, "--thorough").sentence.startswith("Release: ")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--set", "prior=1,0"), "prior"),
        (("--set", "prior=1,x"), "prior to be a number"),
        (("--set", "prior=1,1,1"), "got 3"),
        (("--calibration", "proved"), "the papers' choices are in dpbayes.papers"),
        (("--set", "mechanism=best"), "mechanism"),
        (("side|side2",), "joint table"),
        (("colour",), "colour"),
        (("job",), "one joint table"),
        (("--out", "coins.csv"), "is a file"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason_and_without_a_charge(
    here: Path, more: tuple[object, ...], said: str
) -> None:
    assert said in posterior(*more, paid=()).sentence
    assert Ledger("coins.ledger").account("coins").charges == {}


def test_a_table_needs_a_ledger_or_the_word_that_there_is_none(here: Path) -> None:
    Path("coins.ledger").unlink()
    said = posterior(paid=()).sentence
    assert "`dpbayes ledger init coins.csv --epsilon 4 --delta 1e-6`" in said
    assert "'none'" in said
    assert not Path("published").exists()
