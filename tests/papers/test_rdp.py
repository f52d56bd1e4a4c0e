"""[RDP] as printed, held to its own equations, to sums over outcomes and to the exact cost."""

from __future__ import annotations

import ast
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbayes as dp
from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.papers import rdp, related, tcdp
from dpbayes.papers.checked import SYMBOLS
from dpbayes.privacy.bounds import trigamma_bound
from dpbayes.privacy.convert import renyi_to_epsilon

COUNTS = [11, 8, 65, 25, 38, 0]
P, Q = [0.5, 0.3, 0.2], [0.25, 0.35, 0.4]


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda x: 10.0**x)


# -- section 2 ---------------------------------------------------------------------------------------------------------


def test_the_privacy_loss_is_the_log_ratio_and_kl_its_mean() -> None:
    loss = rdp.privacy_loss(P, Q)
    assert np.asarray(loss) == pytest.approx(np.log(np.divide(P, Q)))
    assert loss.mean == pytest.approx(float(rdp.kl(P, Q)))
    assert loss.probability == pytest.approx(P)


def test_an_outcome_that_only_one_law_has_costs_infinitely_much() -> None:
    assert float(rdp.kl([0.5, 0.5], [1, 0])) == math.inf
    assert float(rdp.definition_2_2([0.5, 0.5], [1, 0], order=2)) == math.inf
    assert float(rdp.definition_2_2([1, 0], [0.5, 0.5], order=2)) == pytest.approx(math.log(2))
    assert float(rdp.definition_2_2([1, 0], [0.5, 0.5], order=math.inf)) == pytest.approx(math.log(2))
    assert float(rdp.definition_2_1([1, 0], [0, 1], epsilon=5)) == 1.0


def test_the_exponential_mechanism_with_kl_as_its_loss_is_a_dirichlet_density() -> None:
    f, r, alpha = np.array([4.0, 1.0, 0.0]), 0.5, 2.0
    outcomes = np.random.default_rng(0).dirichlet([1, 1, 1], 5)
    loss = [float(rdp.kl(f / f.sum(), y)) for y in outcomes]
    mu = [float(tcdp.density(y, alpha=[alpha] * 3)) for y in outcomes]
    law = np.asarray(rdp.equation_2(loss, beta=r * f.sum(), mu=mu))
    drawn = rdp.dirichlet_mechanism(f, r=r, alpha=alpha)
    density = np.array([float(tcdp.density(y, alpha=drawn.parameters)) for y in outcomes])
    assert law == pytest.approx(density / density.sum())
    assert drawn.draw.sum() == pytest.approx(1.0)


def test_cross_entropy_is_least_at_the_shares_and_exceeds_that_by_kl() -> None:
    y = [0.2, 0.2, 0.6]
    found = rdp.cross_entropy([5, 3, 2], y)
    assert float(found) == pytest.approx(found.entropy + float(rdp.kl(P, y)))
    assert float(rdp.cross_entropy([5, 3, 2], P)) == pytest.approx(found.entropy)
    assert float(rdp.equation_8([5, 3, 2], y)) == pytest.approx(-10 * float(found))


@pytest.mark.parametrize("x", [0.01, 0.6, 3.0, 200.0])
def test_the_brackets_of_psi_and_its_derivative_hold(x: float) -> None:
    for found in (rdp.equation_4(x), rdp.equation_13(x)):
        assert found.lower < found.exact < found.upper


# -- section 3 ---------------------------------------------------------------------------------------------------------


def test_algorithm_1_draws_by_its_own_parameters_and_costs_less_than_it_says() -> None:
    rng = np.random.default_rng(1)
    y = rdp.algorithm_1(COUNTS, order=5, epsilon=1, rng=rng)
    assert y.parameters == pytest.approx(y.r * np.array(COUNTS) + y.alpha)
    assert y.draw.sum() == pytest.approx(1.0)
    assert y.exact == y.exact_epsilon == pytest.approx(float(rdp.exact_renyi(5, r=y.r, alpha=y.alpha)))
    assert y.exact < float(y) == 1.0
    assert rdp.algorithm_1([1.5, 0.2, 7.0], order=5, epsilon=1).exact is None, "no table of counts"
    published = rdp.theorem_1(r=y.r, order=5, alpha=y.alpha)
    assert float(published) == pytest.approx(1.0) == pytest.approx(float(rdp.equation_5(y.r, order=5)))


def test_records_of_a_draw_are_as_many_as_asked_for() -> None:
    made = rdp.synthesise(COUNTS, size=1000, order=5, epsilon=1, rng=np.random.default_rng(2))
    shares = np.bincount(made.records, minlength=6) / 1000
    assert np.abs(shares - made.draw).max() < 0.06


@given(st.floats(1.1, 50), powers(-3, 1))
@settings(max_examples=30)
def test_lemma_2_and_both_remarks_never_cost_more_than_epsilon(order: float, epsilon: float) -> None:
    plain = rdp.lemma_2(order=order, epsilon=epsilon)
    assert float(rdp.equation_5(float(plain), order=order)) == pytest.approx(epsilon, rel=1e-9)
    assert float(rdp.equation_6(float(plain), order=order)) == pytest.approx(plain.alpha)
    for each in (plain, rdp.remark_1(order=order, epsilon=epsilon), rdp.remark_2(order=order, epsilon=epsilon, b=3)):
        assert each.exact_epsilon <= epsilon
    assert rdp.remark_2(order=order, epsilon=epsilon, b=3).r > plain.r


def test_phi_rises() -> None:
    values = [float(rdp.phi(x)) for x in (0, 0.1, 1, 10, 100)]
    assert values == sorted(values)
    assert values[0] == 0.0


@given(powers(-2, 1), st.floats(1.5, 200), powers(-12, -1))
def test_equation_10_is_algorithm_1_followed_by_lemma_3(weight: float, order: float, delta: float) -> None:
    bound = trigamma_bound(order, weight=weight, concentration=1 + 4 * (order - 1) * weight, l2_squared=2, linf=1)
    found = rdp.equation_10(r=weight, order=order, delta=delta, l2_squared=2.0)
    assert found.printed == pytest.approx(renyi_to_epsilon(order, bound, delta), rel=1e-9)
    assert float(rdp.lemma_3(order=order, epsilon=bound, delta=delta)) == pytest.approx(found.printed)
    assert found.exact <= found.printed


def test_equations_11_and_12_are_moments_of_the_ratio() -> None:
    u, v, order = [3, 2.5, 4], [2, 3.5, 4], 1.8
    moment = float(rdp.equation_11(u, v, order=order))
    assert math.log(moment) == pytest.approx(float(rdp.equation_12(u, v, order=order)))
    both = np.asarray(tcdp.G(u, v, order=order)) + np.asarray(tcdp.H(u, v, order=order))
    whole = float(tcdp.G(9.5, 9.5, order=order)) + float(tcdp.H(9.5, 9.5, order=order))
    assert both.sum() - whole == pytest.approx(float(rdp.equation_12(u, v, order=order)))
    assert float(rdp.renyi([1, 3], [3, 1], order=2)) == math.inf
    assert float(tcdp.H(1, 3, order=2)) == math.inf


def test_exact_delta_and_epsilon_are_inverse_to_each_other() -> None:
    epsilon = float(rdp.exact_epsilon(1e-5, r=1, alpha=[3, 2, 9]))
    assert float(rdp.exact_delta(epsilon, r=1, alpha=[3, 2, 9])) == pytest.approx(1e-5)
    assert 0 < float(rdp.exact_delta(0, r=1, alpha=[3, 2, 9])) < 1
    with pytest.raises(InvalidArgument, match="no exact price"):
        rdp.exact_epsilon(1e-5, r=1, alpha=2, l2_squared=5)


# -- section 4 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "beta", "eta"), [(0.5, 50, 0.2), (1, 200, 0.05), (3, 400, 0.3), (1, 4, 3)])
def test_the_chain_of_theorem_2_rises_from_the_truth_to_the_print(alpha: float, beta: float, eta: float) -> None:
    found, best = (
        rdp.theorem_2(P, alpha=alpha, beta=beta, eta=eta),
        rdp.equation_16(alpha=alpha, beta=beta, eta=eta, d=3),
    )
    assert found.valid
    assert found.bound == float(found)
    if best.valid:
        chernoff = rdp.equation_14(P, alpha=alpha, beta=beta, eta=eta, t=best.t)
        simple = rdp.equation_15(best.t, alpha=alpha, beta=beta, eta=eta, d=3)
        assert found.exact <= float(chernoff) <= math.exp(float(simple)) == pytest.approx(float(best))
        assert float(best) <= found.printed
    exact = rdp.lambert_bound(eta)
    assert exact.printed < exact.exact


def test_from_the_sample_size_on_theorem_2_is_small_enough() -> None:
    found = rdp.sample_size(eta=0.1, failure=0.05, d=3, order=5, epsilon=1)
    at = {"alpha": found.alpha, "eta": 0.1}
    assert float(rdp.theorem_2(P, beta=found.r * found.printed, **at)) <= 0.05
    assert float(rdp.theorem_2(P, beta=found.r * (found.printed - 3), **at)) > 0.05


# -- section 5 ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    income = rng.integers(2, size=3000)
    rest = {"a": np.where(rng.random(3000) < 0.8, income, 1 - income), "b": rng.integers(3, size=3000)}
    return pd.DataFrame({**rest, "income": income})


def test_naive_bayes_draws_every_table_by_algorithm_1_at_its_part_of_epsilon(frame: pd.DataFrame) -> None:
    model: Any = rdp.naive_bayes(frame, target="income", order=5, epsilon=1, public=True)
    wanted = rdp.lemma_2(order=5, epsilon=1 / 3)
    (paid,) = model.published.releases[0].paid
    assert (paid.mechanism.weight, paid.mechanism.concentration) == pytest.approx((wanted.r, wanted.alpha))
    assert [np.exp(each).shape for each in (model.class_log_prior, *model.feature_log_prob)] == [(2,), (2, 2), (2, 3)]
    chances = model.predict_proba(frame)
    assert (chances.argmax(axis=1) == frame["income"]).mean() > 0.7


def test_a_network_draws_one_table_for_each_node(frame: pd.DataFrame) -> None:
    by_edges: Any = rdp.bayes_net(frame, edges=[("income", "a"), ("income", "b")], public=True)
    by_parents: Any = rdp.bayes_net(frame, parents={"income": [], "a": ["income"], "b": ["income"]}, public=True)
    wanted = rdp.lemma_2(order=5, epsilon=1 / 3)
    for model in (by_edges, by_parents):
        assert {tuple(sorted(model.network.parents[node])) for node in "ab"} == {("income",)}
        assert model.published.releases[0].paid[0].mechanism.weight == pytest.approx(wanted.r)
        assert np.isfinite(model.log_likelihood(frame)).all()


def test_public_rows_may_come_in_any_form(frame: pd.DataFrame) -> None:
    columns = {name: frame[name].tolist() for name in frame}
    for rows in (columns, pa.table(columns), pl.DataFrame(columns)):
        model: Any = rdp.naive_bayes(rows, "income", public=True)
        assert len(model.feature_log_prob) == 2
    columns["b"][0] = None
    model = rdp.naive_bayes(columns, "income", public=True)
    assert model.feature_log_prob[1].shape[1] > 3, "no answer has a place of its own"


def test_an_array_counts_as_public_and_its_columns_go_by_number(frame: pd.DataFrame) -> None:
    model: Any = rdp.naive_bayes(frame.to_numpy(), 2)
    assert model.predict_proba({"0": [0, 1], "1": [0, 2]}).shape == (2, 2)
    for bad in (np.empty((0, 3)), np.array([1, 2]), []):
        with pytest.raises(InvalidArgument, match="array of records by columns"):
            rdp.naive_bayes(bad, 0)


def test_a_private_frame_is_refused_without_schema_and_ledger_and_charged_with_them(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    unit = dp.Unit(adjacency="replace-one")
    schema = dp.Schema.from_public_data({name: frame[name] for name in frame}, id="people", unit=unit)
    ledger = dp.Ledger(tmp_path / "people.ledger")
    ledger.open("people", dp.ApproxDP(epsilon=3, delta=1e-6), unit)
    for brought in ({}, {"schema": schema}, {"ledger": ledger}, {"public": True, "ledger": ledger}):
        for fit in (rdp.naive_bayes, rdp.bayes_net):
            more = {"target": "income"} if fit is rdp.naive_bayes else {"edges": [("income", "a")]}
            with pytest.raises(InvalidArgument, match="public=True"):
                fit(frame, **more, **brought)  # type: ignore[operator]
    assert not ledger.account("people").charges
    rdp.naive_bayes(frame, "income", order=5, epsilon=1, schema=schema, ledger=ledger)
    assert len(ledger.account("people").charges) == 1


# -- bad input ---------------------------------------------------------------------------------------------------------

CALLS = [
    row["call"]
    for row in json.loads((Path(__file__).parents[1] / "golden" / "papers.json").read_text(encoding="utf-8"))
    if row["id"].startswith(("rdp.", "tcdp."))
]
ROOMS = {"rdp": rdp, "tcdp": tcdp, "related": related, "math": math}


def _without_parts(call: str) -> ast.Call:
    node = ast.parse(call, mode="eval").body
    while not isinstance(node, ast.Call):
        node = node.value  # type: ignore[attr-defined]
    return node


@pytest.mark.parametrize("room", ["rdp", "tcdp"])
def test_every_symbol_out_of_its_range_is_refused_in_a_sentence(room: str) -> None:
    seen = set()
    for call in CALLS:
        node = _without_parts(call)
        for keyword in node.keywords if call.startswith(f"{room}.") else ():
            if keyword.arg not in SYMBOLS:
                continue
            kept = keyword.value
            for bad in (math.nan, -1.0, "1", None, True):
                if bad is None or (bad is True and keyword.arg == "alpha"):
                    continue
                keyword.value = ast.Name("nan_", ast.Load())
                with pytest.raises(DpbayesError, match=r"^\w+: expected"):
                    eval(
                        compile(ast.fix_missing_locations(ast.Expression(node)), "call", "eval"), {**ROOMS, "nan_": bad}
                    )
                seen.add(keyword.arg)
            keyword.value = kept
    assert {"alpha", "beta", "delta", "r" if room == "rdp" else "gamma"} <= seen


@pytest.mark.parametrize("room", ["rdp", "tcdp"])
def test_every_vector_that_is_none_is_refused_in_a_sentence(room: str) -> None:
    for call in CALLS:
        node = _without_parts(call)
        for at, kept in enumerate(node.args if call.startswith(f"{room}.") else ()):
            if not isinstance(kept, (ast.List, ast.BinOp)) or call.startswith("rdp.equation_7"):
                continue
            for bad in ([], [math.nan, 1.0], [-1.0, 2.0], "x", [[1, 2], [3]], [1], None, [math.inf, 1]):
                node.args[at] = ast.Name("bad", ast.Load())
                with pytest.raises(DpbayesError, match=r"^\w+: expected"):
                    eval(
                        compile(ast.fix_missing_locations(ast.Expression(node)), "call", "eval"), {**ROOMS, "bad": bad}
                    )
            node.args[at] = kept


def test_tables_and_choices_that_make_no_sense_are_refused() -> None:
    refusals: list[tuple[Any, str]] = [
        (lambda: rdp.equation_7([[1, 2], [0, 0]]), "a record in every class"),
        (lambda: rdp.equation_7([[1.5, 2]]), "whole"),
        (lambda: rdp.equation_8([1, 2], [0.5, 0.2, 0.3]), "one probability for each count"),
        (lambda: rdp.equation_9([0, 0]), "above zero"),
        (lambda: rdp.equation_15(200, alpha=1, beta=200, eta=0.05, d=3), "below beta"),
        (rdp.lemma_1, "pairs"),
        (lambda: rdp.lemma_1((5, -1)), "price"),
        (lambda: rdp.lemma_1((1, 1)), "order"),
        (lambda: rdp.lemma_3(order=5, epsilon=1), "one of them"),
        (lambda: rdp.kl([0.5, 0.5], [0.2, 0.3, 0.5]), "same number"),
        (lambda: rdp.dirichlet_mechanism([1, 2, 3], r=1, alpha=[1, 2]), "same number"),
        (lambda: rdp.naive_bayes([[1, 2]], 0, order=1, epsilon=1), "order"),
        (lambda: rdp.naive_bayes([[1, 2], [1]], 0), "records by columns"),
        (lambda: rdp.naive_bayes(5, 0, public=True), "columns by name"),
        (lambda: rdp.bayes_net([[0, 1]], edges=[(0,)]), "pairs of names"),
        (lambda: rdp.bayes_net([[0, 1]]), "needs a graph"),
        (lambda: rdp.theorem_1(r=1, order=math.inf), "finite"),
        (lambda: rdp.theorem_1(r=1, order=3, alpha=[1, 2]), "alpha > 0"),  # type: ignore[arg-type]
        (lambda: rdp.remark_1(order=5, epsilon=1, g=lambda _: -5.0), "g >= 0"),
        (lambda: tcdp.theorem_3([0.5, 0.5], N=10**9, alpha=1, alpha_prime=2), "up to 50,000,000"),
        (lambda: tcdp.theorem_3([0.5, 0.5], N=10, alpha=0.5, alpha_prime=2), "alpha >= 1"),
        (lambda: tcdp.equation_11([0.0, 1.0], N=10, s=1), "above zero"),
    ]
    for call, words in refusals:
        with pytest.raises(DpbayesError, match=words):
            call()
