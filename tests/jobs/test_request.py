"""A request file says everything but the table, and says at once all that is wrong with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.releases import PEOPLE, people

from dpbayes import (
    ZCDP,
    ApproxDP,
    Categories,
    Curator,
    Ledger,
    PureDP,
    Release,
    Request,
    Synthetic,
    Tables,
    verify,
)
from dpbayes.base.errors import InvalidArgument
from dpbayes.jobs.request import GONE

FULL = """
title = "Income by sex"
author = "Office of Statistics"
contact = "mail@example.org"
purpose = \"\"\"
For the annual report.
Second line.\"\"\"
tables = [
  "sex",
  "income|sex",
]
epsilon = 1
delta = 1e-6
mechanism = "gaussian"
level = 0.9
supersedes = "0123456789abcdef"
"""


def test_a_request_names_job_target_and_words_for_readers() -> None:
    asked = Request.from_toml(FULL)
    assert asked.job() == Tables("sex", "income|sex", mechanism="gaussian", level=0.9)
    assert asked.guarantee() == ApproxDP(epsilon=1, delta=1e-6)
    assert asked.about["purpose"] == "For the annual report.\nSecond line."
    assert set(asked.about) == {"title", "author", "contact", "purpose", "supersedes"}


def test_a_request_survives_its_file(tmp_path: Path) -> None:
    asked = Request.from_toml(FULL)
    asked.save(tmp_path / "request.toml")
    assert Request.load(tmp_path / "request.toml") == replace(asked, folder=tmp_path)
    assert Request.from_toml(Request().to_toml()) == Request()


@given(
    title=st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=40).map(str.strip),
    target=st.sampled_from([None, PureDP(epsilon=0.5), ApproxDP(epsilon=2.0, delta=1e-9), ZCDP(rho=0.25)]),
    level=st.floats(0.5, 0.99),
)
def test_every_request_survives_its_text(title: str, target: object, level: float) -> None:
    asked = Request(title=title, target=target, keys={"level": level}, tables=("a", 'b|"x,y"'))  # type: ignore[arg-type]
    assert Request.from_toml(asked.to_toml()) == asked


def test_all_faults_are_said_at_once_each_with_its_line() -> None:
    text = 'titel = "x"\ntables = ["a", "b|"]\nlevel = 7\nepsilon = "one"\nmechanism = "best"\nprior = 3\n'
    with pytest.raises(InvalidArgument) as caught:
        Request.from_toml(text)
    said = str(caught.value).splitlines()
    assert said[0] == "Request: 6 faults:"
    assert "line 1: there is the unknown key 'titel'. Did you mean 'title'?" in said[1]
    for line, word in {2: "b|", 3: "level", 4: "epsilon", 5: "mechanism", 6: "prior"}.items():
        assert any(f"line {line}: " in one and word in one for one in said), line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tables = [", "not TOML"),
        ("epsilon = 1\nguarantee = 'ZCDP(1)'", "line 1: Guarantee: expected"),
        ("guarantee = 'ZCDP(1'", "cannot read"),
        ("guarantee = 'GDP(1)'", "Write RDP"),
        ("as = 'tabels'", "Did you mean 'tables'"),
        ("bins = 3", "bins goes with --as edges, not with tables"),
        ("delta = 1e-6", "expected epsilon"),
        ("epsilon = true", "epsilon: expected a number"),
        ("tables = [1]", "list of texts"),
        ("tables = ['a', 'a']", "asked for twice"),
        ("title = 3", "expected title to be text"),
        ("title = 'a\\nb'\nx = 1", "unknown key"),
        ('title = "a\\nb"', "one line"),
        ("supersedes = 'first'", "expected supersedes to be the id"),
        ("level = 2", "line 1: Tables: expected level"),
        ("tables = ['a']\nas = 'draw'\nmechanism = 'laplace'", "not with draw"),
    ],
)
def test_one_fault_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^Request: ") as caught:
        Request.from_toml(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_left_out_is_asked_for_when_it_is_needed() -> None:
    with pytest.raises(InvalidArgument, match="expected a table or more"):
        Request().job()
    with pytest.raises(InvalidArgument, match=r"expected epsilon \(--epsilon 1\), or accuracies"):
        Request().guarantee()
    with pytest.raises(InvalidArgument, match="no file"):
        Request.load("nowhere.toml")


def test_a_prior_is_found_beside_the_request(tmp_path: Path) -> None:
    (tmp_path / "sex.csv").write_text("sex,share\nF,5\nM,4\nother,1\n")
    (tmp_path / "r.toml").write_text('tables = ["sex"]\nprior = ["sex.csv"]\n')
    asked = Request.load(tmp_path / "r.toml")
    assert asked.job(PEOPLE).priors[0].shares == (5.0, 4.0, 1.0)
    with pytest.raises(InvalidArgument, match="expected the schema"):
        asked.job()


def test_words_for_readers_travel_into_the_release_and_are_part_of_the_draw(tmp_path: Path) -> None:
    asked = Request.from_toml(FULL)
    made = Curator(people(), PEOPLE).release(asked)
    assert made.about == asked.about
    read = Release.from_json(made.to_json())
    assert read.about == asked.about
    assert verify(read).ok
    assert replace(read, about={}).digest() != read.digest()
    assert not verify(replace(read, about={"title": "Another"})).ok


def test_a_release_without_words_is_written_as_before() -> None:
    made = Curator(people(), PEOPLE).release(Tables("sex", mechanism="gaussian"), ApproxDP(epsilon=1, delta=1e-6))
    assert "about" not in made.record()


@pytest.mark.parametrize("target", [None, "income"])
def test_synthetic_records_are_asked_for_like_tables(target: str | None) -> None:
    tables = "" if target is None else f'tables = ["{target}"]\n'
    asked = Request.from_toml(f'as = "synthetic"\n{tables}epsilon = 1\ndelta = 1e-6')
    assert asked.job() == Synthetic(target=target)
    assert Request.from_toml(asked.to_toml()) == asked
    release = Curator(people(), PEOPLE).release(asked.with_changes(title="Records"))
    assert release.about == {"title": "Records"}
    assert release.job["kind"] == "synthetic"
    assert verify(release).ok


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('tables = ["sex", "age"]', "one joint table"),
        ("level = 0.9", "level goes with --as tables"),
        ('mechanism = "dirichlet"', "mechanism: expected one of auto, gaussian, laplace, got 'dirichlet'"),
        ('tables = ["sex ± 1 point"]', "only tables can have one"),
    ],
)
def test_what_does_not_go_with_synthetic_records_is_said(text: str, sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        Request.from_toml(f'{text}\nas = "synthetic"')


@pytest.mark.parametrize("key", GONE)
def test_a_key_of_an_earlier_version_is_answered_with_what_to_write(key: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{key}' is gone since 0.2.0: .*(write|dpbayes)"):
        Request.from_toml(f"{key} = 1")


def test_another_product_takes_over_the_keys_that_it_has() -> None:
    asked = Request(product="synthetic", keys={"mechanism": "laplace"}, target=PureDP(epsilon=1))
    asked = asked.with_changes(product="tables", tables=("sex",))
    assert asked.job() == Tables("sex", mechanism="laplace")
    assert asked.with_changes(product="categories").job() == Categories(column="sex")


def test_a_posterior_is_asked_for_in_a_file() -> None:
    text = 'as = "posterior"\ntables = ["sex"]\nepsilon = 1\nprior = [0.5, 2]\n'
    asked = Request.from_toml(text)
    job = asked.job()
    assert (job.kind, str(job.marginal), job.prior) == ("posterior", "sex", (0.5, 2.0))  # type: ignore[attr-defined]
    assert Request.from_toml(asked.to_toml()) == asked


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('tables = ["sex", "age"]', "Choose one table"),
        ('tables = ["sex|age"]', "joint table"),
        ('tables = ["sex"]\nmechanism = "gaussian"', "one of auto"),
        ('tables = ["sex"]\nprior = [0]', "prior"),
        ('tables = ["sex"]\nprior = "x"', "prior to be a number"),
    ],
)
def test_what_does_not_go_with_a_posterior_is_refused(more: str, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        Request.from_toml(f'{more}\nas = "posterior"\nepsilon = 1\n')


def test_delta_is_that_of_the_ledger_unless_it_is_said(tmp_path: Path) -> None:
    """Ledger with δ, without, and none × δ given or not."""
    books = {"a δ": ApproxDP(epsilon=5, delta=1e-6), "pure": PureDP(epsilon=5), "no δ": ZCDP(rho=1), "none": None}
    for name, limit in books.items():
        account = None
        if limit is not None:
            ledger = Ledger(tmp_path / f"{name}.ledger")
            ledger.open("people", limit, PEOPLE.unit)
            account = ledger.account("people")
        for said, target, words in (
            ("", ApproxDP(epsilon=1, delta=1e-6) if name == "a δ" else PureDP(epsilon=1), True),
            ("delta = 1e-8", ApproxDP(epsilon=1, delta=1e-8), False),
            ("delta = 0", PureDP(epsilon=1), False),
            ("guarantee = 'PureDP(1)'", PureDP(epsilon=1), False),
        ):
            asked = Request.from_toml(said if said.startswith("g") else f"epsilon = 1\n{said}")
            assert asked.guarantee(account) == target, (name, said)
            assert bool(asked.origin(account)) == words
    assert "(the δ of the ledger)" in Request.from_toml("epsilon = 1").origin(
        Ledger(tmp_path / "a δ.ledger").account("people")
    )
