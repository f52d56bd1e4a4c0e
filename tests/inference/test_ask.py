"""Questions: what they mean, what they answer, and what they refuse."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.inference import GaussianNoise, Measurement, NotEstimable
from dpbayes.inference.ask import Asked, _quantiles
from dpbayes.inference.intervals import half_step, ratio
from dpbayes.inference.joint import JointPosterior
from dpbayes.inference.question import read

NAMES = {"sex": ("male", "female", "other"), "home town": ("north", "it's", "x - y", "w"), "age": ("0", "1", "2")}
LEVELS = {name: {level: place for place, level in enumerate(levels)} for name, levels in NAMES.items()}
SIZES = {name: len(levels) for name, levels in LEVELS.items()}
SHARES = np.random.default_rng(7).dirichlet(np.full(36, 0.7)).reshape(3, 4, 3)


def built(rng, counts, sigma, known=True):
    measured = []
    for place, axes in enumerate([("sex", "home town"), ("home town", "age"), ("sex", "age")]):
        clean = counts.sum(axis=(2, 0, 1)[place])
        values = clean + np.round(rng.normal(0, sigma, clean.shape))
        measured.append(Measurement(axes=axes, values=values, noise=GaussianNoise(sigma=sigma)))
    return JointPosterior(measured, SIZES, records=int(counts.sum()) if known else None)


QUESTIONS = {
    "count(sex='male')": lambda c: c[0].sum(),
    "count()": lambda c: c.sum(),
    "count(sex != male, age in (0, 2))": lambda c: c[1:, :, [0, 2]].sum(),
    "share(\"home town\"='it''s')": lambda c: c[:, 1].sum() / c.sum(),
    "share('home town'='x - y', sex=female) - share('home town'='x - y', sex=male)": lambda c: (
        (c[1, 2].sum() - c[0, 2].sum()) / c.sum()
    ),
    "share(age=1 | sex='female')": lambda c: c[1, :, 1].sum() / c[1].sum(),
    "share(age=1 | sex=female) - share(age=1 | sex=male)": lambda c: (
        c[1, :, 1].sum() / c[1].sum() - c[0, :, 1].sum() / c[0].sum()
    ),
    "share(age=1 | sex=female) / share(age=1 | sex=male)": lambda c: (
        c[1, :, 1].sum() / c[1].sum() / (c[0, :, 1].sum() / c[0].sum())
    ),
    "-(2 * count(sex=male) - count(age=0)) / 4 + 1": lambda c: 1 - (2 * c[0].sum() - c[..., 0].sum()) / 4,
    "count(sex=male) / count(sex=female)": lambda c: c[0].sum() / c[1].sum(),
    "count(age=0) * share(sex=male | age=0)": lambda c: c[0, :, 0].sum(),
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("question", QUESTIONS)
def test_without_noise_the_answer_is_the_truth(question, known):
    counts = np.random.default_rng(1).multinomial(5000, SHARES.ravel()).reshape(3, 4, 3)
    found = built(np.random.default_rng(2), counts, 1e-3, known).ask(question, LEVELS)
    assert found.estimate == pytest.approx(QUESTIONS[question](counts), rel=1e-3)
    assert found.lower <= found.estimate <= found.upper
    assert found.upper - found.lower < 0.01 * (1 + abs(found.estimate))


def test_sums_and_differences_have_the_exact_variance_of_the_law():
    counts = np.random.default_rng(1).multinomial(5000, SHARES.ravel()).reshape(3, 4, 3)
    posterior = built(np.random.default_rng(2), counts, 20.0)
    found = posterior.ask("0.3 * count(sex=male) - 0.7 * count(age=0)", LEVELS)
    weights = [{("sex",): np.array([1.0, 0, 0])}, {("age",): np.array([1.0, 0, 0])}]
    mean, covariance = posterior.functional(*weights)
    assert found.method == "normal"
    slope = np.array([0.3, -0.7])
    assert found.estimate == pytest.approx(slope @ mean)
    wanted = 1.959964 * np.sqrt(slope @ covariance @ slope) + 0.35
    assert found.upper - found.estimate == pytest.approx(wanted, rel=1e-5)
    assert posterior.ask("share(age in (1, 2) | sex=male)", LEVELS).method == "fieller"
    table = posterior.estimate(("age",), given=("sex",))
    single = posterior.ask("share(age=1 | sex=male)", LEVELS)
    assert (single.lower, single.upper) == pytest.approx((table.records.lower[0, 1], table.records.upper[0, 1]))
    wide = posterior.ask("share(age=1 | sex=male)", LEVELS, target="population")
    assert wide.upper - wide.lower > single.upper - single.lower


def test_a_share_of_whole_records_is_widened_by_the_half_step_of_the_part_less_the_share_of_the_whole():
    noise, mean, level = np.array([[5.0, 2.0], [2.0, 9.0]]), np.array([30.0, 40.0]), 0.95
    part, whole, covariance = noise[:1, 0], noise[1:2, 1], noise[:1, 1]
    slope = np.array([1.0, -mean[0] / mean[1]])
    spread = half_step(np.array([slope @ noise @ slope]), level)
    asked = Asked(built(np.random.default_rng(2), np.full((3, 4, 3), 50), 3.0), LEVELS)
    wanted = ratio(mean[:1], mean[1:], part + spread, covariance, whole, level, sampled=0.0)
    assert asked.fieller(mean, noise, level, "records") == pytest.approx([float(end[0]) for end in wanted])


def test_the_ends_of_a_multiple_of_a_count_are_multiples():
    posterior = built(np.random.default_rng(2), np.full((3, 4, 3), 50), 20.0)
    single, triple = (posterior.ask(f"{times} * count(sex=male) + 1", LEVELS) for times in (1, 3))
    assert (triple.lower - 1, triple.upper - 1) == pytest.approx((3 * (single.lower - 1), 3 * (single.upper - 1)))
    assert (triple.lower - 1) % 3 == (triple.upper - 1) % 3 == 0
    assert triple.lower < triple.estimate < triple.upper


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("", "expected count"),
        ("share()", "expected a condition"),
        ("share(sex)", "expected =, != or in at"),
        ("share(job title=cook)", "quotes around all words of a name that begins 'job', at character 11"),
        ("share(sex='men')", "sex has no level 'men'. It has 'male', 'female', 'other'"),
        ("share(town='north')", "no attribute 'town'"),
        ("share(sex='male'", r"expected \)"),
        ("count(sex='male' | age=0)", "expected a count without"),
        ("share(sex=male, sex=female)", "named twice"),
        ("share(sex=male) share(age=0)", "or the end"),
        ("count(age=0) / 0", "other than zero"),
        ("__import__('os')", "expected count"),
        ("share(sex='male", "cannot read on"),
        ("(" * 200 + "1" + ")" * 200, "inside each other"),
        (f"share(sex='male') - {'9' * 400} * share(sex='female')", "beyond 10⁻¹⁰⁰ to 10¹⁰⁰ at character 21"),
        (f"count(age=0) / 0.{'0' * 60}1 * 1{'0' * 60}", "beyond 10⁻¹⁰⁰ to 10¹⁰⁰"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(question, said):
    posterior = built(np.random.default_rng(2), np.full((3, 4, 3), 50), 3.0)
    with pytest.raises((InvalidArgument, SchemaError), match=said):
        posterior.ask(question, LEVELS)


def test_what_was_never_published_together_is_refused():
    posterior = built(np.random.default_rng(2), np.full((3, 4, 3), 50), 3.0)
    with pytest.raises(NotEstimable, match="sex × home town × age"):
        posterior.ask("share(sex=male, age=0, 'home town'=w)", LEVELS)


def test_the_usual_rules_of_arithmetic_hold():
    def evaluated(node):
        if isinstance(node, float):
            return node
        left, right = evaluated(node.left), evaluated(node.right)
        return {"+": left + right, "-": left - right, "*": left * right, "/": left / right}[node.sign]

    for text, value in {"1 - 2 - 3": -4, "2 + 3 * 4": 14, "8 / 4 / 2": 1, "-(1 - 3) * 2": 4, "2 * -3": -6}.items():
        assert evaluated(read(text)) == value


@pytest.mark.slow
@pytest.mark.parametrize("target", ["records", "population"])
def test_derived_answers_cover_as_often_as_they_say(target):
    asked = [
        question
        for question in QUESTIONS
        if question != "count()" and (target == "records" or "count" not in question or "/" in question)
    ]
    hits = dict.fromkeys(asked, 0)
    for repeat in range(1000):
        rng = np.random.default_rng([3, repeat])
        counts = rng.multinomial(3000, SHARES.ravel()).reshape(3, 4, 3)
        posterior = built(rng, counts, 15.0)
        truth = counts if target == "records" else SHARES * 3000
        for question in asked:
            found = posterior.ask(question, LEVELS, target=target)
            hits[question] += found.lower <= QUESTIONS[question](truth) <= found.upper
    rates = np.array(list(hits.values())) / 1000
    assert 0.93 < rates.mean() < 0.97, hits
    assert (rates > 0.92).all(), hits


def test_every_pair_of_names_is_a_question():
    posterior = built(np.random.default_rng(2), np.full((3, 4, 3), 50), 3.0)
    for first, second in itertools.permutations(SIZES, 2):
        found = posterior.ask(
            f"share('{first}'='{NAMES[first][0]}' | '{second}'='{NAMES[second][1]}')".replace("it's", "it''s"), LEVELS
        )
        assert found.lower < 1 / SIZES[first] < found.upper


def test_an_interval_from_draws_leaves_as_many_out_on_either_side():
    values = np.random.default_rng(3).permutation(1000).astype(float)
    assert _quantiles(values, 0.95) == (25.0, 974.0)
    assert _quantiles(np.append(values[values > 0], np.inf), 0.9)[1] == 950.0
