"""Records: what is written reads back, and anything else is refused with its place."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes.base.checks import Floats, Ints
from dpbayes.base.codec import canonical, fields_record, from_fields, from_record, to_record
from dpbayes.base.errors import InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    name: str
    size: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    kind: Literal["oak", "ash"]
    height: float
    age: int | None = None
    alive: bool = True
    leaves: tuple[Leaf, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    pair: tuple[str, str] | None = None


@given(
    kind=st.sampled_from(["oak", "ash"]),
    height=st.floats(allow_nan=False),
    age=st.none() | st.integers(-(2**63), 2**63 - 1),
    names=st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
    counts=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 100)),
)
def test_what_is_written_reads_back(kind: str, height: float, age: int | None, names: list[str], counts: dict) -> None:
    tree = Tree(
        kind=kind,  # type: ignore[arg-type]
        height=height,
        age=age,
        leaves=tuple(Leaf(name=name) for name in names),
        counts=counts,
        pair=("a", "b"),
    )
    text = json.dumps(to_record(tree), allow_nan=False)
    assert from_record(Tree, json.loads(text)) == tree


@pytest.mark.parametrize(
    ("record", "place"),
    [
        ({"kind": "elm", "height": 1}, "kind"),
        ({"kind": "oak"}, "height"),
        ({"kind": "oak", "height": "tall"}, "height"),
        ({"kind": "oak", "height": True}, "height"),
        ({"kind": "oak", "height": 1, "age": 2.5}, "age"),
        ({"kind": "oak", "height": 1, "age": 2**64}, "age"),
        ({"kind": "oak", "height": 1, "alive": 1}, "alive"),
        ({"kind": "oak", "height": 1, "leaves": [{"name": "x"}, {"name": 3}]}, "leaves.1.name"),
        ({"kind": "oak", "height": 1, "leaves": {"name": "x"}}, "leaves"),
        ({"kind": "oak", "height": 1, "pair": ["a"]}, "pair"),
        ({"kind": "oak", "height": 1, "roots": 3}, "roots"),
        ({"kind": "oak", "height": 1, "counts": {"a": "b"}}, "counts.a"),
        ([], "Tree"),
    ],
)
def test_a_wrong_record_is_refused_with_its_place(record: object, place: str) -> None:
    with pytest.raises(InvalidArgument, match=place.replace(".", r"\.")):
        from_record(Tree, record)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Numbers:
    shares: Floats
    counts: Ints | None = None


def test_arrays_are_lists_of_numbers_and_cannot_be_written_to() -> None:
    read = from_record(Numbers, {"shares": [0.5, 1], "counts": [3, 4]})
    assert read.shares.tolist() == [0.5, 1.0]
    assert read.counts is not None
    assert read.counts.dtype == np.int64
    assert to_record(read) == {"shares": [0.5, 1.0], "counts": [3, 4]}
    with pytest.raises(ValueError, match="read-only"):
        read.shares[0] = 0.0


@pytest.mark.parametrize("wrong", [["a"], [None], [[1.0]], 3, [True], ["inf"], [math.inf], [10**400]])
def test_an_array_of_anything_else_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidArgument, match="shares"):
        from_record(Numbers, {"shares": wrong})


def test_nan_is_never_written() -> None:
    with pytest.raises(InvalidArgument, match="NaN"):
        to_record(Leaf(name="x", size=math.nan))
    with pytest.raises(InvalidArgument):
        canonical({"x": math.inf})


@dataclass(frozen=True, kw_only=True)
class Found:
    texts: tuple[str, ...]
    fallback: tuple[str, ...] = ("a",)
    notes: tuple[str, ...] = ()
    about: str | None = None


def test_what_is_empty_is_written_unless_empty_is_the_default():
    for held in (Found(texts=()), Found(texts=(), fallback=()), Found(texts=("b",), notes=("c",), about="d")):
        record = fields_record(held)
        assert from_fields(Found, record) == held
    assert fields_record(Found(texts=())) == {"texts": [], "fallback": ["a"]}
