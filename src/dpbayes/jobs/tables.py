"""Tables: joint or conditional ones, under one guarantee."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from dpbayes.base import checks, codec
from dpbayes.base.codec import Record
from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.design.design import Wanted, describe, least_target, plan_tables
from dpbayes.design.noise import (
    Need,
    TableMechanism,
    Wish,
    is_want,
    least,
    loosest,
    mechanisms_for,
    out_of_reach,
    wants,
)
from dpbayes.design.plan import Drawn, Plan
from dpbayes.jobs.base import BaseJob, Keys, Make, Names, Setting, check_tables, count_and_draw, of_type, typed
from dpbayes.mechanisms.tuning import REFERENCE_RECORDS, Accounting, PseudoRecordsCurve, published_dirichlet
from dpbayes.mechanisms.urn import PseudoRecords
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.schema.marginal import Marginal, Prior
from dpbayes.schema.schema import Schema
from dpbayes.tables.engine import Engine, needed


@dataclass(frozen=True, slots=True, init=False)
class Tables(BaseJob):
    """The tables asked for: ``Tables("region", "income|sex")``, or ``Tables("region ± 50 records")``.

    Args:
        marginals: ``sex,income`` is a joint table, ``income|sex`` one of incomes for each sex.
        mechanism: ``auto`` takes Gaussian or Laplace noise, whichever is smaller for what it uses of the budget; for a
            pure guarantee Laplace noise that keeps the public number of records, where it can.
        product: what the release is tuned for: an ``estimate``, one posterior ``draw``, or pseudo-``records``.
        accounting: ``exact``, or ``published`` for the papers' parameters.
        pseudo_records: how many pseudo-records to draw; the declared number of records by default.
        priors: public guesses at distributions, each for the tables of its attributes.
        level: of the intervals.
        want: how exact tables have to be, as in ``"income|sex ± 1 point"``, which may stand for the table too. The
            target is then the most that is allowed, and the release takes the least that is needed.
    """

    kind: ClassVar[str] = "tables"
    MAKES: ClassVar[Mapping[str, Make]] = {
        "tables": Make("any number", ("mechanism", "prior", "level")),
        "draw": Make("any number; one posterior draw of each", ("prior",)),
        "pseudo-records": Make("any number", ("draws",)),
    }
    marginals: tuple[Marginal, ...]
    mechanism: Wish = "auto"
    product: Literal["estimate", "draw", "records"] = "estimate"
    accounting: Accounting = "exact"
    pseudo_records: int | None = None
    priors: tuple[Prior, ...] = field(default=())
    level: float = 0.95
    want: tuple[str, ...] = field(default=())

    def __init__(self, *marginals: str | Marginal, **options: object) -> None:
        exact = [each for each in marginals if isinstance(each, str) and is_want(each)]
        marginals = tuple(each for each in marginals if each not in exact)
        wanted = wants(exact or options.pop("want", ()))  # type: ignore[arg-type]  # checked there
        options["want"] = tuple(map(str, wanted))
        asked = tuple(dict.fromkeys((*map(Marginal.of_text, marginals), *(each.marginal for each in wanted))))
        asked = asked if wanted else tuple(map(Marginal.of_text, marginals))
        chosen = {name: options.pop(name, default) for name, default in _DEFAULTS.items()}
        if options:
            raise InvalidArgument(
                f"Tables: expected no option {next(iter(options))!r}. There are {', '.join(_DEFAULTS)}."
            )
        for name, value in {"marginals": asked, **chosen}.items():
            object.__setattr__(self, name, value)
        self._check()

    @classmethod
    def requested(cls, kind: str, tables: Names, keys: Keys, setting: Setting) -> Tables:
        """Tables with or without the accuracy wanted; priors are read if there is a schema that they are about."""
        options = {name: value for name, value in keys.items() if name not in ("prior", "draws")}
        if not tables:
            raise InvalidArgument("Tables: expected a table or more, such as sex,income or 'income|sex'.")
        if kind != "tables":
            options["product"] = "draw" if kind == "draw" else "records"
        if "draws" in keys:
            options["pseudo_records"] = of_type(int, "draws", keys["draws"])
        files = keys.get("prior", ())
        listed = [files] if isinstance(files, str) else files
        if not isinstance(listed, (list, tuple)) or not all(isinstance(file, str) for file in listed):
            raise InvalidArgument('Tables: expected prior to be a CSV file of shares, as in prior = "census.csv".')
        priors = [] if setting.schema is None else [_prior(setting.folder / file, setting.schema) for file in listed]
        return cls(*tables, priors=tuple(priors), **typed(cls, options))

    def _check(self) -> None:
        if not self.marginals:
            raise InvalidArgument("Tables: expected one marginal or more, such as sex,income or income|sex.")
        if len({(frozenset(one.of), frozenset(one.given)) for one in self.marginals}) < len(self.marginals):
            raise InvalidArgument("Tables: a marginal is asked for twice. Each release costs: ask once.")
        checks.one_of("Tables", ("estimate", "draw", "records"), product=self.product)
        checks.probability("Tables", level=self.level)
        if self.pseudo_records is not None:
            checks.positive_integer("Tables", pseudo_records=self.pseudo_records)
        if self.pseudo_records is not None and self.product != "records":
            raise InvalidArgument("Tables: pseudo_records go with product='records'.")
        if self.product != "estimate" and self.mechanism not in ("auto", "dirichlet"):
            raise InvalidArgument(
                "Tables: draws and pseudo-records belong to the Dirichlet mechanism. Leave mechanism out."
            )
        if self.priors and self.product == "records":
            raise InvalidArgument("Tables: a prior guides estimates, and pseudo-records have none. Leave it out.")
        self._check_priors()
        self._check_want()

    def _check_want(self) -> None:
        if not self.want:
            return
        lacking = [each for each in self.marginals if each not in {want.marginal for want in wants(self.want)}]
        if lacking:
            raise InvalidArgument(
                f"Tables: want says nothing about {lacking[0]}. Say how exact it has to be, or leave the table out."
            )
        if self.product != "estimate" or self.mechanism == "dirichlet":
            raise InvalidArgument("Tables: wanted accuracies go with estimates from Gaussian or Laplace noise.")

    def _check_priors(self) -> None:
        for number, prior in enumerate(self.priors):
            about = ", ".join(prior.of)
            if not any(prior.serves(marginal) for marginal in self.marginals):
                raise InvalidArgument(
                    f"Tables: a prior is about {about}, and no marginal is. Ask for one, or leave it out."
                )
            if any(set(prior.of) == set(other.of) for other in self.priors[:number]):
                raise InvalidArgument(f"Tables: two priors are about {about}. Give one.")

    def plan(self, schema: Schema, target: Guarantee) -> Plan:
        """Calibrate the mechanisms from public numbers."""
        check_tables(schema, self.marginals)
        for marginal in self.marginals:
            for prior in self.priors:
                if prior.serves(marginal):
                    prior.shape(marginal, schema)
        tables, mechanisms, choice = self._mechanisms(schema, target)
        return self._paying(
            schema,
            target,
            mechanisms,
            tables=tables,
            asked=() if tables == self.marginals else self.marginals,
            choice=choice,
            about="; ".join(str(marginal) for marginal in self.marginals),
            columns=tuple(attribute.name for attribute in needed(schema, self.marginals)),
        )

    def _mechanisms(
        self, schema: Schema, target: Guarantee
    ) -> tuple[tuple[Marginal, ...], tuple[TableMechanism, ...], str]:
        """What to measure, with which mechanisms, and why."""
        cells = tuple(marginal.size(schema) for marginal in self.marginals)
        records = schema.expected
        if self.product == "records":
            many = self.pseudo_records or schema.records or REFERENCE_RECORDS
            known = records or REFERENCE_RECORDS
            return self.marginals, *_pseudo_records(target, schema, many, cells, known, self.accounting)
        need = Need(
            target=target,
            unit=schema.unit,
            cells=cells,
            rows=tuple(marginal.rows(schema) for marginal in self.marginals),
            records=records,
            wish="dirichlet" if self.product == "draw" else self.mechanism,
            purpose="draw" if self.product == "draw" else "estimate",
            accounting=self.accounting,
        )
        if need.wish == "dirichlet":
            return self.marginals, *mechanisms_for(need)
        return plan_tables(schema, self.marginals, need, self._wanted(schema))

    def _wanted(self, schema: Schema) -> tuple[Wanted, ...]:
        return tuple(
            Wanted(names=each.marginal.names, group=each.group, error=each.error(schema, self.level))
            for each in wants(self.want)
        )

    def least(self, schema: Schema, cap: Guarantee, price: Callable[[Guarantee], Guarantee] | None = None) -> Guarantee:
        """The smallest guarantee up to the cap that gives the wanted accuracies, as a ledger would ``price`` it."""
        check_tables(schema, self.marginals)
        wanted, rule = self._wanted(schema), price or (lambda each: each)
        if found := least_target(schema, self.marginals, self.mechanism, wanted, cap, rule):
            return found
        needed = least_target(schema, self.marginals, self.mechanism, wanted, loosest(cap), lambda each: each)
        try:
            ratios = self._reached(schema, rule(cap), wanted)
        except TargetUnreachable:
            raise out_of_reach(needed, cap, ["nothing can be released"]) from None
        if max(ratios) <= 1:  # small noise has less variance than the bound that it is sized by
            return least(cap, lambda each: max(self._reached(schema, rule(each), wanted)) <= 1, tolerance=1e-4) or cap
        reached = [
            f"{want.marginal} is ± {f'{half:,.0f}' if half >= 100 else f'{half:.3g}'} {want.unit}"
            for want, ratio in zip(wants(self.want), ratios, strict=True)
            for half in [want.half * ratio]
        ]
        raise out_of_reach(needed, cap, reached)

    def _reached(self, schema: Schema, target: Guarantee, wanted: Sequence[Wanted]) -> list[float]:
        """The error of each table under a guarantee, in units of the one that is wanted."""
        plan = self.plan(schema, target)
        made = [(table, plan.paid[by].mechanism) for table, by in zip(plan.tables, plan.places, strict=True)]
        design = describe(schema, self.marginals, made, schema.expected)
        return [each.of(design) / each.error for each in wanted]

    def draw(self, table: Engine, plan: Plan, rng: np.random.Generator | None) -> Drawn:
        """Count in one scan, then draw."""
        return count_and_draw(table, plan.schema, plan.tables, plan, rng)

    def record(self) -> Record:
        """JSON form."""
        return {**BaseJob.record(self), "marginals": [str(each) for each in self.marginals]}

    @classmethod
    def from_record(cls, record: Record) -> Tables:
        """Read the JSON form back."""
        marginals = codec.from_record(tuple[str, ...], record.get("marginals"), "marginals")
        hints = {"priors": tuple[Prior, ...], "level": float}
        options = {
            name: codec.from_record(hints[name], value, name) if name in hints else value
            for name, value in record.items()
            if name != "marginals"
        }
        return cls(*marginals, **options)


def _prior(path: Path, schema: Schema) -> Prior:
    try:
        return Prior.from_csv(path.read_text(encoding="utf-8"), schema)
    except (OSError, UnicodeError):
        raise InvalidArgument(
            f"Tables: the prior {str(path)!r} cannot be read as UTF-8 text. Check the path."
        ) from None


def _pseudo_records(
    target: Guarantee, schema: Schema, many: int, cells: tuple[int, ...], records: int, accounting: Accounting
) -> tuple[tuple[PseudoRecords, ...], str]:
    """The urn that meets the target for this many pseudo-records of every table."""
    if accounting == "published":
        found = published_dirichlet(target, schema.unit, releases=len(cells), cells=max(cells), records=records)
        made = PseudoRecords.of(found, many)
    else:
        curve = PseudoRecordsCurve(target=target, unit=schema.unit, drawn=many, releases=len(cells))
        made = curve.best(cells=max(cells), records=records)
    return (made,) * len(cells), f"pseudo-records: {many:,} for each table, drawn in whole numbers"


_DEFAULTS = {each.name: each.default for each in fields(Tables) if each.name != "marginals"}

JOB = Tables
