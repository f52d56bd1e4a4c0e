"""Every erratum of [RDP] and [tCDP] that numbers can show, with its counterexample."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.special import polygamma

from dpbayes.mechanisms.utility import log_moment
from dpbayes.papers import rdp, tcdp
from dpbayes.papers.result import errata

P = [0.5, 0.3, 0.2]

WORDS = {"R9", "R20", "R32", "R49", "R58", "R61", "R63", "R70", "T6", "T24", "T35", "T37", "T40", "T56", "T57"}
"""Slips of the pen, and settings that are not stated: nothing to compute."""


def _the_example_of_the_introduction_is_in_base_10() -> None:
    found = float(rdp.kl([0.5, 0.5], [0.4, 0.6]))
    assert round(found, 4) == 0.0204
    assert round(found / math.log(10), 3) == 0.009


def _trigamma_falls() -> None:
    assert rdp.equation_4(1).exact > rdp.equation_4(2).exact


def _the_two_totals_cancel_if_nothing_is_added() -> None:
    whole = {"order": 3}
    assert float(tcdp.G(20, 20, **whole)) + float(tcdp.H(20, 20, **whole)) == 0.0
    assert float(tcdp.G(21, 20, **whole)) + float(tcdp.H(21, 20, **whole)) > 0.0


def _the_density_has_exponents_less_one() -> None:
    assert float(tcdp.density([0.3, 0.7], alpha=[2, 3])) == pytest.approx(12 * 0.3 * 0.7**2)


def _remark_1_holds_without_any_slack() -> None:
    assert rdp.remark_1(order=5, epsilon=1).exact_epsilon <= 1


def _remark_2_holds_for_counts_of_exactly_b() -> None:
    found = rdp.remark_2(order=5, epsilon=1, b=5)
    assert found.alpha == pytest.approx(float(rdp.equation_6(found.r, order=5)))
    shapes = found.r * np.array([6, 5, 5]) + found.alpha
    assert float(rdp.renyi(shapes, shapes[[1, 0, 2]], order=5)) <= found.exact_epsilon * (1 + 1e-9) < 1


def _theorem_2_is_false_below_one_half() -> None:
    found = rdp.theorem_2([0.001] * 1000, alpha=0.1, beta=10, eta=5)
    assert found.printed == pytest.approx(0.3907, abs=1e-4)
    assert found.exact == pytest.approx(1.0, abs=1e-6)
    assert not found.valid
    assert float(found) == found.bound == 1.0
    draws = np.random.default_rng(0).dirichlet(np.full(1000, 0.11), 50)
    assert (-np.log(np.maximum(draws, 1e-300)).mean(axis=1) - math.log(1000) > 5).all()
    for alpha in (0.5, 1.0):
        assert rdp.theorem_2([0.001] * 1000, alpha=alpha, beta=10_000, eta=5).valid


def _from_the_sample_size_on_the_divergence_is_small() -> None:
    found = rdp.sample_size(eta=0.1, failure=0.05, d=3, order=5, epsilon=1)
    assert rdp.theorem_2(P, alpha=found.alpha, beta=found.r * found.printed, eta=0.1).exact < 0.05


def _r_passes_one_from_epsilon_one_on_for_orders_of_two_or_more_only() -> None:
    assert float(rdp.lemma_2(order=1.1, epsilon=1)) < 1
    assert all(float(rdp.lemma_2(order=order, epsilon=1)) > 1 for order in (2, 5, 100))


def _below_epsilon_one_r_may_pass_one_and_alpha_grows() -> None:
    assert float(rdp.lemma_2(order=2, epsilon=0.9)) == pytest.approx(1.504, abs=1e-3)
    far = rdp.lemma_2(order=100, epsilon=0.5)
    assert (far.r, far.alpha) == (pytest.approx(1.487, abs=1e-3), pytest.approx(589.7, abs=0.1))
    assert float(rdp.lemma_2(order=2, epsilon=0.568)) == pytest.approx(1.0, abs=1e-3)


def _the_second_sample_complexity_is_far_too_small() -> None:
    found = rdp.sample_complexity(eta=0.1, order=100, epsilon=0.5, d=6)
    assert not found.premise
    assert found.by_equations > 15 * found.printed


def _draws_over_the_classes_of_a_value_are_no_rows_of_a_classifier() -> None:
    table = np.array([[30.0, 10.0, 5.0], [2.0, 8.0, 20.0]])
    over_classes = [rdp.dirichlet_mechanism(table[:, c], r=1, alpha=1).draw for c in range(3)]
    assert np.abs(np.sum(over_classes, axis=0) - 1).max() > 0.1
    rows = pd.DataFrame({"c": [0, 1] * 40, "v": [0, 1, 2, 2] * 20})
    model = rdp.naive_bayes(rows, "c", public=True)
    assert np.exp(model.feature_log_prob[0]).sum(axis=1) == pytest.approx(1.0)  # type: ignore[attr-defined]


def _rows_that_share_a_moved_record_cost_no_more_together_than_one_row() -> None:
    r, alpha, order = 0.5, 9.0, 5
    one, other = np.array([r + alpha, alpha, alpha]), np.array([alpha, alpha, r + alpha])
    empty = np.full(3, alpha)
    both = float(rdp.renyi(one, empty, order=order)) + float(rdp.renyi(empty, other, order=order))
    assert both <= rdp.theorem_1(r=r, order=order, alpha=alpha).printed


def _laplace_noise_costs_half_of_what_is_charged() -> None:
    assert rdp.laplace(order=5, epsilon=1, K=20).exact == pytest.approx(0.481, abs=1e-3)
    assert rdp.gaussian(order=5, epsilon=1, K=20).exact == pytest.approx(1.0)


def _the_ratio_of_proposition_3_has_the_weight_in_its_exponent() -> None:
    found = rdp.proposition_3(epsilon=3, r=0.5, alpha=2, d=2)
    for y, at_least in ((found.y1, True), (found.printed, False)):
        added = float(tcdp.density([y, 1 - y], alpha=[2.5, 2]))
        ratio = float(tcdp.density([y, 1 - y], alpha=[2, 2])) / added
        assert (ratio >= math.exp(3) * (1 - 1e-9)) == at_least
    assert rdp.proposition_3(epsilon=3, r=0.5, alpha=2, d=3).printed == pytest.approx(0.0276, abs=1e-4)
    assert rdp.proposition_3(epsilon=3, r=0.5, alpha=2, d=3).exact == pytest.approx(0.00076, abs=1e-5)
    assert rdp.proposition_3(epsilon=3, r=1, alpha=2, d=3).valid


def _the_last_step_of_lemma_2_has_another_argument() -> None:
    for x in (0.5, 1.0, 5.0):
        right = float(polygamma(1, 1 + x)) ** 2 + float(polygamma(2, 1 + x))
        assert 0 < right < float(polygamma(1, x)) ** 2 + float(polygamma(2, x))


def _equation_14_is_no_bound_at_negative_t() -> None:
    found = np.exp(log_moment(np.array(P), 200.0, 1.0, 0.0005, np.array([-200 + 0j])).real[0])
    assert found < 0.9 * rdp.theorem_2(P, alpha=1, beta=200, eta=0.0005).exact


def _equation_15_is_below_equation_14_for_a_small_prior() -> None:
    even, at = [0.001] * 1000, {"alpha": 0.1, "beta": 10, "eta": 5}
    simple = rdp.equation_15(2, d=1000, **at)
    assert math.exp(simple.printed) < float(rdp.equation_14(even, t=2, **at))
    assert float(simple) == math.inf
    assert float(rdp.equation_16(d=1000, **at)) == 1.0


def _the_rho_of_section_4_1_is_twice_that_of_theorem_1() -> None:
    assert tcdp.theorem_1(alpha=10, gamma=2).rho == pytest.approx(rdp.equation_4(8).exact)


def _a_small_prior_goes_with_its_own_rho() -> None:
    rho_prime = 2 * rdp.equation_4(0.1).exact
    assert math.sqrt(2 / rho_prime) == pytest.approx(0.1, rel=0.01)


def _equation_17_holds_with_the_first_term_of_equation_14() -> None:
    for d in (2, 3, 100):
        half = tcdp.equation_17(d=d, beta=0.05, epsilon=0.9, rho=0.1)
        spread = math.log(2 * d / 0.05) / 0.9**2
        assert spread + (half.left - spread) / 2 > half.middle


def _equation_16_grows_with_the_cells() -> None:
    found = [round(float(tcdp.equation_16(d=d, N=100, rho=0.1, beta=0.05)), 3) for d in (10, 100, 1000)]
    assert found == [0.109, 0.129, 0.146]


def _the_example_of_appendix_d_changes_rho() -> None:
    found = [round(tcdp.theorem_1(alpha=alpha, gamma=1e-9, r=r).rho, 3) for alpha, r in ((1, 1), (16, 4))]
    assert found == [1.645, 1.032]


SHOWN: dict[str, tuple[Callable[[], None], ...]] = {
    "R1": (_the_example_of_the_introduction_is_in_base_10,),
    "R13": (_trigamma_falls,),
    "R16": (_the_density_has_exponents_less_one,),
    "R28": (_remark_1_holds_without_any_slack,),
    "R30": (_remark_2_holds_for_counts_of_exactly_b,),
    "R33": (_theorem_2_is_false_below_one_half,),
    "R35": (_from_the_sample_size_on_the_divergence_is_small,),
    "R38": (_r_passes_one_from_epsilon_one_on_for_orders_of_two_or_more_only,),
    "R39": (_below_epsilon_one_r_may_pass_one_and_alpha_grows,),
    "R40": (_the_second_sample_complexity_is_far_too_small,),
    "R44": (_draws_over_the_classes_of_a_value_are_no_rows_of_a_classifier,),
    "R45": (_rows_that_share_a_moved_record_cost_no_more_together_than_one_row,),
    "R47": (_laplace_noise_costs_half_of_what_is_charged,),
    "R56": (_laplace_noise_costs_half_of_what_is_charged,),
    "R60": (_the_ratio_of_proposition_3_has_the_weight_in_its_exponent,),
    "R65": (_the_last_step_of_lemma_2_has_another_argument,),
    "R69": (_trigamma_falls, _the_two_totals_cancel_if_nothing_is_added),
    "R72": (_equation_14_is_no_bound_at_negative_t,),
    "R73": (_equation_15_is_below_equation_14_for_a_small_prior,),
    "T27": (_trigamma_falls, _the_two_totals_cancel_if_nothing_is_added),
    "T39": (_the_rho_of_section_4_1_is_twice_that_of_theorem_1,),
    "T42": (_a_small_prior_goes_with_its_own_rho,),
    "T51": (_equation_17_holds_with_the_first_term_of_equation_14,),
    "T52": (_equation_16_grows_with_the_cells,),
    "T63": (_the_example_of_appendix_d_changes_rho,),
}


@pytest.mark.parametrize("row", SHOWN)
def test_the_erratum_is_shown_by_numbers(row: str) -> None:
    for each in SHOWN[row]:
        each()


def test_every_erratum_is_shown_or_a_slip_of_the_pen() -> None:
    stated = {each.row for paper in ("rdp", "tcdp") for each in errata(paper)}
    assert set(SHOWN) | WORDS == stated
    assert not set(SHOWN) & WORDS
