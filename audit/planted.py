"""Faults that are planted on purpose: an attack that does not notice any of them is no evidence.

Each is a context in which the real code runs with one thing wrong. Prices and claims stay as they are.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from audit import canaries
from dpbayes.base.errors import DpbayesError, SchemaError
from dpbayes.cli import output
from dpbayes.curator import Curator
from dpbayes.design.plan import Plan
from dpbayes.hellinger import mechanism as hellinger
from dpbayes.hellinger.baselines import PosteriorExponential
from dpbayes.ledger.account import Account
from dpbayes.mechanisms import lazy, noise
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.selection import Selection
from dpbayes.mechanisms.sum_zero import SumZeroLaplace
from dpbayes.mechanisms.threshold import Threshold
from dpbayes.mechanisms.urn import PseudoRecords
from dpbayes.schema.marginal import Marginal
from dpbayes.tables import sources


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, in words for the table, and the context in which it is."""

    words: str
    plant: Callable[[], AbstractContextManager[object]]


@contextmanager
def louder(times: int) -> Iterator[None]:
    """Every record weighs this many times as much as is paid for: noise, or the spread of scores, is too small."""

    def less_noise(honest: Callable[..., Any]) -> Callable[..., Any]:
        return lambda counts, spread, rng: honest(counts, spread / times, rng)

    def more_weight(honest: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, counts, *rest: honest(self, times * np.asarray(counts), *rest)

    honest_choice, honest_split, honest_sampler = Selection.choose, lazy.LazyDirichlet._split, hellinger.score_sampler
    honest_exponential, honest_sum_zero = PosteriorExponential.sampler, SumZeroLaplace.draw

    def choose(self: Selection, scores: Sequence[int], **how: Any) -> int:
        return honest_choice(self, [times * int(score) for score in scores], **how)

    def split(self: lazy.LazyDirichlet, number: int, nodes: Any) -> Any:
        with patch.object(self, "_before", times * self._before):
            return honest_split(self, number, nodes)

    with contextlib.ExitStack() as planted:
        for place, name, wrong in (
            (noise, "gaussian", less_noise(noise.gaussian)),
            (noise, "laplace", less_noise(noise.laplace)),
            (Dirichlet, "_shapes", more_weight(Dirichlet._shapes)),
            (PseudoRecords, "draw", more_weight(PseudoRecords.draw)),
            (Selection, "choose", choose),
            (lazy.LazyDirichlet, "_split", split),
            (hellinger, "score_sampler", lambda prior, table, a, score: honest_sampler(prior, table, times * a, score)),
            (
                PosteriorExponential,
                "sampler",
                lambda self, counts: honest_exponential(replace(self, sharpness=times * self.sharpness), counts),
            ),
            (
                SumZeroLaplace,
                "draw",
                lambda self, *given: honest_sum_zero(replace(self, scale=self.scale / times), *given),
            ),
        ):
            planted.enter_context(patch.object(place, name, wrong))
        yield


def low_threshold() -> AbstractContextManager[object]:
    """A category needs half as many rows to be published."""
    honest = Threshold.draw

    def draw(self: Threshold, counts: Any, rng: Any = None) -> Any:
        return honest(replace(self, threshold=max(self.threshold // 2, self.unit.max_rows)), counts, rng)

    return patch.object(Threshold, "draw", draw)


def unrounded() -> AbstractContextManager[object]:
    """Gammas are published with all digits of the sampler."""
    return patch.object(Dirichlet, "gammas", Dirichlet._raw)


def forgetful() -> AbstractContextManager[object]:
    """The ledger compares a charge with the limit as if it were the first."""
    return patch.object(Account, "affords", lambda self, cost: self.budget.used([cost]) <= 1.0)


def refunding() -> AbstractContextManager[object]:
    """A declared total that the table contradicts is refused, and the charge is given back."""
    honest = Curator.release

    def release(self: Curator, job: Any, target: Any = None, **how: Any) -> Any:
        if self._ledger is not None and self.schema.margins:
            [margin] = self.schema.margins
            (counts,) = self._engine.count(self.schema, [Marginal(margin.of)])
            if tuple(counts.array.ravel()[: len(margin.totals)]) != tuple(margin.totals):
                plan = job if isinstance(job, Plan) else self.plan(job, target)
                receipt = self._ledger.charge(self.schema.id, plan.cost, about="a guess", schema=self.schema.digest)
                self._ledger.void(receipt, about="a wrong guess")
                raise SchemaError("Curator: this total is not the table's.")
        return honest(self, job, target, **how)

    return patch.object(Curator, "release", release)


def reading_first() -> AbstractContextManager[object]:
    """Rows are counted before the ledger is asked."""
    honest = Curator.plan

    def plan(self: Curator, *asked: Any, **how: Any) -> Plan:
        self._engine.count(self.schema, [Marginal((self.schema.names[0],))])
        return honest(self, *asked, **how)

    return patch.object(Curator, "plan", plan)


@contextmanager
def talkative() -> Iterator[None]:
    """Commands say how many rows they read, and readers repeat the value they stumble over."""
    honest = sources.open_table

    def say(text: str) -> None:
        print(text, sum(canaries.COUNTS.values()), file=sys.stderr)

    def opened(table: object, **how: Any) -> Any:
        if isinstance(table, dict):
            raise DpbayesError(f"Table: cannot read {table!r}.")
        return honest(table, **how)

    with (
        patch.object(output, "say", say),
        patch("dpbayes.cli.release.say", say),
        patch.object(canaries, "open_table", opened),
    ):
        yield


def open_scratch() -> AbstractContextManager[object]:
    """The folder of spilled rows can be read by everybody, and is never swept."""
    loose = canaries.SPILLING.replace(
        "from dpbayes.cli.main import run",
        "from dpbayes.tables import sources\n"
        "honest = sources._made\n"
        "def made():\n"
        "    folder = honest()\n"
        "    folder.chmod(0o755)\n"
        "    return folder\n"
        "sources._made, sources.sweep = made, lambda: None\n"
        "from dpbayes.cli.main import run",
    )
    return patch.object(canaries, "SPILLING", loose)


TWICE, FOUR = (Fault(f"a record that weighs {words}", partial(louder, n)) for words, n in (("2 ×", 2), ("4 ×", 4)))
FAULTS: dict[str, tuple[Fault, ...]] = {
    "mechanisms": (TWICE, FOUR, Fault("half the threshold", low_threshold)),
    "products": (TWICE, FOUR),
    "discovery": (Fault("half the threshold", low_threshold), TWICE, FOUR),
    "floats": (Fault("gammas that are not rounded", unrounded),),
    "adaptive": (Fault("a ledger that forgets", forgetful),),
    "oracle": (Fault("a refund", refunding), Fault("rows read first", reading_first)),
    "canaries": (Fault("talkative readers", talkative), Fault("an open folder", open_scratch)),
}
"""What is planted under each part, weakest first."""
