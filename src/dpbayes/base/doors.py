"""Doors: what a thing offers though a room above makes it, such as ``release.save``.

A door is the name of a function; ``dpbayes/__init__.py``, which is above all rooms and runs before them, says in which
module it is. So no room imports from above, and a module is loaded when its door is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar

Made = TypeVar("Made")

MODULES: dict[str, str] = {}
"""The module of each function that is called from below."""


def on_demand(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """What a package offers, and its modules: each is loaded when it is first asked for, so that imports stay light."""

    def attribute(name: str) -> object:
        if name in homes:
            return getattr(import_module(f"dpbayes.{homes[name]}"), name)
        try:
            if not name.startswith("_"):
                return import_module(f"{package}.{name}")
        except ModuleNotFoundError as problem:
            if problem.name != f"{package}.{name}":
                raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return attribute


class Chart(Protocol):
    """A picture, to those below the room that draws."""

    @property
    def svg(self) -> str:
        """It as SVG."""

    def save(self, path: str | Path) -> Path:
        """Write it to a file, in the format that its name says."""

    def _repr_html_(self) -> str: ...


def call(name: str, *of: Any, **options: Any) -> Made:  # type: ignore[type-var]  # what the method that calls declares
    """What the function behind a door makes."""
    made: Made = getattr(import_module(f"dpbayes.{MODULES[name]}"), name)(*of, **options)
    return made


def picture(name: str, *of: object, path: str | Path | None) -> Chart:
    """What is drawn behind a door, written to ``path`` if there is one."""
    drawn: Chart = call(name, *of)
    if path is not None:
        drawn.save(path)
    return drawn
