from __future__ import annotations

import numpy as np
import pytest

from dpbayes.models.interchange import _pgmpy, to_net, to_uai
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
