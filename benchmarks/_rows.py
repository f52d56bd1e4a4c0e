"""The jobs whose speed the project set itself goals for. Each runs in a process of its own, see `benchmarks.goals`.

A row is a function that prepares, then yields named actions; the first is ours, a second one is what it is compared
with. Both are timed in the same process, in turn.
"""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpbayes import ApproxDP, Attribute, Cost, Curator, Dirichlet, Laplace, Ledger, Release, Schema, Tables, Unit
from dpbayes.jobs.synthetic import Synthetic
from dpbayes.models.network import Network
from dpbayes.schema import Marginal

UNIT = Unit(adjacency="replace-one")
TARGET = ApproxDP(epsilon=1, delta=1e-6)
Actions = dict[str, Callable[[], object]]


def processor() -> float:
    """Seconds of the processor: this process, and those that it waited for."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


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


def naive_bayes(step: str, rows: int = 1_000_000, *, tempered: bool | None = False) -> Callable[[Path], Actions]:
    def prepare(folder: Path) -> Actions:
        del folder
        from sklearn.naive_bayes import CategoricalNB

        from dpbayes.sklearn import PrivateCategoricalNB, SecondRelease

        warnings.simplefilter("ignore", SecondRelease)  # the same records are fitted again and again
        rng, columns, levels = np.random.default_rng(0), 20, 10
        y = rng.integers(2, size=rows)
        X = (rng.integers(levels, size=(rows, columns)) + y[:, None] * rng.integers(2, size=(rows, columns))) % levels
        ours = PrivateCategoricalNB(
            categories=[range(levels)] * columns,
            classes=[0, 1],
            epsilon=1.0,
            delta=1e-6,
            tempered=tempered,
            unit="one row per person",
        )
        theirs = CategoricalNB(min_categories=levels)
        if step == "fit":
            return {"dpbayes": lambda: ours.fit(X, y), "scikit-learn": lambda: theirs.fit(X, y)}
        ours.fit(X, y)
        theirs.fit(X, y)
        return {"dpbayes": lambda: ours.predict(X), "scikit-learn": lambda: theirs.predict(X)}

    return prepare


def network(nodes: int = 15, levels: int = 6) -> Network:
    """A random graph in which every node has up to two earlier parents."""
    rng, names = np.random.default_rng(0), [f"x{position}" for position in range(nodes)]
    parents = {
        name: tuple(sorted(rng.choice(names[:position], min(position, 2), replace=False)))
        for position, name in enumerate(names)
    }
    tables = {name: rng.dirichlet(np.ones(levels), levels ** len(parents[name])) for name in names}
    return Network(levels=dict.fromkeys(names, tuple("abcdef"[:levels])), parents=parents, tables=tables)


def synthetic(folder: Path, rows: int = 10**6) -> Actions:
    del folder
    net = network()

    def loop() -> None:
        """For each attribute a uniform number, looked up in the cumulative laws of all rows, one after the other."""
        rng, drawn = np.random.default_rng(0), {}
        for name, parents in net.parents.items():
            sizes = [len(net.levels[parent]) for parent in parents]
            row = np.ravel_multi_index([drawn[parent] for parent in parents], sizes) if parents else 0
            table = net.tables[name]
            upto = (np.cumsum(table, axis=1) + np.arange(len(table))[:, None]).ravel()
            found = np.searchsorted(upto, rng.random(rows) + row) - table.shape[1] * row
            drawn[name] = np.clip(found, 0, table.shape[1] - 1)

    return {"dpbayes": lambda: net.sample(rows, np.random.default_rng(0)), "a numpy loop": loop}


def saved(folder: Path, attributes: int = 15, records: int = 30_000) -> Path:
    """A release for synthetic records, with its fitted model kept beside it."""
    import pyarrow as pa

    sizes, rng = (2, 9, 16, 7, 15, 7, 6, 5, 2, 10, 10, 12, 40, 8, 5)[:attributes], np.random.default_rng(0)
    hidden = rng.integers(0, 6, records)
    codes = {f"a{at}": (hidden * (at % 3) + rng.integers(0, size, records) ** 2 // size) % size
             for at, size in enumerate(sizes)}  # fmt: skip
    declared = tuple(
        Attribute(name, tuple(map(str, range(size))), unknown="drop", missing="drop")
        for name, size in zip(codes, sizes, strict=True)
    )
    schema = Schema(id="benchmark", unit=UNIT, records=records, attributes=declared)
    where = folder / "published" / "1"
    Curator(pa.table(codes), schema, ledger="none").release(Synthetic("a0"), TARGET, out=where).model()
    return where


def kept(folder: Path) -> Actions:
    """A thousand records from a saved release, its file read each time; beside it the bare JSON of that file."""
    where = saved(folder)
    return {
        "dpbayes": lambda: Release.load(where).model().synthesise(1000),
        "its JSON": lambda: json.loads((where / "release.json").read_text(encoding="utf-8")),
    }


def many(folder: Path) -> Actions:
    """A million records of 15 attributes from the model of a saved release."""
    model = Release.load(saved(folder)).model()
    return {"dpbayes": lambda: model.synthesise(10**6)}


BY_HAND = """
import csv, itertools, sys
import duckdb
import numpy as np
path, out, size, *tables = sys.argv[1:]
rng, connection = np.random.default_rng(), duckdb.connect()
levels = [f"v{at:02d}" for at in range(int(size))]
for place, asked in enumerate(tables):
    names = asked.split(",")
    found = connection.execute(f"SELECT {asked}, count(*) AS n FROM '{path}' GROUP BY {asked}").fetchnumpy()
    counts = np.zeros([len(levels)] * len(names))
    counts[tuple(np.searchsorted(levels, found[name].astype(str)) for name in names)] = found["n"]
    noisy = counts + np.rint(rng.laplace(0, 2.0 * len(tables), counts.shape))
    with open(f"{out}-{place}.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "count"])
        writer.writerows((*cell, count) for cell, count in zip(itertools.product(levels, repeat=2), noisy.flat))
"""


def by_hand(rows: int, tables: int, *, columns: int, size: int, kind: str) -> Callable[[Path], Actions]:
    """The whole command under a ledger, with its report, beside what anyone would type: count, add noise, write CSV."""

    def prepare(folder: Path) -> Actions:
        import duckdb

        names, path = [f"a{at}" for at in range(columns)], folder / f"rows.{kind}"
        drawn = ", ".join(
            f"'v' || lpad((hash(i * {2 * at + 3} + {at}) % {size})::VARCHAR, 2, '0') AS a{at}" for at in range(columns)
        )
        connection = duckdb.connect().execute("SET enable_progress_bar = false")
        connection.execute(f"COPY (SELECT {drawn} FROM range({rows}) t(i)) TO '{path}' (FORMAT {kind})")
        levels = tuple(f"v{at:02d}" for at in range(size))
        Path(folder / "rows.toml").write_text(
            Schema(id="rows", unit=UNIT, attributes=tuple(Attribute(name, levels) for name in names)).to_toml()
        )
        command("ledger", "init", str(path), "--epsilon", "100", "--delta", "1e-4")
        numbers = itertools.count()
        asked = [",".join(pair) for pair in itertools.islice(itertools.combinations(names, 2), tables)]
        hand = [sys.executable, "-c", BY_HAND, str(path), str(folder / "hand"), str(size), *asked]

        def release() -> None:
            command("release", str(path), *asked, "--epsilon", "1", "--delta", "1e-6",
                    "--out", str(folder / str(next(numbers))))  # fmt: skip

        return {"dpbayes": release, "DuckDB and NumPy by hand": lambda: subprocess.run(hand, check=True)}

    return prepare


def started(over: str, *arguments: str) -> Callable[[Path], Actions]:
    """A command beside a Python that only imports; the survey of the example, with a ledger and a release, is there."""

    def prepare(folder: Path) -> Actions:
        where = str(folder / "private")
        command("example", where)
        survey = f"{where}/survey.csv"
        command("ledger", "init", survey, "--epsilon", "2", "--delta", "1e-6")
        command("release", survey, "income|sex", "--epsilon", "1", "--out", str(folder / "out"))
        told = {"{survey}": survey, "{out}": str(folder / "out")}
        asked = [told.get(each, each) for each in arguments]
        bare = [sys.executable, "-c", over]
        return {"dpbayes": lambda: command(*asked), over: lambda: subprocess.run(bare, check=True)}

    return prepare


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
