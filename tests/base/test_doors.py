"""Every door that is used leads somewhere, and none is left that nobody uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import dpbayes
from dpbayes.base.display import DOORS


def names(asked: ast.expr) -> Iterator[str]:
    match asked:
        case ast.Constant(value=str(name)):
            yield name
        case ast.IfExp(body=one, orelse=other):
            yield from (*names(one), *names(other))


def test_the_doors_that_are_used_are_those_that_the_top_package_opens() -> None:
    used = {
        name
        for path in Path(dpbayes.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).removeprefix("display.") in ("door", "picture")
        for name in names(node.args[0])
    }
    assert used == DOORS.keys()


def test_behind_every_door_is_what_it_names() -> None:
    for name, module in DOORS.items():
        assert getattr(import_module(f"dpbayes.{module}"), name).__module__ == f"dpbayes.{module}"
