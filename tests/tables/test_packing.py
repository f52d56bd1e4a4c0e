from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.contract import schema_of

from dpbayes.schema.attribute import Attribute
from dpbayes.schema.marginal import Marginal
from dpbayes.tables.engine import PACKED_CELLS, add_rows, pack, unpack


def schema_with(*sizes):
    """Attributes a0, a1, … with so many categories."""
    return schema_of(
        *(
            Attribute(name=f"a{position}", categories=tuple(map(str, range(size))), missing="other")
            for position, size in enumerate(sizes)
        )
    )


SCHEMA = schema_with(2, 3, 1, 9, 30, 99)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.sampled_from(SCHEMA.names), min_size=1, max_size=4, unique=True), min_size=1, max_size=8))
def test_every_marginal_lies_in_a_table_that_is_small_or_was_asked_for(asked):
    marginals = [Marginal(tuple(names)) for names in asked]
    tables = pack(SCHEMA, marginals)
    assert all(any(set(names) <= set(table.names) for table in tables) for names in asked)
    assert all(table.size <= PACKED_CELLS or set(table.names) in map(set, asked) for table in tables)
    assert not any(set(one.names) < set(other.names) for one, other in itertools.permutations(tables, 2))


def test_counts_beyond_32_bits_stay_exact():
    marginals = [Marginal("a0"), Marginal("a1")]
    (table,) = pack(SCHEMA, marginals)
    cells = np.full(table.size, 2**40, dtype=np.int64)
    add_rows(cells, table, {"a0": np.array([1], np.uint8), "a1": np.array([4], np.uint8)})
    two, three = unpack(SCHEMA, marginals, [table], [cells])
    assert two.array.tolist() == [4 * 2**40 + 1, 4 * 2**40, 4 * 2**40]
    assert three.array.tolist() == [3 * 2**40] * 3 + [3 * 2**40 + 1]


@pytest.mark.parametrize("sizes", [(254,), (255, 255), (256, 255), (65535,), (300, 300)])
def test_keys_at_the_edge_of_their_type_are_exact(sizes):
    schema = schema_with(*sizes)
    (table,) = pack(schema, [Marginal(schema.names)])
    cells = np.zeros(table.size, dtype=np.int64)
    corners = list(itertools.product(*((1, size, size + 1) for size in sizes)))
    columns = np.array(corners, dtype=np.uint32).T
    add_rows(cells, table, dict(zip(schema.names, columns, strict=True)))
    counted = cells.reshape(table.shape)
    assert counted.sum() == len(corners)
    assert all(counted[tuple(code - 1 for code in corner)] == 1 for corner in corners)
