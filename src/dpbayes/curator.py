"""The curator: the only place where the sensitive table and the ledger meet. Calibrate, charge, count, draw, wrap."""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

import numpy as np

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.domain.counts import Counts
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.prior import Prior
from dpbayes.domain.schema import Schema
from dpbayes.errors import InvalidArgument, LedgerError
from dpbayes.ledger.entry import canonical
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.tuning import (
    REFERENCE_RECORDS,
    Accounting,
    ConcentrationCurve,
    Purpose,
    gaussian_noise,
    laplace_noise,
    published_dirichlet,
)
from dpbayes.mechanisms.urn import pseudo_records
from dpbayes.plan import Question, plan, smaller
from dpbayes.privacy.calibrate import calibrate
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.products import TableMechanism, groups, products
from dpbayes.release import Axis, Release, Spending, Table, digest_of, now
from dpbayes.tables.engine import Engine, check_public_totals, check_schema, needed

if TYPE_CHECKING:
    from dpbayes.ledger.ledger import Ledger, Receipt

Wish = Literal["auto", "dirichlet", "gaussian", "laplace"]
WISHES = ("auto", "dirichlet", "gaussian", "laplace")

QUICK = 24
"""Simulated tables on which ``auto`` compares the mechanisms."""

LOOSEST = 1e6
"""The largest ε or ρ that a request may name; beyond it there is no noise left to compute with."""

GRID_BITS = 20
"""Gammas are rounded to a power of two this many bits below their smallest standard deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for: public, and complete, so that it can be previewed and priced without data."""

    marginals: tuple[Marginal, ...]
    target: Guarantee
    mechanism: Wish = "auto"
    purpose: Purpose = "estimate"
    accounting: Accounting = "exact"
    expected_records: int | None = None
    pseudo_records: int | None = None
    priors: tuple[Prior, ...] = ()
    """Public guesses at the distributions, each for the marginals of its attributes."""
    level: float = 0.95

    def __post_init__(self) -> None:
        if not self.marginals:
            raise InvalidArgument("Request: expected one marginal or more, such as sex,income or income|sex.")
        if len({(frozenset(one.of), frozenset(one.given)) for one in self.marginals}) < len(self.marginals):
            raise InvalidArgument("Request: a marginal is asked for twice. Each release costs: ask once.")
        _checks.one_of("Request", WISHES, mechanism=self.mechanism)
        _checks.one_of("Request", ("draw", "estimate"), purpose=self.purpose)
        _checks.one_of("Request", ("exact", "published"), accounting=self.accounting)
        _checks.probability("Request", level=self.level)
        for name in ("expected_records", "pseudo_records"):
            if getattr(self, name) is not None:
                _checks.positive_integer("Request", **{name: getattr(self, name)})
        if self.target.size > LOOSEST:
            raise InvalidArgument(f"Request: expected a guarantee up to {LOOSEST:g}, got {self.target}.")
        for name in ("order", "omega"):
            if math.isinf(getattr(self.target, name, 1.0)):
                raise InvalidArgument(f"Request: expected a finite {name}; ask for pure DP or zCDP instead.")
        if self.pseudo_records is not None and (self.mechanism != "dirichlet" or self.purpose != "draw"):
            raise InvalidArgument(
                "Request: pseudo_records are records of a Dirichlet draw; set mechanism='dirichlet' and purpose='draw'."
            )
        if self.priors and self.pseudo_records is not None:
            raise InvalidArgument("Request: a prior guides estimates, and pseudo-records have none. Leave it out.")
        for number, prior in enumerate(self.priors):
            about = ", ".join(prior.of)
            if not any(prior.serves(marginal) for marginal in self.marginals):
                raise InvalidArgument(
                    f"Request: a prior is about {about}, and no marginal is. Ask for one, or leave it out."
                )
            if any(set(prior.of) == set(other.of) for other in self.priors[:number]):
                raise InvalidArgument(f"Request: two priors are about {about}. Give one.")
        if self.mechanism != "dirichlet" and (self.purpose == "draw" or self.accounting == "published"):
            raise InvalidArgument(
                "Request: draws and published parameters are the Dirichlet mechanism's; set mechanism='dirichlet', "
                "or ask for an estimate with exact accounting."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A calibrated request: which mechanism, at what cost, and why. No data was read."""

    request: Request
    mechanism: TableMechanism
    choice: str

    @property
    def cost(self) -> Cost:
        """What the whole request costs."""
        return Cost.of(self.mechanism, len(self.request.marginals))


class Curator:
    """Holds the table, its schema and the ledger, and makes releases.

    A ``seed`` makes draws repeatable: such a release is stamped as not private and is never charged.
    """

    def __init__(
        self,
        *,
        engine: Engine,
        schema: Schema,
        ledger: Ledger | None,
        seed: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        if seed is not None and (type(seed) is not int or seed < 0):
            raise InvalidArgument(f"Curator: expected seed to be a whole number >= 0, got {seed!r}.")
        self._engine = engine
        self._schema = schema
        self._ledger = ledger
        self._seed = seed
        self._say = progress or (lambda _: None)

    def propose(self, request: Request) -> Proposal:
        """Calibrate the request. Looks at the schema and at column names, never at rows."""
        for marginal in request.marginals:
            marginal.axes(self._schema)
            self._shape(request, marginal)
        attributes = needed(self._schema, request.marginals)
        check_schema(self._schema, self._engine.columns(), [attribute.name for attribute in attributes])
        mechanism, choice = self._choose(request)
        return Proposal(request=request, mechanism=mechanism, choice=choice)

    def release(self, request: Request) -> Release:
        """Charge the ledger, then count and draw.

        If counting fails, nothing was drawn and the charge is voided; from the first draw on it stays. Then
        nothing asks the ledger any more, so that what was paid for is not lost to a ledger that went away.
        """
        self._say("calibrating")
        proposal = self.propose(request)
        self._say("charging the ledger")
        receipt = self._charge(proposal)
        try:
            spending = self._spending(receipt)
            self._say("counting")
            counts = self._engine.count(self._schema, request.marginals)
            for table in counts:
                check_public_totals(self._schema, table)
        except BaseException:
            if receipt is not None and self._ledger is not None:
                self._ledger.void(receipt, about="counting failed; nothing was drawn")
            raise
        self._say("drawing")
        rng = None if self._seed is None else np.random.default_rng(self._seed)
        drawn = [self._draw(table, proposal, rng) for table in counts]
        if receipt is not None and self._ledger is not None:
            with suppress(LedgerError):  # only a note: a charge without it counts as well
                self._ledger.confirm(receipt, digest=digest_of(drawn))
        self._say("estimating")
        return self._wrap(proposal, drawn, self._public_records(counts), spending)

    def remember(self, marginals: Sequence[Marginal]) -> bool:
        """Whether the table has changed since the ledger last saw these columns. Keeps a digest, publishes none."""
        if self._ledger is None:
            return False
        columns = [attribute.name for attribute in needed(self._schema, marginals)]
        found = self._engine.fingerprint(columns)
        comparable = canonical([found.partition(":")[0], columns])  # the same engine, version and columns
        return self._ledger.remember_fingerprint(self._schema.id, found, of=comparable)

    # -- choosing ---------------------------------------------------------------------------------------------

    def _choose(self, request: Request) -> tuple[TableMechanism, str]:
        unit, target, releases = self._schema.unit, request.target, len(request.marginals)
        cells = max(marginal.size(self._schema) for marginal in request.marginals)
        records = self._schema.records or request.expected_records or REFERENCE_RECORDS
        if request.mechanism == "auto":
            question = Question(cells=max(cells, 2), records=records, target=target, unit=unit, releases=releases)
            made = plan(smaller(question), products=("estimate",), repetitions=QUICK)
            return made.choice.mechanism, made.why
        if request.mechanism == "gaussian":
            return calibrate(gaussian_noise(unit), target, times=releases), "gaussian, asked for"
        if request.mechanism == "laplace":
            return calibrate(laplace_noise(unit), target, times=releases), "laplace, asked for"
        if request.accounting == "published":
            made_as_published = published_dirichlet(target, unit, releases=releases, cells=cells, records=records)
            return made_as_published, "dirichlet, asked for, with the papers' parameters"
        curve = ConcentrationCurve(target=target, unit=unit, releases=releases)
        best = curve.best(purpose=request.purpose, cells=cells, records=records)
        article = "an" if request.purpose == "estimate" else "a"
        return best, f"dirichlet, asked for; its weight suits {article} {request.purpose}"

    # -- charging ---------------------------------------------------------------------------------------------

    def _charge(self, proposal: Proposal) -> Receipt | None:
        if self._ledger is None or self._seed is not None:
            return None
        about = "; ".join(str(marginal) for marginal in proposal.request.marginals)
        return self._ledger.charge(self._schema.id, proposal.cost, about=about[:1000])

    # -- drawing ----------------------------------------------------------------------------------------------

    def _draw(self, counts: Counts, proposal: Proposal, rng: np.random.Generator | None) -> Table:
        mechanism, request = proposal.mechanism, proposal.request
        table = partial(
            Table,
            marginal=counts.marginal.record(),
            axes=[Axis(name=axis.name, levels=list(axis.levels)) for axis in counts.axes],
            mechanism=mechanism.record(),
        )
        if request.pseudo_records is not None and isinstance(mechanism, Dirichlet):
            below = secrets.randbelow if self._seed is None else random.Random(self._seed).randrange  # noqa: S311 - seeded
            drawn = pseudo_records(mechanism, counts.array, request.pseudo_records, below=below)
            return table(kind="pseudo-records", values=[int(value) for value in drawn.ravel()])
        if isinstance(mechanism, Dirichlet):
            grid = _grid(mechanism)
            gammas = mechanism.gammas(counts.array, rng)
            values = np.maximum(np.rint(gammas / grid), 1.0) * grid
            return table(kind="gammas", values=values.ravel().tolist(), grid=grid)
        noisy = mechanism.draw(counts.array, rng)
        return table(kind="noisy-counts", values=[int(value) for value in noisy.ravel()])

    # -- wrapping ---------------------------------------------------------------------------------------------

    def _public_records(self, counts: Sequence[Counts]) -> int | None:
        """The number of records: the same for all neighbours under replace-one, private under add-remove."""
        return int(counts[0].array.sum()) if self._schema.unit.replaces else None

    def _wrap(self, proposal: Proposal, drawn: list[Table], records: int | None, spending: Spending | None) -> Release:
        request = proposal.request
        tables = [self._with_products(table, proposal, records) for table in drawn]
        return Release(
            dpbayes=version("dpbayes"),
            created=now(),
            dataset=self._schema.id,
            unit=dict(self._schema.unit.record()),
            guarantee=dict(request.target.record()),
            accounting=request.accounting,
            choice=proposal.choice,
            records=records,
            seeded=self._seed is not None,
            level=request.level,
            tables=tables,
            ledger=spending,
        )

    def _with_products(self, table: Table, proposal: Proposal, records: int | None) -> Table:
        mechanism, marginal = proposal.mechanism, table.asked
        if table.kind == "pseudo-records":
            return table
        row_records = self._row_records(marginal)
        prior = self._shape(proposal.request, marginal)
        made = products(
            table.array(),
            mechanism,
            marginal,
            records=records,
            row_records=row_records,
            shape=prior,
            level=proposal.request.level,
        )
        return table.model_copy(
            update={
                "products": made,
                "groups": groups(table.axes, marginal, made["counts"], mechanism),
                "row_records": None if row_records is None else row_records.tolist(),
                "prior": None if prior is None else prior.tolist(),
            }
        )

    def _shape(self, request: Request, marginal: Marginal) -> Floats | None:
        """The public guess at what a marginal counts, if there is one."""
        for prior in request.priors:
            if prior.serves(marginal):
                return prior.shape(marginal, self._schema)
        return None

    def _row_records(self, marginal: Marginal) -> Floats | None:
        """Totals of the rows of a conditional table, where the schema declares them public."""
        for margin in self._schema.margins:
            if margin.of == marginal.given:
                return np.asarray(margin.totals, dtype=np.float64)
        return None

    def _spending(self, receipt: Receipt | None) -> Spending | None:
        if receipt is None or self._ledger is None:
            return None
        account = self._ledger.account(receipt.dataset)
        return Spending(
            receipt=receipt.record(),
            spent=account.price(account.cost),
            limit=account.limit,
            left=account.left(),
            budget=dict(account.budget.record()),
        )


def _grid(mechanism: Dirichlet) -> float:
    """The public grid of a Dirichlet release: a power of two far below the smallest spread √α of a gamma."""
    smallest = min(mechanism.concentration) if isinstance(mechanism.concentration, tuple) else mechanism.concentration
    return 2.0 ** (math.floor(0.5 * math.log2(smallest)) - GRID_BITS)
