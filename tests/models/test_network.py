from __future__ import annotations

import numpy as np
import pytest

from dpbayes.models.network import Network, _pgmpy, pick, to_bif, to_pgmpy


@pytest.fixture(scope="module")
def network():
    rng = np.random.default_rng(0)
    levels = {"rain": ("no", "yes"), "street": ("dry", "wet", "ice"), "umbrella": ("none", "open")}
    parents = {"rain": (), "street": ("rain",), "umbrella": ("rain", "street")}
    shape = {"rain": (1, 2), "street": (2, 3), "umbrella": (6, 2)}
    tables = {node: rng.dirichlet(np.ones(size[1]), size[0]) for node, size in shape.items()}
    return Network(levels=levels, parents=parents, tables=tables)


def enumerated(network, asked, known):
    cells = np.indices([len(network.levels[node]) for node in network.nodes]).reshape(len(network.nodes), -1)
    coded = dict(zip(network.nodes, cells, strict=True))
    weights = np.exp(network.log_likelihood(coded))
    for name, level in known.items():
        weights = weights * (coded[name] == network.levels[name].index(level))
    table = np.zeros([len(network.levels[name]) for name in asked])
    np.add.at(table, tuple(coded[name] for name in asked), weights)
    return table / table.sum()


def test_pgmpy_has_the_same_tables(network):
    model = to_pgmpy(network)
    assert model.check_model()
    same(model, network)


def test_pgmpy_reads_our_bif_files(network, tmp_path):
    path = tmp_path / "weather.bif"
    path.write_text(to_bif(network), encoding="utf-8")
    same(_pgmpy("readwrite").BIFReader(str(path)).get_model(), network)


def same(model, network):
    assert set(model.edges()) == set(network.edges)
    for node, parents in network.parents.items():
        cpd = model.get_cpds(node)
        order = [cpd.variables.index(name) for name in (node, *parents)]
        at = np.ix_(
            *([cpd.state_names[name].index(level) for level in network.levels[name]] for name in (node, *parents))
        )
        values = np.transpose(cpd.get_values().reshape(cpd.cardinality), order)[at]
        expected = network.tables[node].T.reshape(values.shape)
        np.testing.assert_allclose(values, expected, atol=1e-6)


def test_bif_files_keep_odd_names_and_every_digit():
    network = Network(
        levels={"a b": ("x, y", 'q"'), "c": ("(1]", "-2", "3")},
        parents={"a b": (), "c": ("a b",)},
        tables={"a b": np.array([[1 / 3, 2 / 3]]), "c": np.array([[0.1, 0.2, 0.7], [1e-9, 0.5, 0.5 - 1e-9]])},
    )
    lines = to_bif(network, "two words").splitlines()
    assert lines[0] == 'network "two words" {'
    assert '  type discrete [ 2 ] { "x, y", "q\\"" };' in lines
    assert f"  table {1 / 3!r}, {2 / 3!r};" in lines
    assert f'  ("q\\"") 1e-09, 0.5, {0.5 - 1e-9!r};' in lines


TWO = ("0", "1")
CLINIC = Network(  # pgmpy 1.0, tests/test_inference/test_ExactInferenceVariableElimination.py, build_bayesian_model
    levels=dict.fromkeys("ARJGQL", TWO),
    parents={"A": (), "R": (), "J": ("A", "R"), "G": (), "Q": ("J",), "L": ("J", "G")},
    tables={
        "A": np.array([[0.2, 0.8]]),
        "R": np.array([[0.4, 0.6]]),
        "J": np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.1, 0.9]]),
        "G": np.array([[0.6, 0.4]]),
        "Q": np.array([[0.9, 0.1], [0.2, 0.8]]),
        "L": np.array([[0.9, 0.1], [0.45, 0.55], [0.8, 0.2], [0.1, 0.9]]),
    },
)
SNOW = Network(  # the same file, build_snow_model
    levels={"Snow": ("yes", "no"), "Risk": ("yes", "no"), "Traffic": ("normal", "slow"), "Late": ("yes", "no")},
    parents={"Snow": (), "Risk": ("Snow",), "Traffic": ("Snow",), "Late": ("Risk", "Traffic")},
    tables={
        "Snow": np.array([[0.4, 0.6]]),
        "Risk": np.array([[0.8, 0.2], [0.4, 0.6]]),
        "Traffic": np.array([[0.4, 0.6], [0.65, 0.35]]),
        "Late": np.array([[0.45, 0.55], [0.85, 0.15], [0.1, 0.9], [0.7, 0.3]]),
    },
)


@pytest.mark.parametrize(
    ("network", "asked", "known", "expected"),
    [
        (CLINIC, ["J"], {}, [0.416, 0.584]),
        (CLINIC, ["J", "Q"], {}, [[0.3744, 0.0416], [0.1168, 0.4672]]),
        (CLINIC, ["J"], {"A": "0", "R": "1"}, [0.6, 0.4]),
        (CLINIC, ["J", "Q"], dict(zip("ARGL", "0001", strict=True)), [[0.736364, 0.081818], [0.036364, 0.145455]]),
        (SNOW, ["Snow"], {"Traffic": "slow"}, [0.533333, 0.466667]),
        (SNOW, ["Risk"], {"Traffic": "slow"}, [0.613333, 0.386667]),
        (SNOW, ["Late"], {"Traffic": "slow"}, [0.7920, 0.2080]),
    ],
)  # fmt: skip
def test_networks_answer_what_pgmpys_own_tests_expect(network, asked, known, expected):
    factor = _pgmpy("inference").VariableElimination(to_pgmpy(network)).query(asked, known, show_progress=False)
    shares = np.transpose(factor.values, [factor.variables.index(name) for name in asked])
    assert shares == pytest.approx(np.array(expected), abs=1e-6)
    assert enumerated(network, asked, known) == pytest.approx(np.array(expected), abs=1e-6)


def test_even_values_are_those_of_equal_steps_and_come_in_every_order_alike() -> None:
    rng = np.random.default_rng(11)
    for _ in range(50):
        groups, width, size = (int(each) for each in rng.integers(1, [9, 12, 400]))
        shares = np.round(rng.dirichlet(np.full(width, 0.5), groups), 2) + 1e-3
        rows, seed = rng.integers(groups, size=size), int(rng.integers(10**6))
        found = pick(shares, rows, np.random.default_rng(seed), even=True)
        stream = np.random.default_rng(seed).spawn(1)[0]
        stream.integers(2**64, size=size, dtype=np.uint64)
        ends = np.cumsum(shares, axis=1)
        ends = ends / ends[:, [-1]]
        for row, start in enumerate(stream.random(groups)):
            own = np.sort(found[rows == row])
            steps = (np.arange(own.size) + start) / max(own.size, 1)
            assert np.array_equal(own, np.searchsorted(ends[row, :-1], steps, side="right"))
    quarters = pick(np.full((24_000, 4), 0.25), np.repeat(np.arange(24_000), 4), np.random.default_rng(12), even=True)
    _, times = np.unique(quarters.reshape(-1, 4), axis=0, return_counts=True)
    assert times.size == 24
    assert float((np.square(times - 1000) / 1000).sum()) < 52.6  # χ² of 23 degrees of freedom: p = 0.0004
