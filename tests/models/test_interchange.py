from __future__ import annotations

import numpy as np
import pytest

from dpbayes.models.interchange import _pgmpy, query, to_net, to_uai
from dpbayes.models.network import Network


@pytest.fixture(scope="module")
def network():
    rng = np.random.default_rng(0)
    levels = {"rain": ("no", "yes"), "street": ("dry", "wet", "ice"), "umbrella": ("none", "open")}
    parents = {"rain": (), "street": ("rain",), "umbrella": ("rain", "street")}
    shape = {"rain": (1, 2), "street": (2, 3), "umbrella": (6, 2)}
    tables = {node: rng.dirichlet(np.ones(size[1]), size[0]) for node, size in shape.items()}
    return Network(levels=levels, parents=parents, tables=tables)


def test_pgmpy_reads_our_net_files(network, tmp_path):
    path = tmp_path / "weather.net"
    path.write_text(to_net(network), encoding="utf-8")
    model = _pgmpy("readwrite").NETReader(str(path)).get_model()
    assert set(model.edges()) == set(network.edges)
    for node, parents in network.parents.items():
        cpd = model.get_cpds(node)
        assert [str(state) for state in cpd.state_names[node]] == list(network.levels[node])
        order = [cpd.variables.index(name) for name in (*parents, node)]
        values = np.transpose(cpd.values, order).reshape(network.tables[node].shape)
        np.testing.assert_allclose(values, network.tables[node], atol=1e-12)


def test_pgmpy_finds_graph_and_numbers_in_our_uai_files(network, tmp_path):
    path = tmp_path / "weather.uai"
    path.write_text(to_uai(network), encoding="utf-8")
    reader = _pgmpy("readwrite").UAIReader(str(path))
    place = {node: f"var_{number}" for number, node in enumerate(network.nodes)}
    assert {tuple(edge) for edge in reader.edges} == {(place[parent], place[child]) for parent, child in network.edges}
    assert reader.domain == {place[node]: str(len(levels)) for node, levels in network.levels.items()}
    for node, (child, values) in zip(network.nodes, reader.tables, strict=True):
        assert child == place[node]
        # Its model takes the child's levels for the slowest, against the format; the numbers are as they stand.
        assert [float(value) for value in values] == network.tables[node].ravel().tolist()


def test_names_that_are_no_words_become_labels():
    odd = {"5 o'clock": ("a", "b"), "5_o_clock": ('say "x"', "back\\slash")}
    tables = {name: np.full((1, 2), 0.5) for name in odd}
    text = to_net(Network(levels=odd, parents=dict.fromkeys(odd, ()), tables=tables))
    assert "node n5_o_clock\n" in text
    assert "node n5_o_clock_\n" in text
    assert 'label = "5 o\'clock";' in text
    assert '"say \\"x\\""' in text


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
    assert query(network, asked, known)["shares"] == pytest.approx(np.array(expected), abs=1e-6)
    cells = np.indices([2] * len(network.nodes)).reshape(len(network.nodes), -1)
    coded = dict(zip(network.nodes, cells, strict=True))
    weights = np.exp(network.log_likelihood(coded))
    for name, level in known.items():
        weights = weights * (coded[name] == network.levels[name].index(level))
    table = np.zeros([2] * len(asked))
    np.add.at(table, tuple(coded[name] for name in asked), weights)
    assert table / table.sum() == pytest.approx(np.array(expected), abs=1e-6)
