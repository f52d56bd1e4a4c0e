"""No value of a private table appears in what anything says about it: errors, warnings, logs, output, files.

Every entry point is given every kind of value that a column can hold. It may refuse, in words of our own, or follow the
schema's rule for values that were not declared; it never quotes one.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.canaries import DAY, KINDS, NUMBER, WORD, Hostile, chain, column, found_in, left_in, listening
from tests.commands import dpbayes

from dpbayes import ApproxDP, Categories, Curator, Edges, PureDP, Tables, Unit
from dpbayes.base.errors import DpbayesError
from dpbayes.hellinger.sampler import ScoreCell
from dpbayes.jobs import Quantiles, Wide, WideDistribution
from dpbayes.models.naive_bayes import NaiveBayes, NaiveBayesModel
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.counts import Counts, SparseCounts
from dpbayes.schema.labels import codes
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.sklearn import PrivateCategoricalNB, forget
from dpbayes.tables.engine import CodedTable
from dpbayes.tables.sources import open_table

UNIT = Unit(adjacency="add-remove")
V = Attribute(name="v", categories=("a", "b"), missing="category")
CUT = Attribute(name="v", edges=(0, 1, 2), missing="category")
W = Attribute(name="w", categories=("x", "y"), missing="other")
RARE, SELDOM = Categories(column="v"), ApproxDP(epsilon=1.0, delta=1e-12)
EDGES = Edges(column="v", quantiles=Quantiles(bins=2, lower=0, upper=2, candidates=5), numeric=True)


def schema(*attributes: Attribute, **more: object) -> Schema:
    return Schema(id="canaries", unit=UNIT, attributes=attributes, **more)  # type: ignore[arg-type]


def frame(values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"v": pd.Series(values, dtype=object), "w": ["x", "y"] * (len(values) // 2)})


def polars(values: np.ndarray, **options: object) -> object:
    """As a polars frame, unless polars itself refuses the values: then that is the caller's affair."""
    try:
        if any(isinstance(value, Hostile) for value in values):
            raise TypeError
        return pl.DataFrame({"v": pl.Series(list(values), **options), "w": ["x"] * len(values)})  # type: ignore[arg-type]
    except BaseException:
        return {"v": ["a"], "w": ["x"]}


def count(source: object) -> None:
    for v in (V, CUT):
        open_table(source).count(schema(v, W), [Marginal("v"), Marginal("w", "v")])


def fitted() -> NaiveBayesModel:
    """A model of harmless records."""
    harmless = frame(np.array(["a", "b"] * 30, dtype=object))
    made: NaiveBayesModel = Curator(harmless, schema(V, W)).release(NaiveBayes(target="w"), PureDP(epsilon=1.0)).model()
    return made


MODEL = fitted()
ESTIMATOR = {"epsilon": 1.0, "delta": None, "tempered": False, "unit": UNIT}


def estimator(**options: object) -> PrivateCategoricalNB:
    return PrivateCategoricalNB(**{**ESTIMATOR, "classes": ["x", "y"], **options})


def trained(categories: object) -> PrivateCategoricalNB:
    X = np.array(["a", "b"] * 30, dtype=object)[:, None]
    return estimator(categories=categories).fit(X, np.array(["x", "y"] * 30))


TRAINED = trained([["a", "b"]])
Y = np.array(["x", "y"] * 30)
READERS: dict[str, Callable[[np.ndarray], object]] = {
    "level": lambda values: [attribute.level(value) for attribute in (V, CUT) for value in values],
    "codes": lambda values: [codes(attribute, values) for attribute in (V, CUT)],
    "codes of a list": lambda values: [codes(attribute, list(values)) for attribute in (V, CUT)],
    "pandas": lambda values: count(frame(values)),
    "a dictionary": lambda values: count({"v": list(values), "w": ["x"] * len(values)}),
    "polars": lambda values: count(polars(values, dtype=pl.Object)),
    "polars, cast": lambda values: count(polars(values, strict=False)),
    "fingerprint": lambda values: open_table(frame(values)).fingerprint(["v"]),
    "a person column": lambda values: open_table(frame(values)).count(schema(W, person="v"), [Marginal("w")]),
    "release": lambda values: Curator(frame(values), schema(V, W)).release(
        Tables("v", mechanism="laplace"), PureDP(epsilon=1.0)
    ),
    "fit": lambda values: Curator(frame(values), schema(V, W)).release(NaiveBayes(target="v"), PureDP(epsilon=1.0)),
    "wide": lambda values: Curator(frame(values), schema(V, W)).release(
        Wide(marginal=Marginal(("v", "w")), state=str(Path(tempfile.mkdtemp()) / "x.wide")),
        ApproxDP(epsilon=1.0, delta=1e-6),
    ),
    "discover categories": lambda values: Curator(frame(values), schema(W)).release(RARE, SELDOM),
    "discover edges": lambda values: Curator(frame(values), schema(W)).release(EDGES, PureDP(epsilon=1.0)),
    "predict": lambda values: MODEL.predict_log_proba({"v": values}),
    "estimator": lambda values: estimator(categories=[["a", "b"]]).fit(values[:, None], Y),
    "estimator, of a frame": lambda values: estimator(edges={"v": (0, 1, 2)}).fit(frame(values)[["v"]], Y),
    "estimator, of lists": lambda values: estimator(categories=[["a", "b"]]).fit([[value] for value in values], Y),
    "estimator, one column": lambda values: estimator(categories=[["a", "b"]]).fit(values, Y),
    "estimator, of a schema": lambda values: PrivateCategoricalNB(
        schema=schema(V, W), target="v", **{**ESTIMATOR, "unit": None}
    ).fit(frame(values)[["w"]], values),
    "estimator, undeclared": lambda values: estimator().fit(frame(values)[["v"]], Y),
    "estimator, classes": lambda values: estimator(categories=[["x", "y"]], classes=["a", "b"]).fit(Y[:, None], values),
    "estimator, classes undeclared": lambda values: estimator(categories=[["x", "y"]], classes=None).fit(
        Y[:, None], values
    ),
    "estimator, classes in two columns": lambda values: estimator(categories=[["x", "y"]]).fit(
        Y[:, None], np.stack([values, values], axis=1)
    ),
    "estimator, too few classes": lambda values: estimator(categories=[["x", "y"]]).fit(Y[:, None], values[:7]),
    "estimator, predictions": lambda values: (TRAINED.predict(values[:, None]), TRAINED.predict_proba(values[:, None])),
    "estimator, predictions of one column": TRAINED.predict,
    "estimator, predictions of two columns": lambda values: TRAINED.predict(np.stack([values, values], axis=1)),
}  # fmt: skip


SLOW = (  # they read as the others do
    "release", "wide", "fit", "discover categories", "discover edges", "a person column", "fingerprint", "polars, cast",
)  # fmt: skip
FEW = ("texts", "bytes", "dates", "hostile objects", "all sorts")


@pytest.mark.parametrize(
    ("reader", "kind"), [(reader, kind) for reader in READERS for kind in (FEW if reader in SLOW else KINDS)]
)
def test_no_value_in_memory_is_quoted(reader: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = column(KINDS[kind])
    with listening() as heard:
        READERS[reader](values)
    heard.texts += left_in(tmp_path)
    assert found_in(heard.texts) == []
    assert heard.problem is None or isinstance(heard.problem, DpbayesError), repr(type(heard.problem))


def test_the_search_finds_what_it_looks_for(tmp_path: Path) -> None:
    def quoting() -> None:
        try:
            str(Hostile())
        except ValueError as problem:
            problem.add_note("…")
            raise DpbayesError("private") from problem

    with listening() as heard:
        quoting()
    assert found_in(heard.texts)
    assert found_in(list(chain(ValueError(f"{DAY!r}"))))
    (tmp_path / "x").write_text(NUMBER)
    assert found_in(list(left_in(tmp_path)))


# -- files and databases ------------------------------------------------------------------------------------------

TABLES: dict[str, pa.Table] = {
    "dates": pa.table({"v": [DAY, None], "w": ["x", "y"]}),
    "times": pa.table({"v": pa.array([2**62, None], pa.timestamp("us")), "w": ["x", "y"]}),
    "zoned times": pa.table({"v": pa.array([2**62, None], pa.timestamp("ns", "UTC")), "w": ["x", "y"]}),
    "binary": pa.table({"v": [WORD.encode(), b"\xff"], "w": ["x", "y"]}),
    "nested": pa.table({"v": [[{"k": WORD}], []], "w": ["x", "y"]}),
    "unsigned": pa.table({"v": pa.array([2**64 - 1, None], pa.uint64()), "w": ["x", "y"]}),
    "numbers": pa.table({"v": [float(NUMBER), float("nan")], "w": ["x", "y"]}),
    "texts": pa.table({"v": [WORD, NUMBER], "w": ["x", "y"]}),
    "dictionaries": pa.table({"v": pa.array([WORD, NUMBER]).dictionary_encode(), "w": ["x", "y"]}),
}


def broken_files(folder: Path) -> None:
    rows = f"{WORD},x\n{NUMBER},y\n"
    texts = {
        "ragged": f"v,w\n{rows}{WORD}\n",
        "too wide": f"v,w\n{rows}{WORD},x,{NUMBER}\n",
        "open quote": f'v,w\n{rows}"{WORD},x\n',
        "quote inside": f'v,w\n{WORD}"{WORD}",x\n"{WORD}"{NUMBER},y\n',
        "no header": rows,
        "only a header": f"{WORD},{NUMBER}\n",
        "twice": f"{WORD},{WORD}\n{rows}",
        "NUL": f"v,w\n{WORD}\x00,x\n",
        "other delimiter": f"v;w\n{WORD};x\n",
        "a long field": f"v,w\n{WORD * 200_000},x\n",
        "carriage returns": f"v,w\r{WORD},x\r{NUMBER},y\r",
        "in order": f"v,w\n{rows}",
    }
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    (folder / "undecodable.csv").write_bytes(b"v,w\n" + WORD.encode() + b"\xff\xfe,x\n")
    (folder / "undecodable header.csv").write_bytes(b"v\xff" + WORD.encode() + b",w\na,x\n")
    (folder / "utf-16.csv").write_bytes(f"v,w\n{rows}".encode("utf-16"))
    for name, table in TABLES.items():
        pa.parquet.write_table(table, folder / f"{name}.parquet", compression="none")
    whole = (folder / "texts.parquet").read_bytes()
    (folder / "truncated.parquet").write_bytes(whole[:-9])
    (folder / "damaged.parquet").write_bytes(whole[:30] + bytes(20) + whole[50:])
    with duckdb.connect(folder / "failing.duckdb") as connection:
        connection.execute(f"CREATE TABLE t AS SELECT '{WORD}' AS x, 'x' AS w UNION ALL SELECT '{NUMBER}x', 'y'")
        connection.execute("CREATE VIEW number AS SELECT CAST(x AS INTEGER) AS v, w FROM t")
        connection.execute("CREATE VIEW day AS SELECT CAST(x AS DATE) AS v, w FROM t")
        connection.execute("CREATE VIEW named AS SELECT error(x) AS v, w FROM t")


SCHEMA = """
id = "canaries"
adjacency = "replace-one"
records = 2
[[attribute]]
name = "v"
{declared}
[[attribute]]
name = "w"
categories = ["x", "y"]
"""
PAID = ["--epsilon", 1, "--ledger", "none"]
ASKED = ["--schema", "s.toml", *PAID]
COMMANDS: dict[str, list[object]] = {
    "release": ["release", "FILE", *ASKED, "v", "--set", "mechanism=laplace"],
    "fit": ["release", "FILE", *ASKED, "w", "--as", "naive-bayes"],
    "fit, tempered": ["release", "FILE", *ASKED, "w", "--as", "naive-bayes", "--set", "tempered=true"],
    "posterior": ["release", "--as", "posterior", "FILE", *ASKED, "v", "--set", "mechanism=laplace"],
    "discover": ["release", "--as", "categories", "FILE", "v", "--schema", "w.toml", *PAID, "--delta", 1e-12],
    "edges": ["release", "--as", "edges", "FILE", "v", "--schema", "w.toml", *PAID, "--set", "bins=2",
              "--set", "bounds=0:1"],
    "schema check": ["schema", "check", "FILE", "--schema", "s.toml"],
    "predict": ["predict", "model", "FILE"],
    "show": ["model", "model", "--test", "FILE"],
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    broken_files(folder)
    return folder


SLOW_COMMANDS = ("edges", "discover", "posterior", "fit")  # they read as the others do
SOME_FILES = ("ragged.csv", "undecodable.csv", "damaged.parquet", "binary.parquet", "times.parquet", "failing.duckdb")
DECLARED = {"categories": 'categories = ["a"]', "edges": "edges = [0, 1]"}
CASES = [
    (command, kind) for command in COMMANDS for kind in DECLARED if "s.toml" in COMMANDS[command] or kind == "edges"
]


@pytest.mark.parametrize(("command", "kind"), CASES)
def test_no_value_in_a_file_is_quoted(
    command: str, kind: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SCHEMA.format(declared=DECLARED[kind]))
    Path("w.toml").write_text(SCHEMA.format(declared="").replace('[[attribute]]\nname = "v"\n\n', ""))
    Path("harmless.csv").write_text("v,w\na,x\nb,y\n")
    done = dpbayes("release", "harmless.csv", *ASKED, "w", "--as", "naive-bayes", "--out", "model")
    assert done.code == 0, done.err
    before = set(tmp_path.iterdir())
    for path in sorted(files.iterdir()):
        if command in SLOW_COMMANDS and path.name not in SOME_FILES:
            continue
        views = [f"?table={view}" for view in ("number", "day", "named")] if path.suffix == ".duckdb" else [""]
        for view in views:
            asked = [f"{path}{view}" if argument == "FILE" else argument for argument in COMMANDS[command]]
            with listening() as heard:
                done = dpbayes(*asked)
            heard.texts += [done.out, done.err, *left_in(tmp_path)]
            assert found_in(heard.texts) == [], path.name
            assert done.code in (0, 1), (path.name, done.err)
    new = {path.name for path in set(tmp_path.iterdir()) - before}
    assert new <= {"published"}


@pytest.mark.parametrize("kind", [pl.Int64, pl.Date, pl.Enum(["a"])])
def test_no_value_of_a_lazy_frame_that_fails_is_quoted(kind: object) -> None:
    lazy = pl.LazyFrame({"v": [WORD], "w": ["x"]}).with_columns(pl.col("v").cast(kind))  # type: ignore[arg-type]
    with listening() as heard:
        count(lazy)
    assert found_in(heard.texts) == []
    assert isinstance(heard.problem, DpbayesError)


@pytest.mark.parametrize("view", ["number", "day", "named"])
def test_no_value_of_a_callers_connection_is_quoted(view: str, files: Path) -> None:
    with duckdb.connect(files / "failing.duckdb", read_only=True) as connection, listening() as heard:
        open_table((connection, view)).count(schema(W, person="v" if view != "day" else None), [Marginal("w")])
    assert found_in(heard.texts) == []
    with duckdb.connect(files / "failing.duckdb", read_only=True) as connection, listening() as heard:
        open_table((connection, view)).values("v", UNIT)
    assert found_in(heard.texts) == []
    assert isinstance(heard.problem, DpbayesError)


@pytest.mark.parametrize(
    "expression",
    ["CAST(x AS integer)", "CAST(x AS date)", "CAST(x AS numeric)", "to_date(x, 'YYYY')", "1 / length('')"],
)
def test_no_value_of_a_server_is_quoted(expression: str, server) -> None:  # type: ignore[no-untyped-def]
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS canaries CASCADE")
        connection.execute("CREATE TABLE canaries AS SELECT CAST(%s AS text) AS x, 'x' AS w", [WORD])
        connection.execute(f"CREATE VIEW failing AS SELECT {expression} AS v, w FROM canaries")  # type: ignore[arg-type]
        for ask in (
            lambda engine: engine.count(schema(V, W), [Marginal("v")]),
            lambda engine: engine.values("v", UNIT),
            lambda engine: engine.fingerprint(["v"]),
        ):
            for source in (f"{server.url()}?table=failing", (connection, "failing")):
                with listening() as heard:
                    ask(open_table(source))
                assert found_in(heard.texts) == []
                assert isinstance(heard.problem, DpbayesError)


# -- what is kept -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"tempered": True}, {"schema": schema(V, W), "target": "w"}])
def test_neither_a_fitted_estimator_nor_its_pickle_holds_rows_or_counts(options: dict[str, object]) -> None:
    counts = {("a", "x"): 1237, ("b", "x"): 3413, ("a", "y"): 2719, ("b", "y"): 1129}
    rows = [(WORD, "x")] * 7 + [row for row, times in counts.items() for _ in range(times)]
    X = pd.DataFrame({"v": [v for v, _ in rows]})
    y = np.array([w for _, w in rows])
    plain = (
        {"categories": {"v": ["a", "b"]}, "classes": ["x", "y"]}
        if "schema" not in options
        else {"classes": None, "unit": None}
    )
    estimator = {**ESTIMATOR, "epsilon": 1e-7, **plain, **options}
    made = PrivateCategoricalNB(**estimator).fit(X, y)
    kept = pickle.dumps(made)
    assert WORD.encode() not in kept
    forget()
    larger = pickle.dumps(PrivateCategoricalNB(**estimator).fit(pd.concat([X] * 5), np.tile(y, 5)))
    assert len(larger) < len(kept) + 4000  # it does not grow with the rows
    exact = {*counts.values(), len(rows), *(sum(counts[v, w] for v in "ab") for w in "xy")}
    assert not exact & {int(value) for value in _numbers(pickle.loads(kept)) if float(value).is_integer()}
    with listening() as heard:
        print(made, vars(made), made.model_, made.release_)
    assert found_in(heard.texts) == []


def test_no_object_that_holds_counts_prints_them() -> None:
    count = int(NUMBER)
    counts = Counts(marginal=Marginal("v"), axes=(V,), array=np.array([count, 0, 0, count]))
    sparse = SparseCounts((9, 9), np.array([count % 81]), np.array([count]))
    wide = WideDistribution(
        plan=Wide(marginal=Marginal(("v", "w")), state="x.wide").plan(schema(V, W), ApproxDP(epsilon=1, delta=1e-6)),
        counts=sparse,
        key=WORD.encode().ljust(32),
    )
    coded = CodedTable({"v": np.full(9, count)})
    cell = ScoreCell(prior=1.0, count=count, total=9, reach=1.0)
    engine = open_table({"v": [WORD] * 9})
    holders = [counts, sparse, wide, wide.lazy(), coded, cell, engine, engine.columns(), MODEL, TRAINED]
    holders.append(Curator(engine, schema(V)))
    for holder in holders:
        for text in (repr(holder), str(holder), f"{holder}", repr([holder]), repr({"x": holder})):
            assert found_in([text]) == [], type(holder).__name__


def _numbers(value: object, seen: set[int] | None = None) -> list[float]:
    """All numbers that can be reached from an object."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return []
    seen.add(id(value))
    if isinstance(value, (bool, str, bytes)) or value is None:
        return []
    if isinstance(value, (int, float)):
        return [value]
    if isinstance(value, np.ndarray):
        return value[np.isfinite(value)].ravel().tolist() if value.dtype.kind in "iuf" else []
    if isinstance(value, dict):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = list(value)
    else:
        names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        parts = [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in names)]
    return [number for part in parts for number in _numbers(part, seen)]
