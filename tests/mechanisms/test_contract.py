"""The contract that every mechanism keeps."""

from __future__ import annotations

import copy
import itertools
import json
import math
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import numpy as np
import pytest

from dpbayes import Cost, Dirichlet, Gaussian, Laplace, Unit
from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.hellinger.baselines import PosteriorExponential, PosteriorLaplace
from dpbayes.hellinger.mechanism import Hellinger
from dpbayes.mechanisms import Stated
from dpbayes.mechanisms.dirichlet import UnroundedDirichlet
from dpbayes.mechanisms.kinds import KINDS, TableNoise, from_record
from dpbayes.mechanisms.selection import Selection
from dpbayes.mechanisms.stated import ForeignEvent, StatedRDP
from dpbayes.mechanisms.subsampled import subsampled
from dpbayes.mechanisms.sum_zero import SumZeroLaplace
from dpbayes.mechanisms.threshold import Threshold
from dpbayes.mechanisms.urn import PseudoRecords
from dpbayes.privacy.adaptive import AdaptiveDP
from dpbayes.privacy.convert import gaussian_delta
from dpbayes.privacy.cost import Priced
from dpbayes.privacy.pld import epsilon_of
from dpbayes.schema import Adjacency, Sensitivity

REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)
CHANGE = Unit(adjacency=Adjacency.ADD_REMOVE)
MANY = Unit(adjacency=Adjacency.REPLACE_ONE, max_rows=3)
MARKER = 987654321
"""A count that no message may repeat."""

EXAMPLES: list[Priced] = [
    Dirichlet(weight=0.5, concentration=6.0, unit=REPLACE),
    Dirichlet(weight=1.0, concentration=(2.0, 5.0, 3.0), unit=REPLACE, least_count=1),
    Dirichlet(weight=0.5, concentration=6.0, unit=CHANGE),
    Dirichlet(weight=0.2, concentration=8.0, unit=MANY),
    Dirichlet(weight=0.2, concentration=8.0, unit=REPLACE, sensitivity=Sensitivity(l1=1.5, l2_squared=1.0, linf=0.75)),
    Dirichlet(weight=0.02, concentration=0.3, unit=CHANGE, grid=0.25),
    UnroundedDirichlet(weight=9.0, concentration=1e4, unit=CHANGE),
    PseudoRecords(weight=0.5, concentration=6.0, records=40, unit=REPLACE),
    PseudoRecords(weight=1.0, concentration=(2.0, 5.0, 3.0), records=7, unit=REPLACE),
    PseudoRecords(weight=0.5, concentration=6.0, records=40, unit=CHANGE),
    PseudoRecords(weight=0.2, concentration=8.0, records=10**9, unit=MANY, least_count=2),
    Gaussian(sigma=3.0, unit=REPLACE),
    Gaussian(sigma=0.6, unit=CHANGE),
    Gaussian(sigma=9.0, unit=MANY),
    Gaussian(sigma=5e4, unit=CHANGE),
    Laplace(scale=4.0, unit=REPLACE),
    Laplace(scale=4.0, unit=CHANGE),
    Laplace(scale=40.0, unit=MANY),
    SumZeroLaplace(scale=4.0, cells=3, unit=REPLACE),
    SumZeroLaplace(scale=40.0, cells=3, unit=MANY),
    Selection(sharpness=0.7, unit=REPLACE),
    Selection(sharpness=12.0, unit=CHANGE),
    Threshold(scale=4.0, threshold=60, unit=REPLACE),
    Threshold(scale=4.0, threshold=40, unit=CHANGE),
    Threshold(scale=40.0, threshold=900, unit=MANY),
    Stated(epsilon_stated=0.7, delta_stated=0.0, unit=REPLACE, what="a map"),
    Stated(epsilon_stated=0.7, delta_stated=1e-7, unit=CHANGE, what="a map"),
    StatedRDP(order=9.0, epsilon_stated=0.2, unit=CHANGE, what="a map"),
    ForeignEvent.from_record(
        {
            "event": {"class": "GaussianDpEvent", "noise_multiplier": 2.0},
            "unit": CHANGE.record(),
            "what": "another library's map",
        }
    ),
    ForeignEvent.from_record(
        {
            "event": {"class": "LaplaceDpEvent", "noise_multiplier": 3.0},
            "unit": CHANGE.record(),
            "what": "another library's map",
        }
    ),
    Hellinger(prior=(1.0, 1.0), total=20, sharpness=0.8, smoothing=0.0, calibration="proved", unit=REPLACE),
    PosteriorExponential(prior=(1.0, 1.0), total=20, sharpness=1.0, score="kl", unit=REPLACE),
    PosteriorLaplace(prior=(1.0, 1.0, 2.0), total=20, scale=2.0, truncated=True, unit=REPLACE),
    subsampled(Laplace(scale=4.0, unit=CHANGE), 0.2),
    subsampled(Gaussian(sigma=3.0, unit=REPLACE), 0.5),
]
every = pytest.mark.parametrize("mechanism", EXAMPLES, ids=lambda m: f"{type(m).__name__}-{EXAMPLES.index(m)}")
NOISES = [
    m
    for m in EXAMPLES
    if isinstance(m, (Dirichlet, PseudoRecords, TableNoise))
    and not isinstance(m, UnroundedDirichlet)
    and getattr(m, "records", 1) < 100
]
every_noise = pytest.mark.parametrize("mechanism", NOISES, ids=lambda m: f"{type(m).__name__}-{EXAMPLES.index(m)}")


def test_every_kind_of_record_is_under_contract() -> None:
    assert {mechanism.record()["mechanism"] for mechanism in EXAMPLES} == set(KINDS)


@every
def test_it_is_frozen_and_hashable(mechanism: Priced) -> None:
    assert is_dataclass(mechanism)
    for field in fields(mechanism):
        with pytest.raises(FrozenInstanceError):
            setattr(mechanism, field.name, None)
    assert hash(mechanism) == hash(copy.deepcopy(mechanism))
    assert not hasattr(mechanism, "__dict__")


@every
def test_its_record_round_trips_through_json(mechanism: Priced) -> None:
    record = json.loads(json.dumps(mechanism.record(), allow_nan=False))
    again = from_record(record)
    assert again == mechanism
    assert again.record() == mechanism.record()
    assert again.renyi(2.0) == mechanism.renyi(2.0)


@every
def test_a_gaussian_shift_covers_it_and_a_ledger_never_prices_it_below_its_exact_cost(mechanism: Priced) -> None:
    cost = Cost.of(mechanism)
    mu, betrayed = cost.shift
    if math.isfinite(mu):
        for epsilon in (0.0, 0.3 * mu, mu, 3.0 * mu, 6.0 * mu):
            assert mechanism.delta(epsilon) <= (gaussian_delta(mu, epsilon) + betrayed) * (1 + 1e-9)
    for rule in ("gaussian", "renyi"):
        limit = AdaptiveDP(epsilon=4.0, delta=1e-6, rule=rule)
        assert limit.part(cost) > 0
        if limit.part(cost) <= 1:
            assert mechanism.epsilon(1e-6) <= limit.amount(cost) * (1 + 1e-9)


@every
def test_a_record_with_a_missing_field_is_refused(mechanism: Priced) -> None:
    record = mechanism.record()
    for name in record:
        if name != "mechanism":
            broken = {key: value for key, value in record.items() if key != name}
            with pytest.raises(InvalidArgument):
                from_record(broken)


@every
@pytest.mark.parametrize("junk", [-1, "x", [], [[]], {"a": 1}, math.nan, True])
def test_a_record_with_a_senseless_field_is_refused(mechanism: Priced, junk: object) -> None:
    record = mechanism.record()
    for name, value in record.items():
        if name in ("mechanism", "what") or type(value) is type(junk):
            continue
        with pytest.raises(DpbayesError):
            from_record({**record, name: junk})


@every
def test_divergences_grow_with_the_order_and_end_in_the_pure_cost(mechanism: Priced) -> None:
    orders = [1.0001, 1.01, 1.5, 2.0, 3.0, 8.0, 30.0, 1e3, 1e6, math.inf]
    values = [mechanism.renyi(order) for order in orders]
    assert all(a <= b * (1 + 1e-12) for a, b in itertools.pairwise(values))
    assert values[0] > 0


@every
def test_the_concentrated_cost_bounds_the_divergences_below_omega(mechanism: Priced) -> None:
    for omega in (1.5, 3.0, 9.0):
        rho = mechanism.concentrated(omega)
        for part in (0.01, 0.4, 0.8, 0.999999):
            order = 1 + part * (omega - 1)
            assert mechanism.renyi(order) <= rho * order * (1 + 1e-12)


@every
def test_orders_beyond_the_limit_cost_infinity_and_raise_nothing(mechanism: Priced) -> None:
    assert mechanism.renyi(1e12) <= math.inf
    if isinstance(mechanism, Dirichlet):
        assert mechanism.renyi(1e12) == mechanism.concentrated(1e12) == math.inf


@every
def test_delta_falls_with_epsilon_and_epsilon_with_delta(mechanism: Priced) -> None:
    deltas = [mechanism.delta(epsilon) for epsilon in np.linspace(0, 6, 25)]
    assert all(a >= b for a, b in itertools.pairwise(deltas))
    assert 0 <= deltas[-1] <= deltas[0] <= 1
    epsilons = [mechanism.epsilon(delta) for delta in (1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.9)]
    assert all(a >= b for a, b in itertools.pairwise(epsilons))
    assert min(epsilons) >= 0


@every
def test_epsilon_is_the_smallest_with_its_delta(mechanism: Priced) -> None:
    for delta in (1e-10, 1e-6, 1e-2):
        epsilon = mechanism.epsilon(delta)
        if math.isfinite(epsilon):
            assert mechanism.delta(epsilon) <= delta * (1 + 1e-9)
        if 0 < epsilon < math.inf:
            assert mechanism.delta(epsilon * (1 - 1e-3)) > delta * (1 - 1e-6) or isinstance(
                mechanism, (Stated, StatedRDP)
            )


@every
def test_its_divergences_imply_nothing_better_than_its_profile(mechanism: Priced) -> None:
    cost = Cost.of(mechanism)
    for delta in (1e-8, 1e-4):
        assert mechanism.epsilon(delta) <= cost.renyi_epsilon(delta)[1] * (1 + 1e-9)
        assert mechanism.epsilon(delta) <= mechanism.renyi(math.inf)


@pytest.mark.parametrize("mechanism", [m for m in EXAMPLES if Cost.of(m).exact], ids=lambda m: type(m).__name__)
def test_its_distribution_dominates_its_profile(mechanism: Priced) -> None:
    scale = mechanism.epsilon(1e-3) or mechanism.epsilon(1e-9) or 1.0
    pld = mechanism.pld(scale / 37)
    for share in np.linspace(0, 2.2, 12):
        assert float(pld.delta(share * scale)) >= mechanism.delta(share * scale) * (1 - 1e-9)
    assert epsilon_of(pld, 1e-6) >= mechanism.epsilon(1e-6) * (1 - 1e-9)


@every
def test_repeating_it_costs_k_times_in_divergence_and_less_in_epsilon(mechanism: Priced) -> None:
    cost = Cost.of(mechanism, 5)
    assert cost.renyi(1.7) == pytest.approx(5 * mechanism.renyi(1.7), rel=1e-12)
    assert mechanism.epsilon(1e-6) <= cost.epsilon(1e-6) * (1 + 1e-3)
    if math.isfinite(mechanism.epsilon(2e-7)):
        assert cost.epsilon(1e-6) <= 5 * mechanism.epsilon(2e-7) * (1 + 2e-2) + 1e-9


@every
@pytest.mark.parametrize("bad", [1.0, 0.0, -3.0, math.nan, "2", None, True, [0.5]])
def test_orders_lie_above_one(mechanism: Priced, bad: object) -> None:
    with pytest.raises(InvalidArgument, match="order"):
        mechanism.renyi(bad)


@every
@pytest.mark.parametrize("bad", [1.0, 0.0, -3.0, math.nan, "2", None, True, [0.5]])
def test_omegas_lie_above_one(mechanism: Priced, bad: object) -> None:
    with pytest.raises(InvalidArgument, match=r"order|omega"):
        mechanism.concentrated(bad)


@every
@pytest.mark.parametrize("bad", [0.0, 1.0, -0.5, 1.5, math.nan, math.inf, "1e-6", None, True])
def test_deltas_lie_between_zero_and_one(mechanism: Priced, bad: object) -> None:
    with pytest.raises(InvalidArgument, match="delta"):
        mechanism.epsilon(bad)


@every
@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, "1", None, True])
def test_epsilons_are_finite_and_not_negative(mechanism: Priced, bad: object) -> None:
    with pytest.raises(InvalidArgument, match="epsilon"):
        mechanism.delta(bad)


MAKERS = {
    "weight": lambda value: Dirichlet(weight=value, concentration=1.0, unit=REPLACE),
    "concentration": lambda value: Dirichlet(weight=1.0, concentration=value, unit=REPLACE),
    "grid": lambda value: Dirichlet.from_record(
        {**Dirichlet(weight=1.0, concentration=1.0, unit=REPLACE).record(), "grid": value}
    ),
    "sigma": lambda value: Gaussian(sigma=value, unit=REPLACE),
    "scale": lambda value: Laplace(scale=value, unit=REPLACE),
    "epsilon": lambda value: Stated(epsilon_stated=value, delta_stated=0.0, unit=REPLACE, what="x"),
}


@pytest.mark.parametrize("bad", [0, 0.0, -1.0, -math.inf, math.inf, math.nan, True, "1", None, 1j, {}, 10**400])
@pytest.mark.parametrize("name", MAKERS)
def test_parameters_are_positive_and_finite_numbers(name: str, bad: object) -> None:
    with pytest.raises(InvalidArgument, match=name) as caught:
        MAKERS[name](bad)
    assert str(caught.value).count(".") <= str(bad).count(".") + 1  # one sentence


@pytest.mark.parametrize("number", [2, np.int64(2), np.float64(2.0), np.float32(2.0)])
@pytest.mark.parametrize("name", MAKERS)
def test_whole_numbers_and_numpy_numbers_are_numbers(name: str, number: object) -> None:
    mechanism = MAKERS[name](number)
    assert mechanism == MAKERS[name](2.0)
    assert from_record(json.loads(json.dumps(mechanism.record()))) == mechanism


@pytest.mark.parametrize("bad", [None, "replace", "add-remove:0", "replace-one:", 1])
@pytest.mark.parametrize(
    "make",
    [
        lambda unit: Dirichlet(weight=1.0, concentration=1.0, unit=unit),
        lambda unit: PseudoRecords(weight=1.0, concentration=1.0, records=3, unit=unit),
        lambda unit: Gaussian(sigma=1.0, unit=unit),
        lambda unit: Laplace(scale=1.0, unit=unit),
        lambda unit: Stated(epsilon_stated=1.0, delta_stated=0.0, unit=unit, what="x"),
    ],
    ids=["Dirichlet", "PseudoRecords", "Gaussian", "Laplace", "Stated"],
)
def test_the_unit_is_a_privacy_unit(make, bad: object) -> None:
    with pytest.raises(InvalidArgument, match="unit"):
        make(bad)


BAD_COUNTS = [
    [MARKER, -1],
    [MARKER, 0.5],
    [MARKER, math.nan],
    [MARKER, math.inf],
    [MARKER, -math.inf],
    [[MARKER, 1], [2]],
    [MARKER, "x"],
    [MARKER, None],
    [MARKER, 2**63],
    [MARKER, 10**30],
    [MARKER, 1e19],
    [MARKER, True + 1j],
    np.array([True, False]),
    MARKER,
    [],
    np.zeros((0, 3)),
    str(MARKER),
    {MARKER: 1},
    None,
    object(),
]


@every_noise
@pytest.mark.parametrize("counts", BAD_COUNTS, ids=range(len(BAD_COUNTS)))
def test_wrong_counts_are_refused_and_never_repeated(mechanism: Priced, counts: object) -> None:
    if getattr(mechanism, "sensitivity", None) is not None and counts is BAD_COUNTS[1]:
        counts = [MARKER, -0.5]  # with a sensitivity of its own a vector may hold parts of one
    with pytest.raises(DpbayesError) as caught:
        mechanism.draw(counts, np.random.default_rng(1))
    chain: BaseException | None = caught.value
    while chain is not None:
        assert str(MARKER) not in str(chain)
        chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)
    assert "counts" in str(caught.value) or "cells" in str(caught.value)


@every_noise
def test_tables_of_the_wrong_shape_are_refused_without_their_counts(mechanism: Priced) -> None:
    if isinstance(mechanism, (Dirichlet, PseudoRecords)) and isinstance(mechanism.concentration, tuple):
        for counts in ([MARKER] * 2, [MARKER] * 4, [[MARKER, 1], [2, 3]]):
            with pytest.raises(InvalidArgument, match="cells") as caught:
                mechanism.draw(counts, np.random.default_rng(1))
            assert str(MARKER) not in str(caught.value)


@every_noise
def test_whole_floats_and_unsigned_counts_are_counts(mechanism: Priced) -> None:
    for counts in ([1.0, 2.0, 3.0], np.array([1, 2, 3], np.uint8), np.array([1, 2, 3], np.float32), (1, 2, 3)):
        assert np.shape(mechanism.draw(counts, np.random.default_rng(1))) == (3,)


@every_noise
def test_a_generator_decides_the_draw_and_the_table_is_left_alone(mechanism: Priced) -> None:
    table = np.array([4, 0, 9])
    one, other = (mechanism.draw(table, np.random.default_rng(8)) for _ in range(2))
    assert (one == other).all()
    assert table.tolist() == [4, 0, 9]


@every
def test_its_repr_tells_its_parameters_and_nothing_of_the_data(mechanism: Priced) -> None:
    if hasattr(mechanism, "draw") and mechanism in NOISES:
        before = repr(mechanism)
        mechanism.draw([MARKER, 1, 2], np.random.default_rng(1))
        assert repr(mechanism) == before
        assert str(MARKER) not in before
    assert type(mechanism).__name__ in repr(mechanism)


@every
def test_curves_of_arrays_are_curves_of_their_numbers(mechanism: Priced) -> None:
    epsilons, deltas, orders = np.array([[0.1, 1.0], [2.0, 4.0]]), np.array([1e-9, 1e-3]), [1.5, 3.0]
    for each in (mechanism, Cost.of(mechanism)):
        assert each.delta(epsilons).tolist() == [[each.delta(float(e)) for e in row] for row in epsilons]  # type: ignore[arg-type, attr-defined]
        assert each.epsilon(deltas).tolist() == [each.epsilon(float(d)) for d in deltas]  # type: ignore[arg-type, attr-defined]
        assert each.renyi(orders).tolist() == [each.renyi(order) for order in orders]  # type: ignore[arg-type, attr-defined]


@pytest.mark.parametrize("wrong", [2.5, True, "3", None])
@pytest.mark.parametrize("mechanism", EXAMPLES, ids=str)
def test_what_is_declared_as_a_whole_number_is_one(mechanism: Priced, wrong: object) -> None:
    for field in fields(mechanism):
        if field.type == "int" and field.name != "least_count":  # counts are whole: 2.5 is no more than 3
            with pytest.raises(InvalidArgument, match=field.name):
                replace(mechanism, **{field.name: wrong})


@pytest.mark.parametrize("none", [0, -1])
def test_a_table_has_a_cell_and_a_threshold_is_above_zero(none: int) -> None:
    with pytest.raises(InvalidArgument, match="cells"):
        SumZeroLaplace(scale=4.0, cells=none, unit=REPLACE)
    with pytest.raises(InvalidArgument, match="threshold"):
        Threshold(scale=4.0, threshold=none, unit=REPLACE)
