"""Latent classes: gradients, the split of the noise, and a model that says what the table says."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.synthetic_intervals import Unsure
from tests.models.examples import ADD, tables, weather, weather_schema

from dpbayes import ApproxDP, Attribute, BayesNet, Curator, Release, Schema, Synthetic
from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.models import Latent, fission
from dpbayes.models.fission import best_fits, copies, dependence, largest
from dpbayes.models.mixture import Mixture, Statistics
from dpbayes.schema.public import Impossible

CLEAR = ApproxDP(epsilon=20.0, delta=1e-6)


@pytest.fixture(scope="module")
def release() -> Release:
    curator = Curator(weather(20_000), weather_schema(ADD), seed=3)
    return curator.release(Synthetic(target="rain"), CLEAR, estimates=False)


@pytest.fixture(scope="module")
def model(release: Release):
    return release.model()


def seen(rng: np.random.Generator) -> Statistics:
    sizes = {"a": 3, "b": 2, "c": 4}
    measured = [
        (names, rng.normal(100.0, 5.0, [sizes[name] for name in names]), np.full([sizes[name] for name in names], 25.0))
        for names in (("a",), ("b",), ("a", "b"), ("c", "b"), ("a", "b"))
    ]
    return Statistics.of(sizes, measured, 1000.0)


def test_fitting_descends() -> None:
    rng = np.random.default_rng(0)
    data = seen(rng)
    mixture = Mixture.start(data.starts, rng.dirichlet(np.ones(9)) * 3, 5, None, rng)
    before = mixture.misfit(data)
    mixture.fit(data, 0.1, 300)
    assert mixture.misfit(data) < 0.7 * before


@pytest.mark.parametrize("target", [None, 1])
def test_gradients_are_those_of_the_loss(target: int | None) -> None:
    rng = np.random.default_rng(0)
    data = seen(rng)
    mixture = Mixture.start(data.starts, rng.dirichlet(np.ones(9)) * 3, 5, target, rng)
    pull = 20.0

    def loss(weights: np.ndarray, logits: np.ndarray) -> float:
        mixture.weights, mixture.logits = weights.astype(np.float32), logits.astype(np.float32)
        share, laws = (each.astype(np.float64) for each in mixture.laws())
        two = laws.T @ (share[:, None] * laws) - data.two
        total = 0.5 * float((two**2 * data.two_precision).sum())
        total += 0.5 * float(((share @ laws - data.one) ** 2 * data.one_precision).sum())
        for at, (start, stop) in enumerate(zip(data.starts[:-1], data.starts[1:], strict=True)):
            if at != target:
                law = laws[:, start:stop]
                total += pull * float((share * (law * (np.log(law) - mixture.centre[start:stop])).sum(axis=1)).sum())
        return total

    weights, logits = mixture.weights.copy(), mixture.logits.copy()
    pulled = [0.0 if at == target else pull for at in (0, 0, 0, 1, 1, 2, 2, 2, 2)]
    of_weights, of_logits = mixture._gradients(data, np.array(pulled, dtype=np.float32))
    step = 1e-2
    for place in range(5):
        moved = np.zeros(5)
        moved[place] = step
        slope = (loss(weights + moved, logits) - loss(weights - moved, logits)) / (2 * step)
        assert of_weights[place] == pytest.approx(slope, rel=0.02, abs=0.05)
    for place in [(0, 0), (2, 5), (4, 8), (1, 3)]:
        moved = np.zeros(logits.shape)
        moved[place] = step
        slope = (loss(weights, logits + moved) - loss(weights, logits - moved)) / (2 * step)
        assert of_logits[place] == pytest.approx(slope, rel=0.02, abs=0.05)


def test_several_measurements_of_a_table_count_by_their_precision() -> None:
    first, second = np.array([[10.0, 20.0]]), np.array([[40.0, 50.0]])
    data = Statistics.of(
        {"a": 1, "b": 2},
        [(("a", "b"), first, np.full((1, 2), 1.0)), (("b", "a"), second.T, np.full((2, 1), 2.0))],
        100.0,
    )
    assert data.two[0, 1:] * 100 == pytest.approx([20.0, 30.0])
    assert data.two_precision[0, 1:] + data.two_precision[1:, 0] == pytest.approx([1.5 * 100**2] * 2)


def test_a_larger_table_counts_by_its_pairs() -> None:
    cube = np.arange(8.0).reshape(2, 2, 2)
    data = Statistics.of({"a": 2, "b": 2, "c": 2}, [(("a", "b", "c"), cube, np.ones((2, 2, 2)))], 28.0)
    assert data.two[:2, 4:] * 28 == pytest.approx(cube.sum(axis=1))
    assert not data.one_precision.any()


def test_copies_of_the_noise_are_independent_of_what_the_others_say() -> None:
    rng = np.random.default_rng(1)
    ones = [(("a", "b"), np.zeros((30, 30)), np.full((30, 30), 4.0))]
    gathered = []
    for _ in range(40):
        noisy = [(names, rng.normal(0.0, 2.0, (30, 30)), spread) for names, _, spread in ones]
        train, test = next(copies(Statistics.of({"a": 30, "b": 30}, noisy, 1.0), rng))
        gathered.append((train.two[:30, 30:].ravel(), test.two[:30, 30:].ravel()))
    one, other = (np.concatenate(part) for part in zip(*gathered, strict=True))
    assert np.corrcoef(one, other)[0, 1] == pytest.approx(0.0, abs=4 / np.sqrt(one.size))
    assert one.var() == pytest.approx(5.0, rel=0.05)
    assert other.var() == pytest.approx(20.0, rel=0.05)


def test_the_model_says_what_the_table_says(model) -> None:
    data = weather(20_000)
    levels = {name: np.array(model.published.schema[name].levels) for name in data}
    coded = {name: np.array([list(levels[name]).index(value) for value in data[name]]) for name in data}
    for names in combinations(data, 3):
        shape = [len(levels[name]) for name in names]
        cells = np.ravel_multi_index([coded[name] for name in names], shape)
        truth = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape) / 20_000
        found = model.shares(names)
        assert 0.5 * np.abs(found - truth).sum() < 0.02
        assert found.sum() == pytest.approx(1.0)
        assert found.sum(axis=2) == pytest.approx(model.shares(names[:2]), abs=1e-5)


def test_records_follow_the_model(model) -> None:
    drawn = model.sample(100_000, np.random.default_rng(0), even=True)
    joint = np.zeros((3, 5))
    np.add.at(joint, (drawn["street"], drawn["umbrella"]), 1e-5)
    assert np.abs(joint - model.shares(("street", "umbrella"))).max() < 0.01
    assert len(model.synthesise(100)) == 100


def test_pairs_with_the_target_lie_between_classes_and_posterior_and_agree_with_each_other(model) -> None:
    alone = model.shares(("rain",))
    drawn = model.sample(100_000, np.random.default_rng(0), even=True)
    classes = replace(model, last=None)
    for name in (name for name in model.joined if name != "rain"):
        found, own = model.shares((name, "rain")), classes.shares((name, "rain"))
        posterior = found.sum(axis=1, keepdims=True) * model.published.shares(("rain",), (name,))
        assert found == pytest.approx((own + posterior) / 2, abs=2e-4)
        assert found.sum(axis=0) == pytest.approx(alone, abs=1e-6)
        assert np.allclose(found.T, model.shares(("rain", name)))
        joint = np.zeros(found.shape)
        np.add.at(joint, (drawn[name], drawn["rain"]), 1e-5)
        assert joint == pytest.approx(found, abs=0.005)


def test_an_attribute_that_depends_on_nothing_stands_beside_the_target_s_tables(release: Release) -> None:
    model = release.model()
    alone = np.array([[0.25, 0.75]])
    laws = {"other": alone, **model.laws}
    wider = replace(model, laws=laws)
    for names in (("rain", "other", "street"), ("other", "umbrella", "rain", "street")):
        rest = tuple(name for name in names if name != "other")
        found, axis = wider._regressed(names, wider._mixed(names), wider.last), names.index("other")
        assert found.sum(axis=axis) == pytest.approx(model.shares(rest), abs=1e-6)
        assert found.sum(axis=tuple(at for at in range(len(names)) if at != axis)) == pytest.approx(alone[0])


@pytest.mark.parametrize(
    ("levels", "epsilon"),
    [(1, 1.0), (60, 5.0), (60, 10_000.0), (400, 0.5), (40_000, 5.0)],
    ids=["one level", "many levels", "hardly any noise", "faint", "too many for any pair"],
)
def test_any_target_gives_records(levels: int, epsilon: float) -> None:
    rng = np.random.default_rng(0)
    sizes = {"a": 3, "b": 4, "c": 3, "y": levels}
    columns = {name: rng.integers(0, min(size, 60), 3000).astype(str) for name, size in sizes.items()}
    columns["b"] = columns["a"]
    attributes = tuple(
        Attribute(name=name, categories=tuple(map(str, range(size))), unknown="drop", missing="other")
        for name, size in sizes.items()
    )
    curator = Curator(pa.table(columns), Schema(id="t", unit=ADD, attributes=attributes), seed=2)
    made = curator.release(Synthetic(target="y"), ApproxDP(epsilon=epsilon, delta=1e-6), estimates=False).model()
    assert len(made.synthesise(50)) == 50
    assert made.shares(("a", "y")).sum() == pytest.approx(1.0)


def test_everyone_builds_the_same_model(release: Release, model) -> None:
    again = Release.from_json(release.to_json()).model()
    assert again.shares(("rain", "day")) == pytest.approx(model.shares(("rain", "day")), abs=1e-5)


def test_any_release_of_pairs_will_do(release: Release) -> None:
    other = tables("street,umbrella", "rain,street", target=CLEAR, schema=weather_schema(ADD))
    assert len(release.tables) > len(other.tables)
    assert Latent().build(other).laws["street"].shape[1] == 3
    with pytest.raises(SchemaError, match="no table holds the target"):
        Latent(target="day").build(other)


def test_what_cannot_occur_is_in_no_table_and_no_record() -> None:
    schema = replace(weather_schema(ADD), impossible=(Impossible(levels={"rain": ("no",), "umbrella": ("open",)}),))
    curator = Curator(weather(2000), schema, seed=3)
    model = curator.release(Synthetic(), ApproxDP(epsilon=0.3, delta=1e-6), estimates=False).model()
    assert model.shares(("umbrella", "rain"))[2, 0] == 0.0
    drawn = model.synthesise(20_000).to_pydict()
    assert ("no", "open") not in set(zip(drawn["rain"], drawn["umbrella"], strict=True))


def test_a_sample_with_the_seed_of_the_records_is_not_tied_to_them(model) -> None:
    """The generator that drew even records would pick the same strata again."""
    records = model.synthesise(10_000, rng=np.random.default_rng(5)).column("rain").to_numpy(zero_copy_only=False)
    share = (records == "yes").mean()
    found = [
        (
            model.synthesise(2000, rng=np.random.default_rng(seed))
            .column("rain")
            .to_numpy(zero_copy_only=False)[np.random.default_rng(seed).permutation(2000)[:200]]
            == "yes"
        ).mean()
        for seed in range(60)
    ]
    assert np.mean(found) == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 200 / 60))
    assert np.std(found) == pytest.approx(np.sqrt(share * (1 - share) / 200), rel=0.4)


def test_intervals_of_what_was_not_measured_hold_the_truth(model) -> None:
    data = weather(20_000)
    schema, names = model.published.schema, ("rain", "street", "umbrella")
    coded = [np.array([schema[name].levels.index(value) for value in data[name]]) for name in names]
    shape = [len(schema[name].levels) for name in names]
    truth = np.bincount(np.ravel_multi_index(coded, shape), minlength=int(np.prod(shape))).reshape(shape)
    lower, upper = Unsure(model).interval(names, 0.9)
    assert ((lower <= truth) & (truth <= upper)).mean() > 0.85
    assert (upper - lower).mean() < 200


def test_a_tree_is_learned_from_pairs(release: Release) -> None:
    network = release.model(BayesNet()).network
    assert {frozenset(edge) for edge in network.edges} == {
        frozenset(("rain", "street")),
        frozenset(("rain", "umbrella")),
    }
    assert network.parents["day"] == ()


def test_what_the_model_lacks_is_said(model) -> None:
    with pytest.raises(SchemaError, match="no attribute 'snow'"):
        model.shares(("snow",))
    with pytest.raises(InvalidArgument, match="each once"):
        model.shares(("rain", "rain"))
    with pytest.raises(InvalidArgument, match="no graph"):
        _ = model.network


def test_attributes_that_depend_on_nothing_are_pulled_hardest() -> None:
    rng = np.random.default_rng(0)
    shares = np.concatenate([rng.dirichlet(np.ones(size)) for size in (3, 2, 4)])
    mixture = Mixture.start(seen(rng).starts, shares, 5, None, rng)
    mixture.logits[:, 3:5] = mixture.centre[3:5] + 0.1 * rng.standard_normal((5, 2))
    shared = mixture._shared()
    assert shared[3] == shared[4] > 2 * max(shared[0], shared[5])


def three(rng: np.random.Generator, records: float) -> tuple[Statistics, np.ndarray]:
    """Noisy pairs of three attributes, of which the first two depend on each other; and the true law of these."""
    even = np.full((4, 4), 1 / 16)
    linked = 0.5 * even + 0.5 * np.eye(4) / 4
    pairs = {("a", "b"): linked, ("a", "c"): even, ("b", "c"): even}
    noisy = [
        (names, records * shares + rng.normal(0, 20, (4, 4)), np.full((4, 4), 400.0)) for names, shares in pairs.items()
    ]
    return Statistics.of({"a": 4, "b": 4, "c": 4}, noisy, records), linked


def test_a_quick_look_tells_dependent_pairs_from_others() -> None:
    rng = np.random.default_rng(0)
    data, linked = three(rng, 1e4)
    found = dependence(data, np.full(12, 0.25), None)
    assert found[0, 1] == pytest.approx(0.5 * np.abs(linked - 1 / 16).sum(), rel=0.2)
    assert max(found[0, 2], found[1, 2]) < 0.25 * found[0, 1]


@pytest.mark.parametrize("records", [1000.0, 5000.0])
def test_a_path_that_stops_early_chooses_what_the_whole_one_chooses(records: float, monkeypatch) -> None:
    data, _ = three(np.random.default_rng(1), records)
    reached = []
    monkeypatch.setattr(fission, "largest", lambda misfits: reached.append(len(misfits)) or largest(misfits))
    stopped = best_fits(data, np.full(12, 0.25), 10, None, np.random.default_rng(0), whole=0)
    assert reached[-1] < len(fission.PULLS)
    monkeypatch.setattr(fission, "PAST", len(fission.PULLS))
    whole = best_fits(data, np.full(12, 0.25), 10, None, np.random.default_rng(0), whole=0)
    assert reached[-1] == len(fission.PULLS)
    assert stopped.pull == whole.pull
    for (one, _), (other, _) in zip(stopped.folds, whole.folds, strict=True):
        assert np.array_equal(one.logits, other.logits)


def test_misfits_that_rise_among_weak_pulls_end_nothing(monkeypatch) -> None:
    curve = [0.65, 0.70, 0.68, 0.60, 0.40, 0.20, 0.05, 0.0, 0.2, 0.6, 1.3, 2.4]
    data, _ = three(np.random.default_rng(1), 1000.0)
    monkeypatch.setattr(Mixture, "misfit", lambda fit, _: curve[(fit.steps - 300) // 50] + 1e-3 * fit.weights[0] ** 2)
    assert best_fits(data, np.full(12, 0.25), 10, None, np.random.default_rng(0), whole=0).pull == fission.PULLS[7]


def test_the_strongest_pull_within_a_standard_error_is_taken() -> None:
    best = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    noise = np.array([0.2, -0.2, 0.1, -0.1, 0.0])
    error = noise.std(ddof=1) / np.sqrt(5)
    misfits = [best + 1, best, best + noise + 0.9 * error, best + noise + 1.1 * error]
    assert largest(np.array(misfits)) == 2
    assert largest(np.array(misfits[:1])) == 0
