"""A posterior from a table, its schema and its ledger."""

import json

import pytest
from typer.testing import CliRunner

from dpbayes import Adjacency, PrivacyUnit, PureDP
from dpbayes.cli.main import application
from dpbayes.errors import BudgetExceeded, DpbayesError
from dpbayes.ledger.ledger import Ledger

runner = CliRunner()

SCHEMA = """
id = "coins"
adjacency = "replace-one"
records = 60
[[attribute]]
name = "side"
categories = ["heads", "tails"]
missing = "other"
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "coins.csv").write_text("side\n" + "heads\n" * 41 + "tails\n" * 19)
    (tmp_path / "coins.toml").write_text(SCHEMA)
    ledger = Ledger(tmp_path / "coins.ledger")
    ledger.open("coins", PureDP(epsilon=1.0), PrivacyUnit(adjacency=Adjacency.REPLACE_ONE))
    return tmp_path


def call(files, *more):
    sources = ["--table", str(files / "coins.csv"), "--schema", str(files / "coins.toml")]
    asked = ["--prior", "1", "--epsilon", "0.6", "--mechanism", "improved-laplace", "--json"]
    return runner.invoke(application("posterior"), ["posterior", *sources, *asked, *more])


def test_a_posterior_is_charged_before_it_is_drawn_and_refused_when_it_no_longer_fits(files):
    ledger = str(files / "coins.ledger")
    done = call(files, "--marginal", "side", "--ledger", ledger)
    assert done.exit_code == 0, done.output
    published = json.loads(done.stdout)
    assert published["levels"] == ["heads", "tails", "other"]
    assert sum(published["parameters"]) == 63
    account = Ledger(ledger).account("coins")
    assert account.price(account.cost) == pytest.approx(0.6, abs=1e-9)
    assert [charge.state for charge in account.charges.values()] == ["drawn"]
    again = call(files, "--marginal", "side", "--ledger", ledger)
    assert isinstance(again.exception, BudgetExceeded)
    assert len(Ledger(ledger).account("coins").charges) == 1


def test_a_table_that_breaks_its_declared_size_is_not_charged(files):
    with (files / "coins.csv").open("a") as file:
        file.write("heads\n")
    done = call(files, "--marginal", "side", "--ledger", str(files / "coins.ledger"))
    assert isinstance(done.exception, DpbayesError)
    account = Ledger(files / "coins.ledger").account("coins")
    assert account.price(account.cost) == 0
    assert "61" not in str(done.exception)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--marginal", "side"], "--ledger"),
        (["--marginal", "side|side2", "--no-ledger"], "joint table"),
        (["--marginal", "colour", "--no-ledger"], "colour"),
        (["--no-ledger"], "--marginal"),
        (["--marginal", "side", "--counts", "1,2", "--no-ledger"], "--counts"),
    ],
)
def test_incomplete_or_conditional_requests_are_refused(files, more, words):
    done = call(files, *more)
    assert isinstance(done.exception, DpbayesError)
    assert words in str(done.exception)
