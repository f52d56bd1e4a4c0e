"""The tree of strongest dependences: against sums in exact arithmetic and against every tree there is."""

from __future__ import annotations

import itertools

import mpmath as mp
import numpy as np
import pytest

from dpbayes.models.bayes_net import information, tree


@pytest.mark.parametrize("seed", range(4))
def test_information_is_the_divergence_from_independence(seed: int) -> None:
    joint = np.random.default_rng(seed).dirichlet(np.full(12, 0.3)).reshape(3, 4)
    exact = mp.mpf(0)
    for row, column in itertools.product(range(3), range(4)):
        p = mp.mpf(joint[row, column])
        exact += p * mp.log(p / (mp.fsum(joint[row].tolist()) * mp.fsum(joint[:, column].tolist()))) if p else 0
    assert information(joint) == pytest.approx(float(exact), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_no_other_tree_has_more_information(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c", "d", "e"]
    whole = rng.dirichlet(np.full(2**5, 0.2)).reshape((2,) * 5)

    def pair(one: str, other: str) -> np.ndarray:
        kept = [names.index(one), names.index(other)]
        return whole.sum(axis=tuple(axis for axis in range(5) if axis not in kept))

    gains = {each: information(pair(*each)) for each in itertools.combinations(names, 2)}
    found = tree(names, pair, 1e12)  # so many records that no edge is left out

    def connected(edges: tuple[tuple[str, str], ...]) -> bool:
        reached = {"a"}
        for _ in edges:
            reached |= {name for edge in edges if set(edge) & reached for name in edge}
        return len(reached) == len(names)

    best = max(sum(gains[each] for each in edges) for edges in itertools.combinations(gains, 4) if connected(edges))
    assert len(found) == 4
    assert sum(gains[tuple(sorted(edge))] for edge in found) == pytest.approx(best)
    children = [child for _, child in found]
    assert sorted(children) == ["b", "c", "d", "e"]  # each has one parent, and the root has none


def test_what_chance_could_show_is_no_edge() -> None:
    table = np.array([[0.26, 0.24], [0.24, 0.26]])
    needed = 0.5 * np.log(1000.0) / 1000.0
    assert information(table) < needed
    assert tree(["a", "b"], lambda *_: table, 1000.0) == ()
    assert tree(["a", "b"], lambda *_: table, 1e5) == (("a", "b"),)
