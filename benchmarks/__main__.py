"""Run every benchmark in this folder, or those named, and print their results as JSON: `python -m benchmarks [name …]`.

Each module has a ``run() -> dict``. Figures are ratios measured within one run, because machines differ and are
noisy; seconds are printed beside them for orientation only. Results are kept in out/bench.json, charts beside it, and
published with the page of benchmarks in docs/reproduction.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
import time
from pathlib import Path

import benchmarks
from benchmarks import _chart, _page

FOLDER = Path("out")


def _is_benchmark(module: pkgutil.ModuleInfo) -> bool:
    return module.name[0] != "_" and not module.ispkg


def main(names: list[str]) -> None:
    available = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if _is_benchmark(module))
    if {"-h", "--help"} & set(names):
        sys.exit(f"{__doc__}\nThere are {', '.join(available)}.")
    unknown = set(names) - set(available)
    if unknown:
        sys.exit(f"no benchmark named {', '.join(sorted(unknown))}; there are {', '.join(available)}")
    results = {}
    for name in names or available:
        started = time.perf_counter()
        print(f"{name} …", file=sys.stderr, flush=True)
        results[name] = importlib.import_module(f"benchmarks.{name}").run()
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    print(json.dumps(results, indent=2, ensure_ascii=False))
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / "bench.json"
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(earlier | results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    _chart.save(results, FOLDER)
    _page.main()


if __name__ == "__main__":
    main(sys.argv[1:])
