"""The page of benchmarks says what the stored run says."""

from __future__ import annotations

import importlib
import json
import pkgutil

import benchmarks
from benchmarks import _page


def test_every_benchmark_can_be_loaded_and_run() -> None:
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name[0] != "_" and not module.ispkg:
            assert callable(importlib.import_module(f"benchmarks.{module.name}").run)


def test_the_page_is_that_of_the_stored_run() -> None:
    results = json.loads((_page.PAGES / "benchmarks.json").read_text(encoding="utf-8"))
    assert (_page.PAGES / "benchmarks.md").read_text(encoding="utf-8") == _page.markdown(results)
    for name in ("peers", "growth"):
        assert (_page.PAGES / f"bench-{name}.png").is_file()
