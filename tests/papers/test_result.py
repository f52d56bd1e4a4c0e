"""The result of a formula of a paper, and the table of statements."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from dpbayes.papers.result import PAPERS, Result, statements


def test_the_printed_value_holds_where_it_is_valid() -> None:
    assert float(Result("R5", 0.4, exact=0.3)) == 0.4


def test_the_corrected_value_holds_where_the_print_does_not_else_the_exact_one() -> None:
    assert float(Result("R33", 0.4, exact=0.9, valid=False)) == 0.9
    assert float(Result("R33", 0.4, exact=0.9, valid=False, corrected=1.0)) == 1.0


def test_nothing_is_made_up_where_nothing_is_known() -> None:
    with pytest.raises(TypeError, match="does not hold"):
        float(Result("R33", 0.4, valid=False))


def test_both_values_and_the_erratum_are_printed() -> None:
    text = repr(Result("R33", 0.39068, exact=1.0, valid=False, parts={"eta": 5}))
    assert "[RDP] Theorem 2: printed 0.39068, which does not hold, exact 1, eta 5. Erratum: " in text


def test_a_result_is_an_array_where_its_value_is_one() -> None:
    x = Result("R53", np.array([0.3, 0.7]))
    assert x[1] == 0.7
    assert np.asarray(x).sum() == 1.0


def test_a_result_is_frozen_and_can_be_copied() -> None:
    x = Result("R5", 0.4, parts={"order": 3})
    assert pickle.loads(pickle.dumps(copy.copy(x))).order == 3
    with pytest.raises(AttributeError):
        x.printed = 1.0  # type: ignore[misc]
    with pytest.raises(AttributeError, match="no attribute 'epsilon'"):
        x.epsilon  # noqa: B018 - asking is the test


def test_the_table_has_every_statement_of_the_five_documents() -> None:
    counted = {paper: sum(each.paper == paper for each in statements()) for paper in PAPERS.values()}
    assert counted == {"RDP": 75, "tCDP": 63, "H-full": 32, "H-abstract": 26, "H-notes": 34}
    assert all(each.place and each.says for each in statements())
