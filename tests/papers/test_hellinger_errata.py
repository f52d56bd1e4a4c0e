"""Every erratum of the Hellinger papers that numbers can show, with its counterexample."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln

from dpbayes.base.errors import InvalidArgument
from dpbayes.papers import hellinger

EVEN = {"prior": (1, 1), "epsilon": 0.8, "delta": 1e-8}


def scores(x: list[int], law: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
    """H between the posterior of x and every candidate, for a prior of ones."""
    return {k: float(hellinger.H(np.add(x, 1), np.add(k, 1))) for k in law}


def test_the_beta_density_integrates_to_one_with_exponents_less_one_only() -> None:
    for kind, whole in (("exact", 1.0), ("printed", math.exp(betaln(4, 3) - betaln(3, 2)))):
        value = quad(lambda t, kind=kind: getattr(hellinger.density([t, 1 - t], parameters=(3, 2)), kind), 0, 1)[0]
        assert value == pytest.approx(whole)


def test_neighbours_count_differing_entries_not_equal_ones() -> None:
    def printed(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        return sum(a == b for a, b in zip(one, other, strict=True)) <= 1

    assert printed((0, 1, 1), (1, 0, 0)), "all three records differ"
    assert not printed((0, 1, 1), (0, 1, 0)), "one record differs"


def test_the_definitions_of_privacy_hold_as_bounds_and_never_as_equations() -> None:
    one, other = hellinger.law([10, 10], **EVEN), hellinger.law([11, 9], **EVEN)
    assert all(one[k] < math.exp(0.8) * other[k] for k in one)


def test_the_printed_scale_of_laplace_noise_costs_half_its_epsilon_with_two_cells_only() -> None:
    assert hellinger.laplace_scale(epsilon=0.8, m=2).exact == 1.25
    assert hellinger.laplace_scale(epsilon=0.8, m=3).exact == hellinger.laplace_scale(epsilon=0.8, m=3).printed == 2.5
    assert float(hellinger.laplace([10, 10], prior=(1, 1), epsilon=0.8).loss) == pytest.approx(0.4)
    assert float(hellinger.laplace([9, 8, 7], prior=(1, 1, 1), epsilon=0.8).loss) == pytest.approx(0.8)


def test_candidates_are_counted_right_for_two_cells_only() -> None:
    for n, m in itertools.product((1, 4, 10), (2, 3, 4)):
        counted = len(hellinger.law([n] + [0] * (m - 1), prior=(1,) * m, epsilon=1, sensitivity="global"))
        assert hellinger.R_post(n, m).exact == counted
        assert hellinger.R_post(n, m).valid == (m == 2)
    assert hellinger.R_post(10, 3).printed == 55


def test_a_maximum_over_neighbours_alone_is_not_a_smooth_sensitivity() -> None:
    prior, gamma, found = (1, 1, 1), 0.05, {}
    for x in ([2, 2, 2], [3, 2, 1], [4, 2, 0], [5, 1, 0], [6, 0, 0]):
        found[tuple(x)] = hellinger.S(x, prior=prior, gamma=gamma)
    assert found[2, 2, 2].printed == pytest.approx(0.36814, abs=1e-5)
    assert found[2, 2, 2].exact == pytest.approx(0.39872, abs=1e-5)
    for one, other in itertools.pairwise(found.values()):
        assert max(one.exact, other.exact) <= math.exp(gamma) * min(one.exact, other.exact) * (1 + 1e-12)
    jumps = [max(a.printed, b.printed) / min(a.printed, b.printed) for a, b in itertools.pairwise(found.values())]
    assert max(jumps) > math.exp(gamma)


def test_distances_of_histograms_in_l1_or_the_own_local_sensitivity_do_not_smooth() -> None:
    found = hellinger.S([10, 10], prior=(1, 1), gamma=0.05)
    assert (found.l1, found.exact) == pytest.approx((0.15353, 0.22023), abs=1e-5)
    assert found.notes == float(hellinger.LS([10, 10], prior=(1, 1)))
    first, second = (hellinger.S(x, prior=(1, 1), gamma=0.05) for x in ([0, 20], [1, 19]))
    assert first.notes == second.notes, "the neighbour itself is the worst"
    third = hellinger.S([2, 18], prior=(1, 1), gamma=0.05)
    assert second.notes / third.notes > math.exp(0.05)
    assert second.exact / third.exact <= math.exp(0.05) * (1 + 1e-12)


def test_lemma_4_1_is_false_for_probabilities_and_true_for_weights() -> None:
    found = hellinger.lemma_4_1([10, 10], score=0, shift=0.01, delta_prime=0.01, **EVEN)
    assert (found.exact, found.printed) == pytest.approx((0.103, 0.005), abs=5e-4)
    assert not found.valid
    assert found.weights <= math.exp(0.4)
    with pytest.raises(InvalidArgument, match="at least −S"):
        hellinger.lemma_4_1([10, 10], score=0, shift=-0.9, delta_prime=0.01, **EVEN)


def test_lemma_4_6_is_false_for_probabilities_too() -> None:
    law = hellinger.law([10, 10], **EVEN)
    far = scores([10, 10], law)
    lam = hellinger.lemma_4_6(epsilon=0.8, delta_prime=1e-8, n=20).exact
    c = far[11, 9]
    left = sum(share for k, share in law.items() if math.isclose(far[k], c, abs_tol=1e-12))
    assert not any(math.isclose(far[k], c * math.exp(lam), abs_tol=1e-12) for k in law)
    assert left > 0.1 > 1e-8 / 2


@pytest.mark.parametrize(("epsilon", "delta_prime", "n", "m"), [(0.8, 0.01, 50, 2), (3.0, 1e-6, 20, 3)])
def test_the_tail_of_lemma_4_6_needs_epsilon_where_delta_is_printed(
    epsilon: float, delta_prime: float, n: int, m: int
) -> None:
    found = hellinger.lemma_4_6(epsilon=epsilon, delta_prime=delta_prime, n=n, m=m)
    assert found.tail == pytest.approx(delta_prime / 2)
    assert found.printed < found.exact
    assert math.expm1(found.printed) == pytest.approx(math.expm1(found.exact) * delta_prime / epsilon)


def test_the_good_event_of_lemma_4_6_has_probability_zero_as_printed_and_nearly_one_reversed() -> None:
    law = hellinger.law([25, 25], prior=(1, 1), epsilon=0.8, delta=0.01)
    lam = float(hellinger.gamma(epsilon=0.8, delta=0.01, n=50))
    edge = float(hellinger.S([25, 25], prior=(1, 1), gamma=lam)) / -math.expm1(lam)
    inside = sum(law[k] for k, h in scores([25, 25], law).items() if -h <= edge)
    assert inside == 0.0
    assert 1.0 - inside >= 1.0 - 0.01 / 2


def test_the_accuracy_bound_holds_as_a_bound() -> None:
    for c in (0.1, 0.4, 0.8):
        found = hellinger.accuracy([10, 10], c=c, **EVEN)
        assert found.exact < found.printed


def test_the_proof_of_lemma_4_7_multiplies_by_the_logarithm_of_a_ratio_that_may_be_one() -> None:
    one, other = hellinger.law([10, 11], **EVEN), hellinger.law([11, 10], **EVEN)
    assert math.log(one[10, 11] / other[11, 10]) == pytest.approx(0.0, abs=1e-12), "equal normalisers"
    assert one[10, 11] != pytest.approx(other[10, 11]), "so that U₃ = 0 is not the score of the neighbour"


def test_the_loss_may_pass_epsilon_while_the_statement_holds() -> None:
    found = hellinger.loss(prior=(1e-4, 1e-4), n=1000, epsilon=20, delta=0.1)
    assert found.exact == pytest.approx(20.46, abs=0.005)
    assert found.valid
    assert float(hellinger.delta(20, prior=(1e-4, 1e-4), n=1000, epsilon=20, delta=0.1)) <= 0.1


def test_local_sensitivity_is_not_private() -> None:
    found = hellinger.loss(prior=(0.1, 0.1), n=200, epsilon=0.8, sensitivity="local")
    assert found.exact == pytest.approx(0.8214, abs=5e-5)
    assert float(found) == math.inf
    with pytest.raises(InvalidArgument, match="guarantees nothing"):
        hellinger.M_H([3, 4], prior=(1, 1), epsilon=0.8, sensitivity="local")


def test_theorem_4_1_has_the_candidates_of_two_cells_for_any_number_of_them() -> None:
    assert hellinger.theorem_4_1(epsilon=0.8, delta=1e-8, n=98).valid
    found = hellinger.theorem_4_1(epsilon=0.8, delta=1e-8, n=98, m=4)
    assert not found.valid
    assert float(found) == found.exact < found.printed


def test_captions_of_the_notes_take_n_candidates_and_the_last_one_another_n() -> None:
    captions = {n: hellinger.gamma(epsilon=0.8, delta=0.8, n=n, m=3).notes_caption for n in (100, 120, 150)}
    assert captions == pytest.approx({100: 0.0699407108115, 120: 0.0677791100173, 150: 0.06531}, abs=2e-6)


def test_the_global_sensitivity_of_a_caption_is_a_step_to_a_negative_count() -> None:
    assert float(hellinger.H([7, 4, 5], [8, 3, 5])) == pytest.approx(0.239992747797)
    assert float(hellinger.GS(prior=(7, 4, 5), n=100)) == pytest.approx(0.2336, abs=5e-5)


def test_scores_are_not_shared_by_two_candidates() -> None:
    assert float(hellinger.H([3, 7], [2, 8])) == pytest.approx(0.2768, abs=5e-5)
    assert float(hellinger.H([3, 7], [4, 6])) == pytest.approx(0.2457, abs=5e-5)
    assert hellinger.theorem_4_4([2, 6], prior=(1, 1)).exact == 1
    assert not hellinger.theorem_4_4([4, 4, 4], prior=(1, 1, 1)).valid


def test_equal_steps_are_not_equal_distances() -> None:
    one, other = hellinger.H([2, 5, 8], [3, 4, 8]), hellinger.H([2, 5, 8], [2, 4, 9])
    assert float(one) == pytest.approx(0.2981, abs=5e-5)
    assert float(other) == pytest.approx(0.2138, abs=5e-5)
    assert sum((4, 5, 3)) != sum((5, 5, 5)), "the notes count DL(4,5,3) as one step from DL(5,5,5)"


def test_without_the_two_of_2s_the_probabilities_are_other_ones() -> None:
    found = hellinger.steps([5, 5], **EVEN)
    doubled = hellinger.law([5, 5], prior=(1, 1), epsilon=0.8, delta=1e-8)
    squared = {k: share**2 for k, share in doubled.items()}
    assert found[1] == pytest.approx(doubled[4, 6] + doubled[6, 4])
    assert found[1] != pytest.approx((squared[4, 6] + squared[6, 4]) / sum(squared.values()), rel=0.05)


def test_whole_parameters_with_sum_n_plus_2_are_the_candidates_of_one_prior_only() -> None:
    for prior, right in (((1, 1), True), ((2, 1), False)):
        candidates = {tuple(hellinger.BI(k, prior=prior)) for k in hellinger.law([2, 2], **EVEN)}
        assert (candidates == {(a, 6 - a) for a in range(1, 6)}) == right


def test_a_release_that_is_taken_for_the_posterior_says_too_much() -> None:
    post = hellinger.M_H([49, 49], prior=(1, 1), epsilon=0.2, delta=1e-8, rng=np.random.default_rng(5))
    (low, high), (naive_low, naive_high) = post.posterior.interval()[0], post.naive.interval()[0]
    assert high - low > 2 * (naive_high - naive_low)
    assert post.posterior.mean.sum() == pytest.approx(1)
    found = hellinger.coverage(prior=(1, 1), n=98, epsilon=0.2, delta=1e-8)
    assert found.aware == pytest.approx(0.95)
    assert found.naive == pytest.approx(0.179, abs=1e-3)


def test_releases_of_more_tables_than_can_be_listed_and_of_other_mechanisms_are_read_too() -> None:
    large = hellinger.M_H([200, 300, 500, 1000], prior=(1,) * 4, epsilon=8, sensitivity="global")
    noisy = hellinger.laplace([49, 49], prior=(1, 1), epsilon=0.8)
    for post in (large, noisy):
        assert (post.posterior.interval()[:, 0] < post.posterior.mean).all()
    assert isinstance(post.posterior.naive, hellinger.Naive)


def test_distances_of_dirichlet_laws_are_ordered() -> None:
    u, v = [5, 5], [4, 6]
    h = float(hellinger.H(u, v))
    bounds = hellinger.tv_bounds(u, v)
    assert h**2 <= bounds.lower <= bounds.exact <= bounds.upper
    assert 2 * h**2 <= float(hellinger.kl(u, v)) <= np.log1p(float(hellinger.chi_squared(u, v)))
