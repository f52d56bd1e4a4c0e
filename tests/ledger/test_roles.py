"""On a real server, an analyst can charge, note and read, and the database refuses the rest, whatever SQL is spoken."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count, pairwise, product
from pathlib import Path

import pytest

from dpbayes import ZCDP, ApproxDP, Cost, Dirichlet, Gaussian, Laplace, PureDP, Unit
from dpbayes.base.codec import canonical, digest
from dpbayes.base.errors import BudgetExceeded, LedgerError
from dpbayes.ledger.account import Account, Entry
from dpbayes.ledger.ledger import Ledger
from dpbayes.ledger.pricing import coefficients
from dpbayes.mechanisms.sum_zero import SumZeroLaplace
from dpbayes.mechanisms.tuning import gaussian_noise, laplace_noise
from dpbayes.privacy.calibrate import calibrate
from dpbayes.privacy.convert import pure_mu
from dpbayes.privacy.guarantee import Limit
from dpbayes.schema import Adjacency

NAMES = count()
DEFAULT = ApproxDP(epsilon=1.0, delta=1e-6)


Opened = Callable[[Limit], tuple[str, str]]


@pytest.fixture
def opened(server: object, unit: Unit) -> Opened:
    """A ledger as its owner and as an analyst reach it."""

    def make(limit: Limit) -> tuple[str, str]:
        name = f"roles{next(NAMES)}"
        server.execute(f"CREATE DATABASE {name}")
        Ledger(server.url(name)).open("census", limit, unit)
        server.execute(f"CREATE ROLE ana{name} LOGIN PASSWORD 'x' IN ROLE {name}_ledger_analyst")
        return server.url(name), server.url(name, user=f"ana{name}", password="x")

    return make


@pytest.fixture
def urls(opened: Opened) -> tuple[str, str]:
    return opened(PureDP(epsilon=1.0))


def test_an_analyst_charges_within_the_limit_notes_and_reads(urls: tuple[str, str], unit: Unit) -> None:
    owner, analyst = map(Ledger, urls)
    one = Cost.of(Laplace(scale=2.0, unit=unit))
    receipt = analyst.charge("census", one, about="sex")
    analyst.confirm(receipt, digest="0" * 64)
    owner.charge("census", one)
    with pytest.raises(BudgetExceeded):
        analyst.charge("census", one)
    assert analyst.export("census") == owner.export("census")
    assert [charge.state for charge in owner.account("census").charges.values()] == ["drawn", "charged"]


def test_limits_voids_acceptances_and_fingerprints_are_the_owners(urls: tuple[str, str], unit: Unit) -> None:
    owner, analyst = map(Ledger, urls)
    receipt = analyst.charge("census", Cost.of(Laplace(scale=2.0, unit=unit)))
    before = owner.export("census")
    for refused in (
        lambda: analyst.change_budget("census", PureDP(epsilon=9.0), about="more"),
        lambda: analyst.accept("census", "0" * 64, about="mine"),
        lambda: analyst.void(receipt, about="never was"),
        lambda: analyst.remember_fingerprint("census", "x"),
        lambda: analyst.open("other", PureDP(epsilon=9.0), unit),
    ):
        with pytest.raises(LedgerError, match="refuses this user"):
            refused()
    assert owner.export("census") == before
    owner.void(receipt, about="given up")
    assert owner.account("census").spent == 0.0


def test_a_hostile_client_that_speaks_sql_changes_nothing(urls: tuple[str, str], unit: Unit) -> None:
    import psycopg

    owner, analyst = map(Ledger, urls)
    receipt = analyst.charge("census", Cost.of(Laplace(scale=2.0, unit=unit)))
    account = owner.account("census")
    before = owner.export("census")

    def next_entry(**changed: object) -> str:
        body = {**json.loads(account.entries[1].text), "serial": 2, "previous": account.head.hash, **changed}
        return json.dumps({key: value for key, value in body.items() if value is not None}, sort_keys=True)

    void = Entry.write(dataset="census", after=account.head, kind="void", about="", charge=1, key=receipt.key).text
    raised = Entry.write(
        dataset="census", after=account.head, kind="budget", about="", **{
            key: account.entries[0].body[key] for key in ("format", "budget", "unit", "schema")
        }
    ).text  # fmt: skip
    texts = [
        void, raised, next_entry(serial=1), next_entry(previous="0" * 64), next_entry(dataset="other"),
        next_entry(kind="schema"), next_entry(lock=None), next_entry(extra=1), next_entry(releases=[]),
        Entry.write(dataset="census", after=account.head, kind="drawn", about="", charge=0, digest="x").text, "null",
    ]  # fmt: skip
    release = account.entries[1].body["releases"][0]
    above = next_entry(releases=[{**release, "mechanism": {**release["mechanism"], "scale": 1.9}}])
    statements = [
        *((f"SELECT dpbayes_append('census', {text!r})") for text in texts),
        "DELETE FROM dpbayes_entries",
        "TRUNCATE dpbayes_entries",
        "UPDATE dpbayes_entries SET text = ''",
        "UPDATE dpbayes_datasets SET head = ''",
        "INSERT INTO dpbayes_entries VALUES ('census', 2, '', '')",
        "INSERT INTO dpbayes_datasets VALUES ('mine', '')",
        "UPDATE dpbayes_ledger SET format = 1",
        "SELECT fingerprint FROM dpbayes_datasets",
        "DROP TABLE dpbayes_entries",
        "ALTER TABLE dpbayes_entries DISABLE TRIGGER ALL",
        "CREATE OR REPLACE FUNCTION dpbayes_lock(wanted text) RETURNS text LANGUAGE sql AS 'SELECT 1::text'",
        f"SET ROLE {urls[0].rpartition('/')[2]}_ledger_owner",
    ]
    with psycopg.connect(urls[1], autocommit=True) as connection:
        connection.execute("GRANT ALL ON dpbayes_entries TO PUBLIC")  # a warning: there is nothing to grant
        with pytest.raises(psycopg.Error) as refused:
            connection.execute("SELECT dpbayes_append('census', %s)", [above])
        assert refused.value.sqlstate == "DP001"
        for statement in statements:
            with pytest.raises(psycopg.Error):
                connection.execute(statement)
        connection.execute("CREATE TEMP TABLE dpbayes_datasets (dataset text, head text, fingerprint text)")
        connection.execute("INSERT INTO dpbayes_datasets VALUES ('census', 'mine', '')")
        assert connection.execute("SELECT dpbayes_lock('census')").fetchone() == (account.head.hash,)
    assert owner.export("census") == before


def hostile(account: Account, *releases: object) -> str:
    """The next entry as a client writes it that weighs nothing."""
    details = {"releases": list(releases), "lock": "0" * 64, "schema": "", "software": {}}
    return Entry.write(dataset="census", after=account.head, kind="charge", about="", **details).text


def part(noise: object, times: object = 1, **changed: object) -> dict[str, object]:
    return {"mechanism": {**noise.record(), **changed}, "times": times}


def refusals(url: str, *texts: str) -> list[str]:
    """The SQLSTATE with which the database refuses each of these entries."""
    import psycopg

    found = []
    with psycopg.connect(url, autocommit=True) as connection:
        for text in texts:
            with pytest.raises(psycopg.Error) as refused:
                connection.execute("SELECT dpbayes_append('census', %s)", [text])
            found.append(refused.value.sqlstate)
    return found


@pytest.mark.parametrize("limit", [PureDP(epsilon=1.0), ZCDP(rho=0.02), DEFAULT], ids=lambda limit: limit.name)
def test_an_honest_analyst_can_use_the_whole_limit_and_a_hostile_one_no_more(
    limit: Limit, opened: Opened, unit: Unit
) -> None:
    owner_url, analyst_url = opened(limit)
    owner, analyst = Ledger(owner_url), Ledger(analyst_url)
    kind, name, family = (
        (Laplace, "scale", laplace_noise) if isinstance(limit, PureDP) else (Gaussian, "sigma", gaussian_noise)
    )

    for who, doubled in ((analyst, 2.0), (owner, 2.0), (analyst, 2.0), (analyst, 1.0)):
        account = owner.account("census")  # a part of what is left, and at last all of it
        fitting = calibrate(family(unit), account.priced(account.rest()))
        one = kind(**{name: doubled * getattr(fitting, name)}, unit=unit)
        who.check("census", Cost.of(one))
        who.charge("census", Cost.of(one))
    account = owner.account("census")
    assert 1.0 - 1e-8 <= account.used <= 1.0
    more = kind(**{name: 3e4}, unit=unit)
    with pytest.raises(BudgetExceeded):
        analyst.charge("census", Cost.of(more, 10**6))
    assert refusals(analyst_url, hostile(account, part(more, 10**6))) == ["DP001"]


@pytest.mark.parametrize("limit", [PureDP(epsilon=1.0), ZCDP(rho=0.02), DEFAULT], ids=lambda limit: limit.name)
def test_what_the_database_cannot_price_it_refuses(limit: Limit, opened: Opened, unit: Unit) -> None:
    owner_url, analyst_url = opened(limit)
    owner, analyst = Ledger(owner_url), Ledger(analyst_url)
    account, before = owner.account("census"), owner.export("census")
    made = Laplace(scale=200.0, unit=unit)
    other = {"adjacency": "add-remove", "max_rows": 1, "person": "name"}
    parts = [
        *(part(made, scale=size) for size in (0, -200.0, 1e-300, 1e300, "200", True, None, [200.0], {})),
        *(part(made, times) for times in (0, -1, 1.5, 10**9 + 1, 10**30, "1", True, None, [1])),
        *(part(made, unit=each) for each in (None, {}, other, {**unit.record(), "max_rows": 0.5})),
        part(made, mechanism="laplace-2"), part(made, mechanism=None), part(made, epsilon=0.0), part(made, sigma=1e9),
        {**part(made), "price": 0.0}, {"times": 1}, {"mechanism": made.record()}, [], None, 1, "x",
        part(Dirichlet(weight=1e-6, concentration=1e6, unit=unit)),
    ]  # fmt: skip
    texts = [hostile(account, *also, each) for each in parts for also in ([], [part(made)])]
    assert dict(zip(texts, refusals(analyst_url, *texts), strict=True)) == dict.fromkeys(texts, "DP002")
    spelt = [hostile(account, part(made)).replace("200.0", number) for number in ("NaN", "Infinity", "1e400000")]
    assert all(state.startswith("22") for state in refusals(analyst_url, *spelt))  # not a number in JSON
    above = hostile(account, part(made, 10**9)), hostile(account, *[part(made, 100)] * 300)
    assert refusals(analyst_url, *above) == ["DP001", "DP001"]
    assert owner.export("census") == before
    unpriced = Cost.of(Dirichlet(weight=1e-3, concentration=1e3, unit=unit))
    if limit is DEFAULT:
        for refused in (analyst.check, analyst.charge):
            with pytest.raises(LedgerError, match=r"this kind of charge needs the owner's role\.$"):
                refused("census", unpriced)
        spent = owner.charge("census", unpriced).spending.spent
        assert analyst.charge("census", Cost.of(made)).spending.spent > spent


def test_many_small_charges_at_once_stay_within_the_limit(opened: Opened, unit: Unit) -> None:
    import psycopg

    owner_url, analyst_url = opened(DEFAULT)
    small = part(Gaussian(sigma=20.0, unit=unit))  # 22 of them fit

    def press(_: int) -> tuple[int, str]:
        kept = 0
        with psycopg.connect(analyst_url, autocommit=True) as connection:
            for _ in range(200):
                rows = "SELECT text FROM dpbayes_entries ORDER BY serial"
                *_, last = connection.execute(rows).fetchall()
                after = Entry(text=last[0], hash=digest(last[0]), body=json.loads(last[0]))
                details = {"releases": [small], "lock": "0" * 64, "schema": "", "software": {}}
                text = Entry.write(dataset="census", after=after, kind="charge", about="", **details).text
                try:
                    connection.execute("SELECT dpbayes_append('census', %s)", [text])
                    kept += 1
                except psycopg.errors.InsufficientPrivilege:  # another one was the next entry
                    continue
                except psycopg.Error as problem:
                    return kept, problem.sqlstate
        return kept, ""

    with ThreadPoolExecutor(3) as pool:
        kept, ends = zip(*pool.map(press, range(3)), strict=True)
    account = Ledger(owner_url).account("census")
    assert ends == ("DP001",) * 3
    assert len(account.charges) == sum(kept) == 22
    assert account.used <= 1.0 < account.used * 23 / 22


def test_the_databases_price_is_between_the_true_one_and_the_clients(urls: tuple[str, str]) -> None:
    import psycopg

    with psycopg.connect(urls[0]) as connection:

        def price(mechanism: object) -> tuple[float, ...]:
            query = "SELECT pure, rho, square, flag FROM dpbayes_price(%s::jsonb, %s::jsonb)"
            values = [canonical(part(mechanism)), canonical(mechanism.unit.record())]
            return tuple(math.inf if x is None else float(x) for x in connection.execute(query, values).fetchone())

        for adjacency, rows in product(Adjacency, (1, 3)):
            unit = Unit(adjacency=adjacency, max_rows=rows)
            for sigma in (2.0001, 2.5, 3.3, 4.0, 7.0, 29.0, 150.0, 299.0, 301.0, 1e4):
                noise = Gaussian(sigma=sigma, unit=unit)
                mu, flagged = noise.gdp()
                pure, rho, square, flag = price(noise)
                assert math.isinf(pure)
                assert rho == pytest.approx(noise.concentrated(math.inf), rel=1e-14)
                assert mu * (1 - 2e-8) <= math.sqrt(square) <= mu
                assert flagged <= flag * (1 + 1e-9)
                assert flag <= 1.5 * flagged or flagged > 1e-9
            pure_noise = [Laplace(scale=scale, unit=unit) for scale in (0.5, 1.0, 3.0, 40.0, 1e6)]
            if unit.replaces:
                pure_noise += [SumZeroLaplace(scale=2.0, cells=cells, unit=unit) for cells in (2, 256)]
            for noise in pure_noise:
                pure, rho, square, _ = price(noise)
                assert pure == pytest.approx(noise.renyi(math.inf), rel=1e-14)
                assert rho == pytest.approx(noise.concentrated(math.inf), rel=1e-14)
                assert square >= (pure_mu(pure) / (1 + 1e-9)) ** 2 * (1 - 1e-11)
                assert pure > 2 or square <= pure_mu(pure) ** 2
        assert math.isinf(price(Gaussian(sigma=1.9, unit=unit))[2])
        replace = Unit(adjacency="replace-one")
        record = SumZeroLaplace(scale=2.0, cells=3, unit=replace).record()
        for wrong in ({"cells": 1}, {"cells": 257}, {"cells": "3"}, {"cells": None}, {"cells": 2.5}, {"": 1}):
            body = canonical({"mechanism": {**record, **wrong}, "times": 1})
            with pytest.raises(psycopg.Error, match="for the owner only"):
                connection.execute("SELECT dpbayes_price(%s::jsonb, %s::jsonb)", [body, canonical(replace.record())])
            connection.rollback()


def test_the_owner_is_told_if_no_roles_could_be_made(
    server: object,
    unit: Unit,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    from dpbayes.cli.main import run

    server.execute("CREATE ROLE modest LOGIN PASSWORD 'x'")
    server.execute("CREATE DATABASE modest OWNER modest")
    url = server.url("modest", user="modest", password="x")
    (tmp_path / "census.toml").write_text(
        'id = "census"\nadjacency = "add-remove"\n[[attribute]]\nname = "sex"\ncategories = ["F", "M"]\n'
    )
    options = ["--ledger", url, "--epsilon", "1", "--delta", "0"]
    monkeypatch.setattr("sys.argv", ["dpbayes", "ledger", "init", str(tmp_path / "census.toml"), *options])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code in (0, None)
    assert "made no roles for owner and analysts" in " ".join(capsys.readouterr().err.split())
    assert Ledger(url).lacks_roles
    Ledger(url).charge("census", Cost.of(Laplace(scale=2.0, unit=unit)))


def test_the_series_of_the_normal_quantile_is_that_of_scipy() -> None:
    from scipy.special import ndtri

    series = [float(each) for each in coefficients()]
    assert all(0 < later / earlier < 2 / math.pi for earlier, later in pairwise(series))
    for z in (0.01, 0.1, 0.3, 0.6):
        found = math.fsum(each * z ** (2 * k + 1) for k, each in enumerate(series))
        assert found == pytest.approx(ndtri(0.5 + z / math.sqrt(2 * math.pi)), rel=1e-13)
