"""The table of statements: every row leads to code that runs or to a part of the library, or says why to neither."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from tests.commands import dpbayes as shell

from dpbayes import papers
from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.cli.papers import record

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ("rdp", "tcdp", "h-full", "h-notes")
NOTHING = 5
"""Statements that ask for nothing."""


@pytest.mark.parametrize("paper", PAPERS)
def test_every_call_of_the_table_runs_and_has_a_json_form(paper: str) -> None:
    for statement in papers.statements(paper):
        for call in statement.calls:
            found = papers.run(call)
            json.dumps(record(found))
            if isinstance(found, papers.Result):
                assert found.place.startswith("[")


def test_every_row_without_a_call_is_answered_otherwise_or_says_why_not() -> None:
    without = [each for each in papers.statements() if not each.calls]
    assert all(each.also or each.figure for each in without)
    assert sum(each.also.startswith("nothing:") for each in without) <= NOTHING


def test_parts_of_the_library_and_pages_of_the_table_exist() -> None:
    for statement in papers.statements():
        for noun in filter(None, statement.also.split("; ")):
            if noun.startswith("docs/"):
                assert (ROOT / noun).is_file(), statement
            elif not noun.startswith("nothing:"):
                module, _, name = noun.rpartition(".")
                assert hasattr(importlib.import_module(module), name), statement


def test_experiments_of_the_table_exist() -> None:
    from experiments.__main__ import EXPERIMENTS

    assert {each.figure for each in papers.statements()} - {""} <= set(EXPERIMENTS)


def test_what_a_result_says_of_print_is_in_the_table() -> None:
    found = papers.run("hellinger.theorem_4_5((2, 5, 9), (3, 6, 7))")
    assert found.erratum == next(each.erratum for each in papers.errata("h-full") if each.place == "Theorem 4.5")


@pytest.mark.parametrize(("paper", "number", "held"), [("rdp", 3, 9), ("tcdp", 1, 8), ("h-notes", 8, 8)])
def test_a_figure_has_its_claims_rows_and_pictures(paper: str, number: int, held: int) -> None:
    found = papers.figure(paper, number)
    assert len(found.claims) == held
    assert sum(found.verdicts.values()) <= held
    assert all(path.is_file() for path in (*found.pictures, *found.rows))
    assert str(found).count("Measured: ") == held


def test_a_figure_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="rdp has no figure 9"):
        papers.figure("rdp", 9)
    with pytest.raises(InvalidArgument, match="tcdp has no table 1"):
        papers.table("tcdp", 1)
    with pytest.raises(InvalidArgument, match="expected one of"):
        papers.statements("pate")


def test_outside_of_a_checkout_one_sentence_says_where_the_figures_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(papers.result, "checkout", lambda: None)
    with pytest.raises(DpbayesError, match="belongs to a checkout"):
        papers.table("rdp", 1)


@pytest.mark.parametrize(
    "call",
    [
        "__import__('os').getcwd()",
        "hellinger.np.zeros(3)",
        "hellinger.R_post.__globals__",
        "hellinger.R_post(10, 3).__class__",
        "hellinger.R_post(open('x'), 3)",
        "hellinger.R_post(*[10, 3])",
        "hellinger.R_post(**{'n': 10, 'm': 3})",
        "hellinger.M_H([4, 4], prior=(1, 1), epsilon=1, delta=1e-8).mechanism.draw([4, 4])",
        "hellinger.BI([4, 4], prior=(1, 1)).printed.tofile('x')",
        "hellinger.nothing(1)",
        "os.getcwd()",
        "(lambda: 1)()",
        "[0] * 10 ** 9",
        "rdp.algorithm_1(",
        "1 + 1",
        "",
    ],
)
def test_a_call_from_text_is_of_our_functions_with_literals_or_refused(call: str) -> None:
    with pytest.raises(InvalidArgument, match="expected a call such as"):
        papers.run(call)


def test_a_call_that_cannot_be_computed_is_answered_in_a_sentence() -> None:
    for call in ("hellinger.R_post(1, 2, 3)", "hellinger.H([1, 1], [2, 2], u=3)", "hellinger.R_post(3, 3).printed[0]"):
        with pytest.raises(InvalidArgument, match="cannot be computed"):
            papers.run(call)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("rdp.synthesise([1, 2], size=10000000000000, order=5, epsilon=1)", "size up to 10,000,000"),
        ("tcdp.synthesise([1, 2], size=10000001, alpha=1)", "size up to 10,000,000"),
        ("hellinger.R_post(1000000000000, 1000000)", "m up to 10,000"),
        ("hellinger.theorem_4_1(epsilon=1, delta=0.1, n=1000, m=1000000000)", "m up to 10,000"),
        ("hellinger.pure_epsilon(prior=(1, 1), n=1000000000000000, epsilon=1, gamma=0.1)", "more memory than there is"),
    ],
)
def test_a_call_with_huge_numbers_is_refused_at_once_in_a_sentence(call: str, sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        papers.run(call)


def test_the_command_lists_papers_statements_and_errata_and_runs_calls() -> None:
    listed = json.loads(shell("papers", "--json").out)["result"]
    assert sum(each["statements"] for each in listed) == 230
    assert "Theorem 4.5" in shell("papers", "h-full").out
    wrong = json.loads(shell("papers", "hellinger", "errata", "--json").out)["result"]
    assert len(wrong) == len(papers.errata("hellinger")) > 40
    call = "hellinger.R_post(10, 3)"
    assert json.loads(shell("papers", call, "--json").out)["result"]["exact"] == 66
    assert "printed 55, which does not hold, exact 66" in shell("papers", call).out
    drawn = shell("papers", "hellinger.M_H([49, 49], prior=(1, 1), epsilon=0.8, delta=1e-8)")
    assert drawn.out.startswith("released [")
    assert "posterior: [" in drawn.out
    assert "naive: [" in drawn.out
    assert "expected one of" in shell("papers", "pate").sentence
    assert "expected a call such as" in shell("papers", "exit()").sentence
