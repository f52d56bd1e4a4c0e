"""Histories: writers, what goes wrong with each, and the end, at which all is mended, finished and judged."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from tests.simulation import writers
from tests.simulation.checker import Rows, Witness, charges, rows_of_file
from tests.simulation.world import Fault, Process, World

from dpbayes.base.errors import DpbayesError

ROUNDS = 20
"""So many calls of finish are enough for any history."""


@dataclass
class Tally:
    """What happened, added up."""

    histories: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    charges: int = 0
    kept: int = 0
    anew: int = 0
    voided: int = 0
    lost: int = 0

    def row(self, name: str) -> str:
        killed = sum(self.faults[kind] for kind in ("kill", "half", "lost"))
        others = self.faults.total() - killed
        return (
            f"{name:24}{self.histories:>10}{killed:>7}{others:>8}{self.charges:>9}{self.kept:>7}{self.anew:>6}"
            f"{self.voided:>8}{self.lost:>6}"
        )


HEAD = f"{'':24}{'histories':>10}{'kills':>7}{'others':>8}{'charges':>9}{'kept':>7}{'anew':>6}{'voided':>8}{'lost':>6}"


class History:
    """One ledger and data set in a fresh folder, with everything that is done to them."""

    def __init__(self, folder: Path, budget: str, tally: Tally, *, seed: int = 0, ledger: str | None = None) -> None:
        self.folder, self.tally, self.ledger = folder, tally, ledger
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        writers.prepare(folder, budget, ledger)
        self.world = World(folder, seed)
        self.witness = Witness(folder, folder / "people.ledger.draws")
        self.trace: list[list[str]] = []

    def rows(self) -> tuple[Rows, dict[str, str]]:
        return rows_of_file(self.folder / "people.ledger")

    def run(self, process: Process, act: Callable[[], object]) -> None:
        """Something that a process does until it ends, dies, or is told in one sentence what is wrong."""
        with self.world.process(process):
            try:
                act()
            except DpbayesError as problem:
                self.said = str(problem)
        self.trace.append(process.trace)
        self.tally.faults.update(process.met)
        self.witness.look()

    def write(self, kind: str, name: str, faults: dict[int, Fault], meanwhile: Callable[[], None] | None = None) -> int:
        """A release with its faults; how many steps it took."""
        process = Process(faults, meanwhile or (lambda: None))
        self.run(process, lambda: writers.write(self.folder, kind, name, self.ledger))
        return len(process.trace)

    def complete(self, faults: dict[int, Fault] | None = None, *, forgo: bool = False) -> int:
        process = Process(faults or {})
        self.run(process, lambda: writers.complete(self.folder, self.ledger, forgo=forgo))
        return len(process.trace)

    def end(self) -> None:
        """Mend, finish until nothing is left, judge."""
        self.world.mend()
        kept, anew = self.witness.waiting(charges(*self.rows())[1])
        for _ in range(ROUNDS):
            writers.complete(self.folder, self.ledger)
            if not self.witness.unfinished():
                break
        budget, found = charges(*self.rows())
        lost = self.witness.judge(budget, found)
        self.tally.histories += 1
        self.tally.charges += len(found)
        self.tally.kept += kept
        self.tally.anew += anew
        self.tally.voided += sum(one["state"] == "void" for one in found.values())
        self.tally.lost += lost
        assert lost == 0, "a charge was paid for nothing"


def at_every_step(
    folder: Path, kind: str, fault: Fault, tally: Tally, *, start: int = 1, by: int = 1, twice: bool = False
) -> int:
    """A release that meets a fault at its first step, at its second, and so on until it has so many no more.

    ``by`` leaves out steps. With ``twice`` the process that finishes it is killed too, at a step that moves on as well.
    """
    for step in range(start, 400, by):
        history = History(folder, writers.JOBS[kind][0], tally, seed=step)
        with writers.planned_once(history.world), history.world.real():
            taken = history.write(kind, "first", {step: fault})
            history.world.mend()
            if twice:
                history.complete({1 + 7 * step % 40: "kill"})
            history.end()
        if taken < step:
            return taken
    raise AssertionError("there is no end to it")


KINDS: tuple[Fault, ...] = ("kill", "half", "lost", "full", "stays full", "denied", "away", "other")


def at_random(folder: Path, seed: int, tally: Tally) -> list[list[str]]:
    """Several writers on one ledger, each with up to three faults, with others that write or finish in between."""
    choose = random.Random(seed)
    budget = choose.choice(list(writers.BUDGETS))
    kinds = writers.kinds_of(budget)
    history = History(folder, budget, tally, seed=seed)

    def faults() -> dict[int, Fault]:
        return {choose.randrange(1, 55): cast(Fault, choose.choice(KINDS)) for _ in range(choose.randrange(4))}

    def meanwhile() -> None:
        nested = {choose.randrange(1, 55): cast(Fault, choose.choice(("kill", "half", "lost")))}
        if choose.random() < 0.6:
            history.complete(nested, forgo=choose.random() < 0.2)
        else:
            history.write(choose.choice(kinds), f"nested-{choose.randrange(10**9)}", nested)

    with writers.planned_once(history.world), history.world.real():
        for number in range(choose.randrange(2, 7)):
            if choose.random() < 0.3:
                history.complete(faults(), forgo=choose.random() < 0.3)
            else:
                history.write(choose.choice(kinds), f"writer-{number}", faults(), meanwhile)
            if choose.random() < 0.4:
                history.world.mend()
        history.end()
    return history.trace
