"""What an experiment is, and how one is run: in pieces, on two cores, and from where it stopped.

An experiment is a module ``experiments/<paper>/<name>.py`` with a file of settings ``<name>.toml`` beside it:

    PAPER, TITLE           where it belongs, as on the page of claims
    tasks(settings)        the independent pieces of work, each a dictionary of plain values
    measure(task, settings, rng)
                           the rows of results of one piece, each a flat dictionary
    draw(rows, settings)   a matplotlib figure of all rows (a pandas table)
    claims(rows, settings) what the paper says, what came out, and the verdict

The settings have a table ``[full]``; ``[quick]`` replaces some of its entries. Every piece has its own generator,
seeded by ``seed`` and its number, and its rows are kept, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import os
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from enum import StrEnum
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"
FIGURES = ROOT / "docs" / "reproduction"
KEPT = ROOT / "out" / "reproduce"


class Verdict(StrEnum):
    """How a claim came out."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNKNOWN = "cannot be known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement of a paper in our words, what we measured, and what we make of it."""

    where: str
    says: str
    measured: str
    verdict: Verdict
    why: str = ""
    ours: bool = False
    """Whether the claim is about what dpbayes adds, and not one of the paper's."""


def verdict(holds: bool) -> Verdict:
    """Agrees, or differs."""
    return Verdict.AGREES if holds else Verdict.DIFFERS


@dataclass(frozen=True, slots=True)
class Experiment:
    """A module of this folder with its settings."""

    name: str
    quick: bool = False

    @property
    def module(self) -> ModuleType:
        return importlib.import_module(f"experiments.{self.name}")

    @property
    def settings(self) -> dict[str, Any]:
        path = ROOT / "experiments" / (self.name.replace(".", "/") + ".toml")
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        return found["full"] | (found.get("quick", {}) if self.quick else {})

    @property
    def slug(self) -> str:
        """The name in files."""
        return self.name.replace(".", "-").replace("_", "-")

    @property
    def datasets(self) -> list[str]:
        """The data sets that its pieces name."""
        from experiments.data import SOURCES

        named = [task.get("dataset") for task in self.module.tasks(self.settings)]
        return [name for name in dict.fromkeys(named) if name in SOURCES]

    def kept(self, number: int, task: Mapping[str, Any]) -> Path:
        """Where the rows of a piece are kept: another place for other settings or another way of measuring."""
        what = json.dumps([self.settings, number, task, inspect.getsource(self.module.measure)], sort_keys=True)
        return KEPT / self.slug / f"{hashlib.sha256(what.encode()).hexdigest()[:24]}.json"


def measured(name: str, quick: bool, number: int, path: Path) -> float:
    """Run one piece and keep its rows there, where the parent expects them; the seconds it took."""
    experiment = Experiment(name, quick)
    settings = experiment.settings
    task = experiment.module.tasks(settings)[number]
    started = time.process_time()  # what it takes on one core, whoever else is at work
    rows = experiment.module.measure(task, settings, np.random.default_rng([settings["seed"], number]))
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    elapsed = time.process_time() - started
    unfinished.write_text(json.dumps({"seconds": elapsed, "rows": [{**task, **row} for row in rows]}, default=_plain))
    unfinished.replace(path)
    return elapsed


def without_data(experiments: Iterable[Experiment]) -> dict[Experiment, str]:
    """The experiments whose data sets are not to be had, and why; data sets are located, or downloaded, only once."""
    from experiments import data

    missing: dict[str, str] = {}
    for name in dict.fromkeys(name for experiment in experiments for name in experiment.datasets):
        try:
            data.load(name)
        except data.DataUnavailable as problem:
            missing[name] = str(problem)
    reasons = {each: next((missing[name] for name in each.datasets if name in missing), "") for each in experiments}
    return {experiment: reason for experiment, reason in reasons.items() if reason}


def run(
    experiments: Sequence[Experiment], finish: Callable[[Experiment], None], *, jobs: int = 2, fresh: bool = False
) -> None:
    """Run the pieces that are not kept yet, those of all experiments side by side; finish each that is complete.

    The first error ends the run. What is complete by then is finished.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the processes inherit it before they load numpy
    pieces = [
        (experiment, number, experiment.kept(number, task))
        for experiment in experiments
        for number, task in enumerate(experiment.module.tasks(experiment.settings))
    ]
    waiting = [piece for piece in pieces if fresh or not piece[2].exists()]
    left = Counter(experiment for experiment, _, _ in waiting)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns) as progress, ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        bars = {
            experiment: progress.add_task(
                f"{experiment.name} (seed {experiment.settings['seed']})",
                total=sum(piece[0] == experiment for piece in pieces),
                completed=sum(piece[0] == experiment for piece in pieces) - left[experiment],
            )
            for experiment in experiments
        }
        futures = {
            pool.submit(measured, experiment.name, experiment.quick, number, path): experiment
            for experiment, number, path in waiting
        }
        try:
            for experiment in experiments:
                if not left[experiment]:
                    finish(experiment)
            for future in as_completed(futures):
                future.result()
                experiment = futures[future]
                progress.advance(bars[experiment])
                left[experiment] -= 1
                if not left[experiment]:
                    finish(experiment)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def gather(experiment: Experiment) -> tuple[pd.DataFrame, float]:
    """All rows of an experiment that has been run, and the seconds they took on one core."""
    tasks = enumerate(experiment.module.tasks(experiment.settings))
    kept = [json.loads(experiment.kept(number, task).read_text(encoding="utf-8")) for number, task in tasks]
    return pd.DataFrame([row for piece in kept for row in piece["rows"]]), sum(piece["seconds"] for piece in kept)


def write(experiment: Experiment, results: Path = RESULTS, figures: Path = FIGURES) -> None:
    """Rows as Parquet, claims and settings as JSON, and the figure as PNG and SVG."""
    rows, seconds = gather(experiment)
    for folder in (results, figures):
        folder.mkdir(parents=True, exist_ok=True)
    rows.to_parquet(results / f"{experiment.slug}.parquet", index=False, compression="zstd")
    _state(experiment, rows, seconds, results, figures)


def restate(experiment: Experiment, results: Path = RESULTS, figures: Path = FIGURES) -> None:
    """Claims and figure anew from stored rows, where words or lines have changed and numbers have not."""
    stored = json.loads((results / f"{experiment.slug}.json").read_text(encoding="utf-8"))
    rows = pd.read_parquet(results / f"{experiment.slug}.parquet")
    _state(experiment, rows, stored["seconds"], results, figures)


def _state(experiment: Experiment, rows: pd.DataFrame, seconds: float, results: Path, figures: Path) -> None:
    from experiments import style

    module, settings = experiment.module, experiment.settings
    style.save(lambda: module.draw(rows, settings), figures / experiment.slug)
    found = {
        "experiment": experiment.name,
        "paper": module.PAPER,
        "title": module.TITLE,
        "about": inspect.getdoc(module),
        "settings": settings,
        "quick": experiment.quick,
        "seconds": round(seconds, 1),
        "rows": {"number": len(rows), "sha256": digest(rows)},
        "claims": [asdict(claim) for claim in module.claims(rows, settings)],
    }
    path = results / f"{experiment.slug}.json"
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False, default=_plain) + "\n", encoding="utf-8")


def digest(rows: pd.DataFrame) -> str:
    """SHA-256 over names and values, numbers rounded to nine digits: what another machine gets as well."""
    rounded = rows.map(lambda value: float(f"{value:.8e}") + 0.0 if isinstance(value, float) else value)
    return hashlib.sha256(rounded.to_csv(index=False, float_format="%.9g", lineterminator="\n").encode()).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"a result must be plain, not {type(value).__name__}")
