"""The release path: a wide draw against bare gammas, and estimates against the papers' draw at the same budget."""

from __future__ import annotations

import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from experiments.estimates import noise_aware

from dpbayes import RDP, Unit
from dpbayes.design.ranking import score
from dpbayes.mechanisms.tuning import gaussian_noise, published_dirichlet
from dpbayes.privacy.calibrate import calibrate
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)

WIDE = """
import json, resource, time
import numpy as np
from dpbayes import Dirichlet, Unit
from dpbayes.schema import Adjacency
from dpbayes.mechanisms import noise
unit = Unit(adjacency=Adjacency.REPLACE_ONE)
counts = np.random.default_rng(0).integers(0, 50, 10**7)
made = Dirichlet(weight=0.5, concentration=2.0, unit=unit)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
ratios, secure = [], []
before = peak()
drawn = made.draw(counts, np.random.default_rng(1))
copies = (peak() - before) / counts.nbytes
del drawn
for seed in range(3):
    shape = counts * 0.5 + 2.0
    t = time.perf_counter(); bare = np.random.default_rng(seed).standard_gamma(shape); t = time.perf_counter() - t
    del shape, bare
    s = time.perf_counter(); made.draw(counts, np.random.default_rng(seed)); s = time.perf_counter() - s
    u = time.perf_counter(); made.draw(counts); u = time.perf_counter() - u
    ratios.append(s / t); secure.append(u / t)
print(json.dumps({"ratio": sorted(ratios)[1], "ratio_secure": sorted(secure)[1], "extra_copies": copies}))
"""


def wide_draw() -> dict[str, float]:
    """10⁷ cells: time over NumPy's bare gamma draws, and memory in copies of the table."""
    found: dict[str, float] = json.loads(subprocess.check_output([sys.executable, "-c", WIDE], text=True))
    return found


def estimates_against_algorithm_1(repetitions: int = 12) -> dict[str, object]:
    """KL of the noise-aware estimate over that of algorithm 1's draw, at the same (λ=5, ε)-RDP."""
    rows, ratios = [], []
    grid = itertools.product((5, 10, 100, 1000), (10**3, 10**5), (0.1, 1.0, 5.0), (0.05, 0.5, 5.0))
    for cells, records, evenness, epsilon in grid:
        target = RDP(order=5, epsilon=epsilon)
        paper, ours = published_dirichlet(target, UNIT), calibrate(gaussian_noise(UNIT), target)
        theirs_kl, ours_kl = [], []
        for index in range(repetitions):
            rng = np.random.default_rng([cells, records, index])
            p = np.nan_to_num(rng.dirichlet(np.full(cells, evenness)), nan=1 / cells)
            counts = rng.multinomial(records, p / p.sum())
            truth = counts / records
            theirs_kl.append(score("kl", truth, paper.draw(counts, rng)))
            ours_kl.append(score("kl", truth, noise_aware(ours.draw(counts, rng), ours, records) / records))
        ratio = statistics.mean(theirs_kl) / statistics.mean(ours_kl)
        ratios.append(ratio)
        rows.append({"cells": cells, "records": records, "evenness": evenness, "epsilon": epsilon, "ratio": ratio})
    return {
        "geometric_mean": float(np.exp(np.mean(np.log(ratios)))),
        "least": min(ratios),
        "settings_where_worse": sum(ratio < 1 for ratio in ratios),
        "settings": rows,
    }


def _processor() -> float:
    """Processor seconds of all child processes so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def end_to_end(records: int = 10**7) -> dict[str, float]:
    """`dpbayes release` of one marginal over its bare count, in fresh processes.

    Seconds of the processor are those of whole processes, start-up included; on a busy machine only they mean much.
    """
    import duckdb

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        duckdb.sql(
            f"COPY (SELECT ['a','b','c','d','e'][1 + (random()*5)::INT % 5] AS x, "
            f"['u','v'][1 + (random()*2)::INT % 2] AS y FROM range({records})) TO '{folder}/t.parquet'"
        )
        (folder / "s.toml").write_text(
            'id = "bench"\nadjacency = "replace-one"\n[[attribute]]\nname = "x"\ncategories = ["a","b","c","d","e"]\n'
            '[[attribute]]\nname = "y"\ncategories = ["u","v"]\n'
        )
        count = (
            "import sys; from pathlib import Path; from dpbayes.tables.sources import open_table; "
            "from dpbayes.schema.schema import Schema; from dpbayes.schema.marginal import Marginal; "
            "import time; t = time.perf_counter(); "
            "open_table(sys.argv[1]).count(Schema.from_toml(Path(sys.argv[2]).read_text()), [Marginal.parse('x,y')]); "
            "print(time.perf_counter() - t)"
        )
        paths = [str(folder / "t.parquet"), str(folder / "s.toml")]
        # as installed: modules are compiled once, and the first run, which does it, does not count
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
        asked = ["--epsilon", "1", "--delta", "1e-6", "--set", "mechanism=gaussian", "--ledger", "none"]
        entry = [sys.executable, "-c", "from dpbayes.cli.main import run; run()"]
        release = [*entry, "release", paths[0], "x,y", "--schema", paths[1], *asked, "--out"]
        counted, released, processor = [], [], []
        for _ in range(4):
            started = time.perf_counter(), _processor()
            counting = [sys.executable, "-c", count, *paths]
            counted.append(float(subprocess.check_output(counting, text=True, env=environment)))
            between = time.perf_counter(), _processor()
            subprocess.run(
                [*release, str(folder / str(len(released)))], check=True, capture_output=True, env=environment
            )
            released.append(time.perf_counter() - between[0])
            processor.append((between[1] - started[1], _processor() - between[1]))
    counted, released = counted[1:], released[1:]
    count_processor, release_processor = (statistics.median(column) for column in zip(*processor[1:], strict=True))
    return {
        "count_processor_seconds": count_processor,
        "release_processor_seconds": release_processor,
        "count_seconds": statistics.median(counted),
        "release_seconds": statistics.median(released),
        "release_less_one_second_over_count": (statistics.median(released) - 1.0) / statistics.median(counted),
    }


def run() -> dict[str, object]:
    return {
        "wide_draw": wide_draw(),
        "estimates_against_algorithm_1": estimates_against_algorithm_1(),
        "end_to_end": end_to_end(),
    }
