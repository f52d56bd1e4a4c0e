"""Doubles behind a published gamma: how many values of the sampler round to it, and what an attacker makes of them.

The counts below come from numpy's algorithm and the doubles it runs on, not from draws. A gamma of shape s > 1 is b·V³
with b = s − 1/3, V = 1 + c·X, c = 1/√(9b) and X a normal variable by the ziggurat: multiples of x·2⁻⁵² up to 3.654, and
3.654 − ln(1 − U)/3.654 with U a multiple of 2⁻⁵³ beyond.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpbayes import ApproxDP, Dirichlet, Unit
from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.curator import Curator
from dpbayes.design.ranking import ranking
from dpbayes.jobs.tables import Tables
from dpbayes.mechanisms.dirichlet import (
    DIGITS,
    FINEST,
    LARGEST_CONCENTRATION,
    LARGEST_SHAPE,
    LARGEST_WEIGHT,
    UnroundedDirichlet,
    grid_for,
    on_grid,
)
from dpbayes.mechanisms.tuning import ConcentrationCurve
from dpbayes.release.format import Release
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.schema import Schema

REPLACE = Unit(adjacency="replace-one")
ADD = Unit(adjacency="add-remove")

TAIL = 3.6541528853610088
"""Where numpy's ziggurat for normal variables ends and its tail begins."""

RARE = 2.0**-40
"""Outcomes of this probability or less are left out of the counts: what they tell adds no more than that to δ."""


def one_gamma(shape: float, rng: np.random.Generator) -> float:
    """The sampler as it is counted below, step by step."""
    b = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9 * b)
    while True:
        x = rng.standard_normal()
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = rng.random()
        if u < 1.0 - 0.0331 * (x * x) * (x * x) or math.log(u) < 0.5 * x * x + b * (1.0 - v + math.log(v)):
            return b * v


@pytest.mark.parametrize("shape", [1.0001, 1.5, 2.0, 37.25, 1e6, 3.3e14, LARGEST_SHAPE])
def test_numpy_draws_gammas_by_the_algorithm_that_is_counted(shape):
    ours, theirs = np.random.default_rng(5), np.random.default_rng(5)
    assert [one_gamma(shape, ours) for _ in range(200)] == theirs.standard_gamma(shape, 200).tolist()


def test_normal_variables_lie_on_the_lattice_that_is_counted():
    """Layer by layer x = k·w with w = x_i·2⁻⁵², k < 2⁵²: no layer is coarser than the widest, 3.92·2⁻⁵²."""
    bits, floats = np.random.default_rng(9), np.random.default_rng(9)
    seen = 0
    for _ in range(3000):
        word = int(bits.integers(0, 2**64, dtype=np.uint64))
        x = floats.standard_normal()
        k = (word >> 9) & (2**52 - 1)
        if bits.bit_generator.state == floats.bit_generator.state and k:
            assert 0 < abs(x) / k <= 3.92 * 2.0**-52
            seen += 1
        bits.bit_generator.state = floats.bit_generator.state
    assert seen > 2500


def reachable(shape: float, low: float, high: float) -> float:
    """Fewest values of the sampler of this shape > 1 between two numbers, one layer of the ziggurat only.

    A layer with spacing d gives one V for each of its points, or every double V if c·d is finer than those.
    """
    b = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * b)
    v_low, v_high = (low / b) ** (1 / 3), (high / b) ** (1 / 3)
    width = (v_high - v_low) if high / low > 1.0001 else (high - low) / (3.0 * b * v_high**2)
    doubles = width / math.ulp(v_low)
    farthest = max(abs(v_low - 1.0), abs(v_high - 1.0)) / c
    spacing = 3.92 * 2.0**-52 if farthest < TAIL else 2.0**-53 / TAIL * math.exp(TAIL * (farthest - TAIL))
    return min(doubles, width / c / spacing)


def cells_of(shape: float, grid: float) -> list[tuple[float, float]]:
    """Published cells along the law of a gamma, from one rare end to the other."""
    law = stats.gamma(shape)
    cells = []
    for quantile in (RARE, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-3, 1 - 1e-6, 1 - 1e-9, None):
        value = float(law.isf(RARE) if quantile is None else law.ppf(quantile))
        if not math.isfinite(value) or value <= 0:
            continue
        at = float(on_grid(np.array([value]), grid)[0])
        step = step_at(math.nextafter(at, 0.0), grid)  # below a power of two steps may be half as long
        cells.append((0.5 * grid if at == grid else at - step / 2, at + step / 2))
    return cells


def step_at(value: float, grid: float) -> float:
    """The law of the rounding, as the documentation states it."""
    if value < 1.0:
        return grid
    power = math.floor(math.log2(value))
    return max(grid, 2.0 ** (power // 2 - 6), 2.0 ** (power + 1 - DIGITS))


SHAPES = [*np.geomspace(1.0 + 1e-9, LARGEST_SHAPE, 120).tolist(), 1.5, 2.0, 3.0]
CONCENTRATIONS = [1e-12, 1e-3, 0.1, 0.999, 1.0, 3.99, 4.0, 100.0, 1e6, 2.0**30, 1e12, LARGEST_CONCENTRATION]


def test_every_published_value_stands_for_a_million_values_of_the_sampler():
    """Shapes r·c + α from the concentration to the largest, which counts are cut to: the whole allowed range."""
    fewest = math.inf
    for concentration in CONCENTRATIONS:
        grid = Dirichlet(weight=1.0, concentration=concentration, unit=REPLACE).grid
        for shape in SHAPES:
            if shape >= max(concentration, 1.0):
                fewest = min(fewest, *(reachable(shape, *cell) for cell in cells_of(shape, grid)))
    assert fewest >= 2**20


def test_the_finest_grid_that_may_be_asked_for_is_safe_too():
    assert min(reachable(shape, *cell) for shape in SHAPES for cell in cells_of(shape, FINEST)) >= 2**20


def test_small_shapes_reach_a_million_values_for_one_exponential_variable_alone():
    """Gamma(a) = Gamma(a+1)·e^{−E/a}: for each E the cell is one of a gamma above shape 1, as wide relative to it."""
    for a in (1e-9, 1e-3, 0.05, 0.5, 0.999, 1.0):
        for low, high in cells_of(max(a, 0.05), FINEST):
            lift = max(1.5 / high, 1.0)  # an E at which the cell lies where Gamma(a+1) is likely
            assert reachable(a + 1.0, low * lift, high * lift) >= 2**20


def test_gammas_of_the_first_version_had_fewer_values_than_steps():
    """The failing case: a grid of 2⁻²⁰ standard deviations, N declared as 10⁹ (and what is accepted today)."""
    alpha, old_grid = 2.8e20, 2.0**13
    wide = 2.0**20 * old_grid  # doubles are coarser than the grid itself
    assert reachable(alpha, alpha, alpha + wide) == pytest.approx(wide * 2.0**52 / (3.0 * alpha), rel=0.01)
    assert old_grid * 2.0**52 / (3.0 * alpha) < 0.1
    with pytest.raises(InvalidArgument, match="Gaussian noise"):
        Dirichlet(weight=2.8e9, concentration=alpha, unit=REPLACE)


@pytest.mark.parametrize(
    "bad",
    [{"weight": 2 * LARGEST_WEIGHT}, {"concentration": 1.01 * LARGEST_CONCENTRATION}, {"concentration": (1, 1e15)}],
)
def test_parameters_that_doubles_cannot_carry_are_refused_in_one_sentence(bad):
    with pytest.raises(InvalidArgument, match="doubles cannot carry") as caught:
        Dirichlet(**{"weight": 1.0, "concentration": 1.0, "unit": REPLACE, **bad})
    assert str(caught.value).count(". ") == 0


@pytest.mark.parametrize("bad", [0.3, -1.0, 2.0**-17, 2.0**60, math.nan, math.inf])
def test_grids_are_powers_of_two_in_range(bad):
    with pytest.raises(InvalidArgument, match="grid"):
        Dirichlet(weight=1.0, concentration=1.0, unit=REPLACE, grid=bad)


def test_the_rounding_is_far_below_the_noise():
    for concentration in CONCENTRATIONS:
        if concentration >= 1.0:
            for shape in (concentration, 3 * concentration, LARGEST_SHAPE):
                step = step_at(shape, grid_for(concentration))
                assert step**2 / 12.0 <= 2e-3 * shape  # of the variance


def test_counts_beyond_the_largest_are_drawn_as_the_largest():
    mechanism = Dirichlet(weight=2.0**30, concentration=2.0**40, unit=ADD)
    most = mechanism.largest_count
    assert mechanism.weight * most + mechanism.concentration <= LARGEST_SHAPE
    above, at = (mechanism.gammas([most + more, 3], np.random.default_rng(1)) for more in (10**9, 0))
    assert above.tolist() == at.tolist()
    assert Dirichlet(weight=1e-200, concentration=1.0, unit=ADD).largest_count == 2**62
    with pytest.raises(InvalidArgument, match="least_count"):
        Dirichlet(weight=2.0**30, concentration=2.0**40, unit=ADD, least_count=most + 1)


def test_rounding_twice_changes_nothing_and_values_are_multiples_of_the_grid():
    values = np.random.default_rng(2).standard_gamma(np.geomspace(0.01, LARGEST_SHAPE, 4000))
    for grid in (FINEST, 0.5, 64.0):
        once = on_grid(values, grid)
        assert (on_grid(once, grid) == once).all()
        assert (once / grid == np.rint(once / grid)).all()
        assert (once >= grid).all()
        mantissas = np.frexp(once)[0] * 2.0**DIGITS
        assert (mantissas == np.rint(mantissas)).all()
        steps = np.array([step_at(value, grid) for value in values.tolist()])
        assert (np.abs(once - np.maximum(values, grid)) <= steps / 2).all()


@pytest.mark.parametrize("unit", [REPLACE, ADD])
@pytest.mark.parametrize("records", [10**9, 10**12])
def test_calibration_and_plan_take_integer_noise_where_doubles_end(unit, records):
    target = ApproxDP(epsilon=1, delta=1e-6)
    with pytest.raises(TargetUnreachable, match="Gaussian noise"):
        ConcentrationCurve(target=target, unit=unit).best(purpose="estimate", records=records)
    made = ranking(cells=3, records=records, target=target, unit=unit, repetitions=2)
    assert made.choice.name in ("gaussian", "laplace")
    assert ("dirichlet, estimate", "needs larger gammas than doubles carry") in made.impossible


def attack(mechanism: Dirichlet, tables: tuple[list[int], list[int]], draws: int, *, grid: float | None = None) -> int:
    """How often a table is told from its neighbour: by what could not have come from it, else by the likelihood.

    ``grid`` attacks gammas that are rounded to it as 0.1.0 did. A value is impossible for a shape when no double V
    lies in the cell that rounds to it.
    """
    rng = np.random.default_rng(11)
    shapes = [mechanism.weight * np.array(table) + mechanism.concentration for table in tables]
    right = 0
    for _ in range(draws):
        truth = int(rng.integers(2))
        if grid is None:
            z = mechanism.gammas(tables[truth], rng)
            step = np.array([step_at(value, mechanism.grid) for value in z.tolist()])
        else:
            z = np.maximum(np.rint(rng.standard_gamma(shapes[truth]) / grid), 1.0) * grid
            step = np.full(z.shape, grid)
        possible = [all(map(_can_come_from, z.tolist(), step.tolist(), shape.tolist())) for shape in shapes]
        likely = [float(stats.gamma.logpdf(z, shape).sum()) for shape in shapes]
        guess = int(likely[1] > likely[0]) if possible[0] == possible[1] else int(possible[1])
        right += guess == truth
    return right


def _can_come_from(value: float, step: float, shape: float) -> bool:
    b = shape - 1.0 / 3.0
    v = math.cbrt((value - step / 2) / b)
    for _ in range(5):  # the cube root may be off by some doubles
        v = math.nextafter(v, 0.0)
    for _ in range(12):
        if value - step / 2 <= b * (v * v * v) <= value + step / 2:
            return True
        v = math.nextafter(v, 2.0)
    return False


TABLES = ([120, 60, 20], [119, 61, 20])


def test_the_attack_identifies_what_the_first_version_published():
    """With the parameters that 0.1.0 took for (1, 10⁻⁶) and 10⁹ declared records."""
    first = UnroundedDirichlet(weight=2801312754.4507813, concentration=2.8012420222483638e20, unit=REPLACE)
    assert attack(first, TABLES, 60, grid=2.0**13) == 60


@pytest.mark.parametrize("records", [200, 10**7])
def test_the_attack_learns_no_more_than_is_claimed(records):
    check_attack(records, draws=300)


def check_attack(records: int, draws: int) -> None:
    mechanism = ConcentrationCurve(target=ApproxDP(epsilon=1, delta=1e-6), unit=REPLACE).best(
        purpose="estimate", records=records
    )
    most = 0.5 * (1.0 + mechanism.delta(0.0))  # half, and half of the distance of the two laws
    right = attack(mechanism, TABLES, draws)
    assert right <= stats.binom.ppf(1 - 1e-5, draws, most)
    assert right >= stats.binom.ppf(1e-5, draws, 0.5)


def published(tmp_path, records: int, mechanism: str, times: int) -> list[Release]:
    """Files of a table of 200 rows whose number of records is declared as something else."""
    attribute = Attribute(name="kind", categories=("a", "b", "c"), unknown="drop", missing="drop")
    schema = Schema(id="people", unit=REPLACE, attributes=(attribute,), records_guess=records)
    curator = Curator({"kind": ["a"] * 120 + ["b"] * 60 + ["c"] * 20}, schema)
    asked = Tables("kind", mechanism=mechanism)
    files = [tmp_path / f"{number}.json" for number in range(times)]
    for file in files:
        made = curator.release(asked, ApproxDP(epsilon=1, delta=1e-6))
        file.write_text(made.to_json(), encoding="utf-8")
    return [Release.load(file) for file in files]


def check_files(files: list[Release]) -> None:
    """Every published gamma could have come from the table and from each of its neighbours."""
    for release in files:
        (table,) = release.tables
        if table.kind == "noisy-counts":
            assert (table.values == np.rint(table.values)).all()
            continue
        made = release.paid[table.by].mechanism
        for value, count in zip(table.values, (120, 60, 20), strict=False):  # the fourth level is for dropped rows
            for neighbour in (count - 1, count, count + 1):
                shape = made.weight * neighbour + made.concentration
                assert _can_come_from(value, step_at(value, made.grid), shape)


@pytest.mark.parametrize(("mechanism", "records"), [("dirichlet", 10**7), ("auto", 10**12)])
def test_published_files_identify_no_table_whatever_number_of_records_is_declared(tmp_path, mechanism, records):
    check_files(published(tmp_path, records, mechanism, times=2))


@pytest.mark.slow
@pytest.mark.parametrize("records", [10**3, 10**5, 10**6, 10**7])
def test_many_published_files_identify_no_table(tmp_path, records):
    check_files(published(tmp_path, records, "dirichlet", times=100))


@pytest.mark.slow
@pytest.mark.parametrize("records", [200, 10**4, 10**6, 10**7, 2 * 10**7])
def test_the_attack_learns_no_more_than_is_claimed_in_many_releases(records):
    check_attack(records, draws=20_000)
