"""Releases of every kind for tests: drawn from fixed counts, complete with their products."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpbayes import RDP, ApproxDP, Dirichlet, Gaussian, Laplace, PrivacyUnit, PureDP
from dpbayes.domain.marginal import Marginal
from dpbayes.ledger.ledger import Ledger
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.products import TableMechanism, groups, products
from dpbayes.release import Axis, Release, Spending, Table, digest_of

REPLACE, ADD = PrivacyUnit(adjacency="replace-one"), PrivacyUnit(adjacency="add-remove")
GRID = 2.0**-20
LEVELS = {
    "sex": ["female", "male"],
    "income": ["low", "middle", "high"],
    "region": ["North", "South", "Islands"],
    "code": [f"c{number:03d}" for number in range(200)],
    "<b>bold</b>": ["<script>alert(1)</script>", '" onload="alert(2)', "a & b", "日本", "العربية", "x" * 300],
}


def counts_of(names: tuple[str, ...]) -> np.ndarray:
    """Fixed counts: uneven, and few in the last level of the first attribute."""
    shape = [len(LEVELS[name]) for name in names]
    table = 400 + 300 * np.sin(np.arange(np.prod(shape))).reshape(shape)
    if len(names) > 1:
        table[-1] /= 40.0
    return np.rint(table).astype(np.int64)


def table_of(
    asked: str, mechanism: TableMechanism, *, known: bool, pseudo: bool = False, estimates: bool = True
) -> Table:
    marginal = Marginal.parse(asked)
    counts, rng = counts_of(marginal.names), np.random.default_rng(7)
    axes = [Axis(name=name, levels=LEVELS[name]) for name in marginal.names]
    common = {"marginal": marginal.record(), "axes": axes, "mechanism": mechanism.record()}
    if pseudo:
        return Table(**common, kind="pseudo-records", values=counts.ravel().tolist())
    if isinstance(mechanism, Dirichlet):
        values = np.maximum(np.rint(mechanism.gammas(counts, rng) / GRID), 1.0) * GRID
        table = Table(**common, kind="gammas", values=values.ravel().tolist(), grid=GRID)
    else:
        table = Table(**common, kind="noisy-counts", values=mechanism.draw(counts, rng).ravel().tolist())
    if not estimates:
        return table
    made = products(table.array(), mechanism, marginal, records=int(counts.sum()) if known else None)
    return table.model_copy(update={"products": made, "groups": groups(axes, marginal, made["counts"], mechanism)})


def wrapped(*tables: Table, unit: PrivacyUnit, promise: Guarantee, **others: object) -> Release:
    records = int(counts_of(tables[0].asked.names).sum()) if unit.replaces else None
    common = {"dpbayes": "0.1.0", "created": "2025-01-31T12:00:00+00:00", "dataset": "survey", "accounting": "exact"}
    return Release(
        **{**common, "choice": "asked for", "records": records, "seeded": False, "unit": unit.record(), **others},
        guarantee=promise.record(),
        tables=list(tables),
    )


@lru_cache
def a_release(kind: str) -> Release:
    """One release of each kind that readers may meet."""
    match kind:
        case "joint":
            made = Gaussian(sigma=8, unit=REPLACE)
            promise = ApproxDP(epsilon=1, delta=1e-6)
            return wrapped(table_of("sex,income", made, known=True), unit=REPLACE, promise=promise)
        case "gammas":
            drawn = Dirichlet(weight=1.0, concentration=20.0, unit=REPLACE)
            promise = RDP(order=5, epsilon=0.5)
            return wrapped(table_of("sex,income", drawn, known=True), unit=REPLACE, promise=promise)
        case "conditional":
            drawn = Dirichlet(weight=0.5, concentration=3.0, unit=REPLACE)
            promise = ApproxDP(epsilon=3, delta=1e-6)
            return wrapped(table_of("income|region", drawn, known=True), unit=REPLACE, promise=promise)
        case "add-remove":
            noise = Laplace(scale=4, unit=ADD)
            tables = [table_of(asked, noise, known=False) for asked in ("sex", "income")]
            return wrapped(*tables, unit=ADD, promise=PureDP(epsilon=0.5))
        case "pseudo-records":
            drawn = Dirichlet(weight=1.0, concentration=20.0, unit=REPLACE)
            return wrapped(
                table_of("income", drawn, known=True, pseudo=True), unit=REPLACE, promise=RDP(order=5, epsilon=0.5)
            )
        case "seeded":
            return a_release("joint").model_copy(update={"seeded": True})
        case "large":
            table = table_of("code", Gaussian(sigma=8, unit=REPLACE), known=True)
            return wrapped(table, unit=REPLACE, promise=ApproxDP(epsilon=1, delta=1e-6))
        case "hostile":
            table = table_of("<b>bold</b>", Gaussian(sigma=8, unit=REPLACE), known=True)
            return wrapped(
                table,
                unit=REPLACE,
                promise=ApproxDP(epsilon=1, delta=1e-6),
                dataset="<img src=x onerror=alert(3)>",
                choice="</td><script>",
            )
    raise AssertionError(kind)


VERIFYING = ("joint", "gammas", "conditional", "add-remove", "pseudo-records", "large", "hostile")
KINDS = (*VERIFYING, "seeded")


def charged(release: Release, ledger: Ledger) -> Release:
    """The same release with its receipt, charged to a new account of this ledger."""
    from dpbayes.mechanisms.records import from_record

    cost = Cost.total(from_record(table.mechanism) for table in release.tables)
    ledger.open(release.dataset, ApproxDP(epsilon=5, delta=1e-6), release.privacy_unit)
    receipt = ledger.charge(release.dataset, cost)
    ledger.confirm(receipt, digest=digest_of(release.tables))
    account = ledger.account(release.dataset)
    spending = Spending(
        receipt=receipt.record(),
        spent=account.price(account.cost),
        limit=account.limit,
        left=2.5,
        budget=dict(account.budget.record()),
    )
    return release.model_copy(update={"ledger": spending})
