"""The result of a formula of a paper, and the table of statements."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from dpbayes.base.errors import InvalidArgument
from dpbayes.papers import hellinger, rdp
from dpbayes.papers.result import PAPERS, Result, errata, statements


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


def test_wrong_arguments_are_told_with_the_name_of_the_function() -> None:
    with pytest.raises(TypeError, match=r"^algorithm_1: missing a required argument: 'order'$"):
        rdp.algorithm_1([1, 2, 3], epsilon=1)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match="got '3'"):
        errata(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="expected parents as a mapping"):
        rdp.bayes_net([[0, 0], [1, 1]], parents=[(0, 1)])  # type: ignore[arg-type]


def test_a_print_that_equals_the_exact_value_is_not_said_to_fail() -> None:
    assert "does not hold" not in repr(hellinger.density([0, 1], parameters=(2, 1)))
    assert "does not hold" in repr(hellinger.density([0.3, 0.7], parameters=(2, 1)))
