"""Run every benchmark in this folder, or those named, and print their results as JSON: `python -m benchmarks [name …]`.

Each module has a ``run() -> dict``. Figures are ratios measured within one run, because machines differ and are
noisy; seconds are printed beside them for orientation only.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
import time
from pathlib import Path

import benchmarks


def main(names: list[str]) -> None:
    available = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name[0] != "_")
    unknown = set(names) - set(available)
    if unknown:
        sys.exit(f"no benchmark named {', '.join(sorted(unknown))}; there are {', '.join(available)}")
    results = {}
    for name in names or available:
        started = time.perf_counter()
        print(f"{name} …", file=sys.stderr, flush=True)
        results[name] = importlib.import_module(f"benchmarks.{name}").run()
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    text = json.dumps(results, indent=2, ensure_ascii=False)
    print(text)
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    (folder / "bench.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
