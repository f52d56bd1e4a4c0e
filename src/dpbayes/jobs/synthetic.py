"""Everything that a model of the whole table needs: tables of one and two attributes, measured in rounds.

All mechanisms are calibrated and charged before a row is read. Only *which* table each of them measures depends on what
the earlier ones drew. Every table has the same sensitivity, so each mechanism has the same dominating pair whatever it
measures, and the price of the list holds (docs/explanation/proofs/composition.md).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import combinations
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from dpbayes.base import checks, codec
from dpbayes.base.checks import Floats
from dpbayes.base.codec import Record
from dpbayes.base.errors import InvalidArgument, MeaninglessBudget
from dpbayes.design.noise import Need, draw_table, mechanisms_for, noise, spread
from dpbayes.design.plan import Drawn, Plan
from dpbayes.inference.joint import JointPosterior
from dpbayes.inference.measurement import Measurement
from dpbayes.jobs.base import BaseJob, Keys, Make, Names, Setting, check_tables, one_column, typed
from dpbayes.models.fission import dependence
from dpbayes.models.latent import Latent
from dpbayes.models.mixture import LEAST_VARIANCE, Statistics
from dpbayes.models.model import built
from dpbayes.models.synthetic import synthetic_table, write_table
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.estimates import measured_noise
from dpbayes.release.format import Release, Table
from dpbayes.schema.counts import Counts
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.tables.engine import Engine

# docs/explanation/synthetic.md explains each rule; docs/reproduction/synthetic.md says in sight of which data they were
# chosen, beginning with Adult and Bank.

PARTS = (0.1, 0.5, 0.4)
"""Of the precision, for the rounds: one-way tables, which tell how many records there are and so what else is worth
asking; pairs; and last the pairs that turned out to depend. More for the first or the last did worse."""

LAST_SLOTS = 3
"""Tables in the last round, for each attribute: the size of that round was kept for the triples of Shopper."""

TARGET_PART = 0.25
"""Of the pairs' precision, for pairs with the target, at least."""

AHEAD = 1.1
"""One-way tables get the last round if without them pairs are predicted to be this many times as far off: pairs also
tell about each other, which the prediction does not know. Chosen on splits that are not measured."""

HOPELESS, FAINT = 6.0, 1.0
"""Mean total variation that noise alone makes in pairs, beyond which they tell nothing, or little: 1 is as far as two
tables can be apart. Chosen after a run on GermanCredit."""

MOST_CELLS, MOST_PAIRS = 100_000, 5000
"""Larger pairs are not measured; of more pairs only those with the target are, if there is one."""

Shape = Literal["pairs", "target", "single"]


@dataclass(frozen=True, slots=True)
class Synthetic(BaseJob):
    """Measure a whole table for synthetic records: ``Synthetic("income")``. No graph is asked for.

    Args:
        target: the attribute that others will be used to predict; its pairs are measured more exactly.
        mechanism: ``auto`` takes Gaussian noise, or Laplace noise for a pure guarantee.
    """

    kind: ClassVar[str] = "synthetic"
    MAKES: ClassVar[Mapping[str, Make]] = {
        "synthetic": Make("none, or the attribute that others will predict", ("mechanism",))
    }
    target: str | None = None
    _: KW_ONLY
    mechanism: Literal["auto", "gaussian", "laplace"] = "auto"

    def __post_init__(self) -> None:
        checks.one_of("Synthetic", ("auto", "gaussian", "laplace"), mechanism=self.mechanism)
        if self.target is not None and (not isinstance(self.target, str) or not self.target):
            raise InvalidArgument(f"Synthetic: expected target to be the name of an attribute, got {self.target!r}.")

    @classmethod
    def requested(cls, kind: str, tables: Names, keys: Keys, setting: Setting) -> Synthetic:  # noqa: ARG003 - for others
        """Records of the whole table."""
        return cls(target=one_column(kind, tables) if tables else None, **typed(cls, keys))

    def after(self, release: Release, schema: Schema, folder: Path | None) -> str:
        """As many records as are public, in a file of the folder's name: the folder itself is sealed."""
        if folder is None or not schema.records:
            return "dpbayes synth draws any number of records from it; none is charged."
        if (path := folder.with_name(f"{folder.name}-records.csv")).exists():
            return f"{path} is there already, so none were drawn. dpbayes synth {folder} draws any number of records."
        write_table(synthetic_table(built([release]), schema.records), path)
        return f"Wrote {schema.records:,} synthetic records to {path}. dpbayes synth {folder} draws any number of them."

    def plan(self, schema: Schema, target: Guarantee) -> Plan:
        """Calibrate every draw of every round against one target, from public numbers only."""
        if self.target is not None:
            schema[self.target]
        singles, pairs = self._marginals(schema)
        check_tables(schema, (*singles, *pairs))
        last = LAST_SLOTS * len(singles) if pairs else 0
        parts = np.concatenate(
            [
                _normal(np.array([one.size(schema) for one in singles])) * (PARTS[0] if pairs else 1.0),
                _normal(np.array([two.size(schema) for two in pairs]), self._pulled(pairs, schema, TARGET_PART))
                * PARTS[1],
                np.full(last, PARTS[2] / max(last, 1)),
            ]
        )
        tables = (*singles, *pairs)
        need = Need(
            target=target,
            unit=schema.unit,
            cells=tuple(each.size(schema) for each in tables) + (1,) * last,
            records=schema.expected,
            wish=self.mechanism,
        )
        stepped = 2.0 ** (np.round(2.0 * np.log2(parts)) / 2.0)  # few different mechanisms compose faster
        mechanisms, choice = mechanisms_for(need, stepped.tolist())
        self._warn(need, singles, schema, spread(mechanisms[0]))
        return self._paying(
            schema,
            target,
            mechanisms,
            tables=tables,
            choice=choice
            + (f"; the last {last} draws go where the first ones say that they help most" if last else "")
            + _left_out(schema, len(pairs)),
            about=f"synthetic: {len(singles)} attributes, {len(pairs)} pairs",
            columns=schema.names,
        )

    def _marginals(self, schema: Schema) -> tuple[tuple[Marginal, ...], tuple[Marginal, ...]]:
        """One-way tables, and the pairs that may be measured: by public numbers only."""
        singles = tuple(Marginal((name,)) for name in schema.names)
        varied = [each.name for each in schema.attributes if len(each.levels) > 1]
        pairs = [Marginal(names) for names in combinations(varied, 2)]
        pairs = [each for each in pairs if each.size(schema) <= MOST_CELLS]
        if len(pairs) > MOST_PAIRS:
            pairs = [each for each in pairs if self.target in each.names][:MOST_PAIRS]
        return singles, tuple(pairs)

    def _pulled(self, pairs: Sequence[Marginal], schema: Schema, part: float) -> Floats:
        """Weights of pairs, so that those with the target get this part of the precision at least."""
        sizes = np.array([each.size(schema) for each in pairs], dtype=np.float64)
        with_target = np.array([self.target in each.names for each in pairs], dtype=bool)
        own = float((sizes[with_target] ** (2 / 3)).sum() / max((sizes ** (2 / 3)).sum(), 1.0))
        if not 0.0 < own < part:
            return np.ones(len(pairs))
        return np.where(with_target, (part * (1 - own) / (own * (1 - part))) ** 1.5, 1.0)

    def _warn(self, need: Need, singles: Sequence[Marginal], schema: Schema, sigma: float) -> None:
        """Say so where even one-way tables would be mostly noise, and what would do."""
        if need.records is None:
            return
        error = float(np.mean([noise(each.size(schema), sigma, need.records) for each in singles]))
        if error > 1.0:
            warnings.warn(
                f"Synthetic: the noise in a table of one attribute is predicted to be {error:.3g} times its whole "
                f"mass, so the records will say almost nothing. Ask for about {math.ceil(4 * error)} times the ε, or "
                "for fewer attributes.",
                MeaninglessBudget,
                stacklevel=4,
            )

    def draw(self, table: Engine, plan: Plan, rng: np.random.Generator | None) -> Drawn:
        """Count in one scan; draw the one-way tables, then pairs, then pairs that turned out to depend."""
        singles, pairs = self._marginals(plan.schema)
        counted = {each.marginal: each for each in table.count(plan.schema, plan.tables)}
        rounds = _Rounds(self, plan, counted, rng)
        for place, marginal in enumerate(singles):
            rounds.measure(place, marginal)
        if pairs:
            rounds.pairs(pairs, range(len(singles), len(plan.places)))
        records = int(counted[singles[0]].array.sum()) if plan.schema.unit.fixed_size else None
        return Drawn(tables=tuple(rounds.tables), records=records)

    def record(self) -> Record:
        """JSON form; the model is the one that ``Release.build`` makes."""
        return {**BaseJob.record(self), "model": Latent(target=self.target).record()}

    @classmethod
    def from_record(cls, record: Record) -> Synthetic:
        """Read the JSON form back."""
        own = {name: value for name, value in record.items() if name != "model"}
        read = codec.from_fields(cls, own, "job")
        if record.get("model") != read.record()["model"]:
            raise InvalidArgument("job: expected the model of synthetic records, with the same target.")
        return read


class _Rounds:
    """What has been drawn so far, and what to draw next: every choice is made from drawn numbers alone."""

    def __init__(
        self, job: Synthetic, plan: Plan, counted: Mapping[Marginal, Counts], rng: np.random.Generator | None
    ) -> None:
        self.job, self.plan, self.schema, self.rng = job, plan, plan.schema, rng
        self._counted = counted
        self.tables: list[Table] = []
        self._least: float | None = None

    def measure(self, place: int, marginal: Marginal) -> None:
        """Draw a table by the mechanism of this place in the plan."""
        by = self.plan.places[place]
        made = self.plan.paid[by].mechanism
        self.tables.append(draw_table(self._counted[marginal], made, by=by, rng=self.rng))  # type: ignore[arg-type]

    def pairs(self, pairs: tuple[Marginal, ...], places: range) -> None:
        """All later rounds: which shape the budget is worth, the pairs, and the pairs that depend."""
        whole = math.sqrt(PARTS[1] / (PARTS[1] + PARTS[2]))  # with the last round's precision
        sigmas = [whole * self._sigma(place) for place in places]
        last = LAST_SLOTS * len(self.schema.names)
        asked = [each for each, sigma in zip(pairs, sigmas, strict=False) if self._noise(each, sigma) <= HOPELESS]
        shape = self._shape(asked, [sigma for each, sigma in zip(pairs, sigmas, strict=False) if each in asked])
        if shape == "single":
            self._measure_all(self._allotted(places, [Marginal((name,)) for name in self.schema.names]))
            return
        if shape == "target":
            self._measure_all(self._apart(places, asked, every=12))
            return
        left = []
        for place, marginal in zip(places, pairs, strict=False):
            if marginal in asked:
                self.measure(place, marginal)
            else:
                left.append(place)
        mean = float(np.mean([self._noise(each, sigma) for each, sigma in zip(pairs, sigmas, strict=False)]))
        weights = self.job._pulled(asked, self.schema, TARGET_PART * (1 + min(max((mean - 0.1) / 0.3, 0.0), 1.0)))
        signal, left = self._signal(asked), [*left, *places[-last:]]
        apart, together = self._apart(left, asked, every=2), self._allotted(left, asked, weights * signal)
        error, other = (self._predicted(way, asked, signal) for way in (apart, together))
        self._measure_all(apart if other > AHEAD * error else together)

    def _apart(self, places: Sequence[int], asked: Sequence[Marginal], every: int) -> dict[int, Marginal]:
        """To pairs with the target, if there is one, one part of the precision in so many; the rest to one-way tables.

        Twelve where pairs are too faint to be measured at all, two in the last round: chosen on splits that are not
        measured (docs/reproduction/synthetic.md).
        """
        ends = [Marginal((name,)) for name in self.schema.names]
        hit = [each for each in asked if self.job.target in each.names]
        some, given, whole = [], 0.0, 0.0
        for place in places if hit else ():
            precision = self._sigma(place) ** -2
            whole += precision
            if (given + precision) * every <= whole * (1 + 1e-9):
                some.append(place)
                given += precision
        return self._allotted([place for place in places if place not in some], ends) | self._allotted(some, hit)

    def _predicted(self, way: Mapping[int, Marginal], asked: Sequence[Marginal], signal: Floats) -> float:
        """The error of all pairs to be expected after these draws: Σ √(ν_a² + ν_b² + t²ν²/(t² + ν²)).

        A pair has the errors of its one-way tables, and one of its own: the least that a mean of what is measured and
        of independence can have. Symbols: t signal, ν the noise of a pair, ν_a and ν_b those of one-way tables from all
        that was drawn, each as total variation.
        Source: docs/explanation/synthetic.md, the plan.
        Adjacency: none; public and drawn numbers only.
        """
        drawn = [(table.marginal, _size(self.plan.paid[table.by].mechanism)) for table in self.tables]
        known: dict[Marginal, float] = {}
        for marginal, sigma in (*drawn, *((marginal, self._sigma(place)) for place, marginal in way.items())):
            known[marginal] = known.get(marginal, 0.0) + sigma**-2
            for name in marginal.names if len(marginal.names) > 1 else ():
                single = Marginal((name,))
                others = marginal.size(self.schema) / single.size(self.schema)
                known[single] = known.get(single, 0.0) + sigma**-2 / others
        squares = {each: self._noise(each, precision**-0.5) ** 2 for each, precision in known.items()}
        return sum(
            math.sqrt(
                sum(squares[Marginal((name,))] for name in each.names)
                + weak**2 * squares[each] / (weak**2 + squares[each])
            )
            for each, weak in zip(asked, signal.tolist(), strict=True)
        )

    def _shape(self, asked: Sequence[Marginal], sigmas: Sequence[float]) -> Shape:
        """What is worth measuring: by the noise that a pair would have, and the number of records as drawn."""
        if not asked:
            return "single"
        mean = float(np.mean([self._noise(each, sigma) for each, sigma in zip(asked, sigmas, strict=True)]))
        if mean <= FAINT:
            return "pairs"
        return "target" if any(self.job.target in each.names for each in asked) else "single"

    def _allotted(
        self, places: Sequence[int], tables: Sequence[Marginal], weights: Floats | None = None
    ) -> dict[int, Marginal]:
        """Each place with the table whose predicted error it lowers most."""
        cells = np.array([each.size(self.schema) for each in tables], dtype=np.float64)
        cells = cells if weights is None else cells * weights
        order = {each: number for number, each in enumerate(tables)}
        have = np.zeros(len(tables))
        for table in self.tables:
            if table.marginal in order:
                have[order[table.marginal]] += 1.0 / _size(self.plan.paid[table.by].mechanism) ** 2
        found = {}
        for place in places:
            more = have + 1.0 / self._sigma(place) ** 2
            chosen = int(np.argmax(cells * (np.maximum(have, 1e-12) ** -0.5 - more**-0.5)))
            have[chosen] = more[chosen]
            found[place] = tables[chosen]
        return found

    def _measure_all(self, way: Mapping[int, Marginal]) -> None:
        for place in sorted(way):
            self.measure(place, way[place])

    def _signal(self, pairs: Sequence[Marginal]) -> Floats:
        """How far a quick fit to what was drawn says each pair is from independent.

        Where it is nothing, the model will take the pair as independent, and more precision is lost on it; yet no pair
        counts for less than a total variation of 0.002.
        """
        joined = [name for name in self.schema.names if any(name in pair.names for pair in pairs)]
        posterior = JointPosterior(self._measured(), {each.name: len(each.levels) for each in self.schema.attributes})
        total = max(float(posterior.law.mean(())), 1.0)
        shares = [np.maximum(posterior.linear((name,))[0], 1.0) for name in joined]
        seen = Statistics.of(
            {name: len(self.schema[name].levels) for name in joined},
            ((each.axes, each.values, each.noise.variance(each.values)) for each in self._measured()),
            total,
        )
        target = joined.index(self.job.target) if self.job.target in joined else None
        found = dependence(seen, np.concatenate([each / each.sum() for each in shares]), target)
        place = {name: at for at, name in enumerate(joined)}
        return np.array([max(found[place[one], place[other]], 0.002) for one, other in (p.names for p in pairs)])

    def _measured(self) -> list[Measurement]:
        found = []
        for table in self.tables:
            shape = table.marginal.shape(self.schema)
            law = measured_noise(self.plan.paid[table.by].mechanism, shape)
            found.append(Measurement(axes=table.marginal.names, values=table.values.reshape(shape), noise=law))
        return found

    def _noise(self, marginal: Marginal, sigma: float) -> float:
        return noise(marginal.size(self.schema), sigma, self._records())

    def _records(self) -> float:
        """The number of records: declared, or what the one-way tables say it is at least, to two standard errors."""
        if self.schema.records is not None:
            return max(float(self.schema.records), 1.0)
        if self._least is None:
            first = self.tables[: len(self.schema.names)]
            weights = np.array([1.0 / (len(each.values) * self._sigma(place) ** 2) for place, each in enumerate(first)])
            mean = float(weights @ [each.values.sum() for each in first] / weights.sum())
            self._least = max(mean - 2.0 / math.sqrt(float(weights.sum())), 1.0)
        return self._least

    def _sigma(self, place: int) -> float:
        return _size(self.plan.paid[self.plan.places[place]].mechanism)


def _size(mechanism: object) -> float:
    """The standard deviation of its noise, and at least that of rounding to whole numbers."""
    return max(spread(mechanism), math.sqrt(LEAST_VARIANCE))


def _left_out(schema: Schema, measured: int) -> str:
    """What is said of pairs that no budget would buy here: too many of them, or too large."""
    varied = sum(len(each.levels) > 1 for each in schema.attributes)
    pairs = varied * (varied - 1) // 2
    if pairs == measured:
        return ""
    limits = (
        f"a pair has at most {MOST_CELLS:,} cells, and beyond {MOST_PAIRS:,} pairs only those with the target count"
    )
    follows = (
        "the others follow from the model" if measured else "so columns will be independent: name fewer attributes"
    )
    return f"; {measured:,} of {pairs:,} pairs are measured ({limits}), {follows}"


def _normal(cells: Floats, weights: Floats | float = 1.0) -> Floats:
    """Shares of precision that make Σ w·D·σ least: in proportion to (w·D)^⅔."""
    found = (np.asarray(cells, dtype=np.float64) * weights) ** (2 / 3)
    return found / found.sum() if found.size else found


JOB = Synthetic
