"""The jobs whose speed the project set itself goals for. Each runs in a process of its own, see `benchmarks.goals`.

A row is a function that prepares, then yields named actions; the first is ours, a second one is what it is compared
with. Both are timed in the same process, in turn.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpbayes import ApproxDP, Attribute, Cost, Curator, Dirichlet, Laplace, Ledger, Schema, Tables, Unit
from dpbayes.schema import Marginal

UNIT = Unit(adjacency="replace-one")
TARGET = ApproxDP(epsilon=1, delta=1e-6)
Actions = dict[str, Callable[[], object]]


def made(shape: tuple[int, ...], records: int, *, prefix: str = "a") -> tuple[dict[str, np.ndarray], Schema]:
    """A table of random categories, and its schema."""
    rng = np.random.default_rng(0)
    names = [f"{prefix}{place}" for place in range(len(shape))]
    table = {name: (rng.random(records) ** 2 * size).astype(np.int64) for name, size in zip(names, shape, strict=True)}
    attributes = tuple(
        Attribute(name=name, categories=tuple(map(str, range(size))), unknown="drop", missing="drop")
        for name, size in zip(names, shape, strict=True)
    )
    return table, Schema(id="benchmark", unit=UNIT, records=records, attributes=attributes)


def command(*arguments: str) -> None:
    subprocess.run([sys.executable, "-c", "from dpbayes.cli.main import run; run()", *arguments], check=True,
                   capture_output=True)  # fmt: skip


def start(mechanism: str) -> Callable[[Path], Actions]:
    def prepare(folder: Path) -> Actions:
        command("example", str(folder / "private"))
        numbers = itertools.count()

        def release() -> None:
            place = folder / str(next(numbers))
            place.mkdir()
            survey, ledger = str(folder / "private/survey.csv"), str(place / "l")
            command("ledger", "init", survey, "--ledger", ledger, "--epsilon", "2", "--delta", "1e-6")
            command("release", survey, "region", "--epsilon", "1", "--set", f"mechanism={mechanism}",
                    "--ledger", ledger, "--out", str(place / "out"))  # fmt: skip

        def ledger_only() -> None:
            place = folder / str(next(numbers))
            command("ledger", "init", str(folder / "private/survey.csv"), "--ledger", str(place), "--epsilon", "2",
                    "--delta", "1e-6")  # fmt: skip

        bare = [sys.executable, "-c", "import numpy, duckdb"]
        return {
            "dpbayes": release,
            "less: opening the ledger": ledger_only,
            "python, numpy and duckdb": lambda: subprocess.run(bare, check=True),
        }

    return prepare


def counting(rows: int, tables: int, against: str) -> Callable[[Path], Actions]:
    def prepare(folder: Path) -> Actions:
        from benchmarks import counting as bench
        from dpbayes.tables.engine import pack
        from dpbayes.tables.sources import open_table

        names = list(bench.CATEGORIES)
        pairs = [Marginal(pair) for pair in itertools.islice(itertools.combinations(names, 2), tables)]
        columns = sorted({name for marginal in pairs for name in marginal.names})
        path, schema = folder / "rows.parquet", bench.schema()
        bench.write_table(path, rows, columns)
        lengths = ", ".join(f"sum(length({name}))" for name in columns)

        def scan() -> None:
            bench.quiet().execute(f"SELECT {lengths} FROM read_parquet('{path}')").fetchall()

        def by_hand() -> None:
            queries = []
            for table in pack(schema, pairs):
                key = "0"
                for axis, base in zip(table.axes, table.shape, strict=True):
                    key = f"({key}) * {base} + {bench.DUCKDB.code(axis.name, 'VARCHAR', axis)}::BIGINT - 1"
                queries.append(f"(SELECT {key} AS k, count(*) FROM read_parquet('{path}') GROUP BY k)")
            bench.quiet().execute(" UNION ALL ".join(queries)).fetchall()

        other = {"scan": scan} if against == "scan" else {"one GROUP BY per packed table": by_hand}
        return {"dpbayes": lambda: open_table(str(path)).count(schema, pairs), **other}

    return prepare


def released(shape: tuple[int, ...], marginals: list[str], **options: Any) -> Callable[[Path], Actions]:
    def prepare(folder: Path) -> Actions:
        import pyarrow as pa

        table, schema = made(shape, options.get("records", 100_000))
        curator, numbers = Curator(pa.table(table), schema), itertools.count()
        job = Tables(*marginals, mechanism="gaussian")
        if options.get("draws"):
            return {"dpbayes": lambda: curator.release(job, TARGET, estimates=False)}
        return {"dpbayes": lambda: curator.release(job, TARGET, out=folder / str(next(numbers)))}

    return prepare


def conditional(folder: Path) -> Actions:
    del folder
    import pyarrow as pa

    table, schema = made((100, 100), 100_000)
    curator = Curator(pa.table(table), schema)
    return {
        "dpbayes": lambda: curator.release(Tables("a1|a0", mechanism="gaussian"), TARGET),
        "the joint table": lambda: curator.release(Tables("a0,a1", mechanism="gaussian"), TARGET),
    }


def planned(tables: int) -> Callable[[Path], Actions]:
    def prepare(folder: Path) -> Actions:
        import pyarrow as pa

        table, schema = made((16,) * 16, 100_000)
        pairs = [",".join(pair) for pair in itertools.islice(itertools.combinations(table, 2), tables)]
        curator, job, numbers = Curator(pa.table(table), schema), Tables(*pairs), itertools.count()

        def plan() -> None:
            forget()
            curator.plan(job, TARGET)

        def release() -> None:
            forget()
            curator.release(job, TARGET, out=folder / str(next(numbers)))

        return {"dpbayes": plan, "the release": release}

    return prepare


def whole_command(rows: int, tables: int) -> Callable[[Path], Actions]:
    """`dpbayes release`, start to end, beside a process that only scans the columns: both start Python and DuckDB."""

    def prepare(folder: Path) -> Actions:
        from benchmarks import counting as bench

        pairs = list(itertools.islice(itertools.combinations(bench.CATEGORIES, 2), tables))
        columns = sorted({name for pair in pairs for name in pair})
        path, numbers = folder / "rows.parquet", itertools.count()
        bench.write_table(path, rows, columns)
        (folder / "schema.toml").write_text(bench.schema().to_toml(), encoding="utf-8")
        lengths = ", ".join(f"sum(length({name}))" for name in columns)
        query = f"SELECT {lengths} FROM read_parquet('{path}')"
        script = (
            'import duckdb; connection = duckdb.connect().execute("SET enable_progress_bar = false"); '
            f'connection.execute("{query}").fetchall()'
        )
        scan = [sys.executable, "-c", script]
        asked = [",".join(pair) for pair in pairs]

        def release() -> None:
            command("release", str(path), "--schema", str(folder / "schema.toml"), *asked, "--epsilon", "1",
                    "--delta", "1e-6", "--ledger", "none", "--out", str(folder / str(next(numbers))))  # fmt: skip

        return {"dpbayes": release, "a process that scans": lambda: subprocess.run(scan, check=True)}

    return prepare


def ledger(make: Callable[[int], Laplace | Dirichlet], *, together: bool) -> Callable[[Path], Actions]:
    def prepare(folder: Path) -> Actions:
        import dp_accounting.pld.privacy_loss_distribution  # noqa: F401 - measured apart from the work

        numbers = itertools.count()

        def opened() -> Ledger:
            book = Ledger(folder / f"{next(numbers)}.ledger")
            book.open("data", ApproxDP(epsilon=3, delta=1e-6), UNIT)
            return book

        if together:

            def charge() -> None:
                forget()
                opened().charge("data", Cost.total([make(i) for i in range(100)]))

            return {"dpbayes": charge}
        book = opened()
        for i in range(100):
            book.charge("data", Cost.of(make(i)))

        def left() -> None:
            forget()
            book.account("data").left()

        return {"dpbayes": left}

    return prepare


def forget() -> None:
    """What this process knows already would not be known to a new one."""
    for name, module in list(sys.modules.items()):
        if name.startswith("dpbayes."):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def naive_bayes(step: str) -> Callable[[Path], Actions]:
    def prepare(folder: Path) -> Actions:
        del folder
        from sklearn.naive_bayes import CategoricalNB

        from dpbayes.sklearn import PrivateCategoricalNB

        rng, rows, columns, levels = np.random.default_rng(0), 1_000_000, 20, 10
        y = rng.integers(2, size=rows)
        X = (rng.integers(levels, size=(rows, columns)) + y[:, None] * rng.integers(2, size=(rows, columns))) % levels
        ours = PrivateCategoricalNB(
            categories=[range(levels)] * columns,
            classes=[0, 1],
            epsilon=1.0,
            delta=1e-6,
            tempered=False,
            unit="one row per person",
        )
        theirs = CategoricalNB(min_categories=levels)
        if step == "fit":
            return {"dpbayes": lambda: ours.fit(X, y), "scikit-learn": lambda: theirs.fit(X, y)}
        ours.fit(X, y)
        theirs.fit(X, y)
        return {"dpbayes": lambda: ours.predict(X), "scikit-learn": lambda: theirs.predict(X)}

    return prepare


def synthetic(folder: Path) -> Actions:
    del folder
    from benchmarks.synthetic import ROWS, network

    net = network()

    def loop() -> None:
        """For each attribute a uniform number, looked up in the cumulative laws of all rows, one after the other."""
        rng, drawn = np.random.default_rng(0), {}
        for name, parents in net.parents.items():
            sizes = [len(net.levels[parent]) for parent in parents]
            row = np.ravel_multi_index([drawn[parent] for parent in parents], sizes) if parents else 0
            table = net.tables[name]
            upto = (np.cumsum(table, axis=1) + np.arange(len(table))[:, None]).ravel()
            found = np.searchsorted(upto, rng.random(ROWS) + row) - table.shape[1] * row
            drawn[name] = np.clip(found, 0, table.shape[1] - 1)

    return {"dpbayes": lambda: net.sample(ROWS, np.random.default_rng(0)), "a numpy loop": loop}


def noise(folder: Path) -> Actions:
    del folder
    from dpbayes.mechanisms import noise as sampler
    from dpbayes.mechanisms.exact import Law
    from dpbayes.mechanisms.noise import words

    law, cells, source = Law.gaussian(20.0), 10**6, words(None)
    return {"dpbayes": lambda: sampler.draw(law, cells, None), "ChaCha20 alone": lambda: source(cells)}


def certificate(folder: Path) -> Actions:
    del folder
    from benchmarks.hellinger import published
    from dpbayes.hellinger.certificate import certify

    wanted = published(10_000, 2)
    return {"dpbayes": lambda: certify(wanted.prior, 10_000, sharpness=0.8, smoothing=wanted.smoothing, delta=1e-8)}
