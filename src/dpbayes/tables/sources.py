"""What a user may point at: paths, addresses and tables in memory, which engine serves each, and where rows may spill.

What an engine cannot hold in memory goes to a private folder. Each process has one, of mode 0700, below the system's
folder for temporary files (``TMPDIR`` moves it). It is removed when the process ends. A process that is killed cannot
do so: its folder is removed by the next process that needs one. A lock on the folder tells whether its process still
lives. The system releases it with the process, so no process is ever mistaken for a later one of the same number.
"""

from __future__ import annotations

import atexit
import csv
import fcntl
import glob
import gzip
import os
import re
import shutil
import tempfile
import threading
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl

from dpbayes.base.errors import MissingExtra, TableError
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.values import text_or_none
from dpbayes.tables.engine import Engine

if TYPE_CHECKING:
    import pyarrow

# One line for each engine that joins: its word, and the module whose ``open_source`` makes it.
ENGINES = {
    "duckdb": "dpbayes.tables.duckdb",
    "postgresql": "dpbayes.tables.postgresql",
    "spark": "dpbayes.tables.spark",
}
_ENGINE_OF_SCHEME = {"postgresql": "postgresql", "postgres": "postgresql", "spark": "spark"}
_ENGINE_OF_LIBRARY = {"psycopg": "postgresql", "sqlalchemy": "postgresql", "pyspark": "spark"}
_EXTRA_OF_LIBRARY = {"psycopg": "postgres", "pyspark": "spark"}

PATIENCE = 10
"""Seconds to wait for a server that does not answer."""

_DELIMITERS = {"csv": ",", "tsv": "\t"}
FORMATS = {
    "csv": "csv",
    "tsv": "csv",
    "parquet": "parquet",
    "pq": "parquet",
    "duckdb": "database",
    "db": "database",
}
_OPTIONS = {"csv": {"delimiter"}, "parquet": set(), "database": {"table"}}
REMOTE = re.compile(r"[a-z][a-z0-9+.-]+://")


def open_table(source: object, *, engine: str | None = None) -> Engine:
    """The engine for a source: a path or address as text, a table in memory, or an open connection.

    ``data.csv``, ``data.csv?delimiter=;``, ``parts/*.parquet``, ``file.duckdb?table=people``,
    ``postgresql://user@host/db?table=people``, ``spark://host:7077?path=/data/people.parquet``; Arrow, pandas, polars
    and Spark tables; a pair of an open DuckDB, psycopg or SQLAlchemy connection, or of a Spark session, and a
    table's name; or an engine itself.
    """
    if engine is None and hasattr(source, "count") and hasattr(source, "fingerprint"):
        return cast(Engine, source)
    word = engine or _engine_of(source)
    if word not in ENGINES:
        raise TableError(f"Table: there is no engine {word!r}. Choose one of {', '.join(ENGINES)}.")
    try:
        opened: Engine = import_module(ENGINES[word]).open_source(source)
    except ModuleNotFoundError as problem:
        library = (problem.name or "").split(".")[0]
        if library not in _EXTRA_OF_LIBRARY:
            raise
        extra = _EXTRA_OF_LIBRARY[library]
        raise MissingExtra(f"Table: the engine {word} needs {library}. Install dpbayes[{extra}].") from None
    return opened


def _engine_of(source: object) -> str:
    if isinstance(source, PurePath):
        return "duckdb"
    if isinstance(source, str):
        scheme = source.split("://", 1)[0] if REMOTE.match(source) else ""
        return _ENGINE_OF_SCHEME.get(scheme, "duckdb")
    opened = source[0] if isinstance(source, tuple) and source else source
    libraries = (kind.__module__.split(".")[0] for kind in type(opened).__mro__)
    return next((_ENGINE_OF_LIBRARY[library] for library in libraries if library in _ENGINE_OF_LIBRARY), "duckdb")


def public_address(source: str) -> str:
    """An address without the password in it, fit to be shown.

    >>> public_address("postgresql://owner:secret@host/db?table=people")
    'postgresql://owner@host/db?table=people'
    """
    shown = re.sub(r"^([a-z][a-z0-9+.-]*://[^:@/?]*):.*@", r"\1@", source, flags=re.DOTALL)
    return re.sub(r"([?&](password|sslpassword)=)[^&]*", r"\1…", shown)


def dataset_name(source: str) -> str:
    """A name for the data at an address: that of its table, or of its file."""
    path, options = address_parts(source)
    database = "table" in options or path.partition("://")[0] in _ENGINE_OF_SCHEME
    return options.get("table") or Path(options.get("path", "") if database else path.removesuffix(".gz")).stem


def address_parts(source: str) -> tuple[str, dict[str, str]]:
    """A path or address, and its options: a question mark that no option follows belongs to a pattern."""
    form = re.fullmatch(r"(?P<path>.+?)(\?(?P<options>[\w.]+=[^?]*))?", source, re.DOTALL)
    if form is None:
        return "", {}
    return form["path"], dict(parse_qsl(form["options"] or "", keep_blank_values=True))


def one_table(table: str, known: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The schema and the name of the table meant, among those of a database."""
    matching = {(schema, name) for schema, name in known if table in (name, f"{schema}.{name}")}
    if not matching:
        raise TableError(f"Table: the database has no table {table!r}. Name one of its tables, as in …?table=people.")
    if len(matching) > 1:
        raise TableError(f"Table: more than one schema has a table {table!r}. Write schema.table.")
    return matching.pop()


@dataclass(frozen=True, slots=True)
class FileSource:
    """One or more files of one format."""

    path: str
    format: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def remote(self) -> bool:
        """Whether the path is an address that only the engine can reach."""
        return REMOTE.match(self.path) is not None

    @property
    def files(self) -> tuple[str, ...]:
        """The local files that the path stands for."""
        if Path(self.path).exists():
            return (self.path,)
        return tuple(sorted(glob.glob(self.path, recursive=True)))  # noqa: PTH207 - also absolute patterns


def file_source(text: str) -> FileSource:
    """Read a path with its options; whether it exists is checked for local files."""
    path, options = address_parts(text)
    suffix = path.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix not in FORMATS:
        raise TableError(f"Table: cannot tell what {path!r} is. Its name must end in .csv, .tsv, .parquet or .duckdb.")
    found = FileSource(path, FORMATS[suffix], options)
    for option in sorted(options.keys() - _OPTIONS[found.format]):
        known = ", ".join(_OPTIONS[found.format]) or "none"
        raise TableError(f"Table: {path!r} does not take the option {option!r}; it takes {known}.")
    if found.format == "csv":
        options.setdefault("delimiter", _DELIMITERS[suffix])
    if not found.remote:
        _check_files(found)
    return found


def csv_header(source: FileSource) -> tuple[str, ...]:
    """The column names of CSV files, which must all have the same ones. Reads the first line of each."""
    headers = {file: _first_record(file, source.options["delimiter"]) for file in source.files}
    first = next(iter(headers.values()))
    for file, header in headers.items():
        if header != first:
            raise TableError(f"Table: {file!r} does not have the columns of the files before it. Leave it out.")
    if len(first) == 1 and (other := re.search(r"[;\t|,]", first[0])):
        raise TableError(
            f"Table: {source.path!r} seems to have one column with {other[0]!r} in its name. "
            f"If that is the delimiter, write {source.path + '?delimiter=' + other[0]!r}."
        )
    return first


def parquet_names(source: FileSource) -> tuple[str, ...]:
    """The column names of local Parquet files as written; all files must have the same ones, of the same types."""
    first: dict[str, object] = {}
    names: tuple[str, ...] = ()
    for file in source.files:
        found = _parquet_types(file)
        names = names or tuple(name for name, _ in found)
        first = first or dict(found)
        if len(found) != len(names) or any(first.get(name) != kind for name, kind in dict(found).items()):
            raise TableError(
                f"Table: {file!r} does not have the columns and types of the files before it. Leave it out, or convert."
            )
    return names


def _parquet_types(file: str) -> list[tuple[str, object]]:
    """Names and types in the metadata; how texts are stored makes no difference."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        schema = parquet.read_schema(file)
        names = schema.names
    except (OSError, pa.ArrowException, UnicodeError):
        raise TableError(f"Table: it cannot be read. Check that {file!r} is a complete Parquet file.") from None
    stored = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in schema]
    types = [
        pa.string() if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) else kind for kind in stored
    ]
    return list(zip(names, types, strict=True))


def arrow_table(
    table: object, columns: Mapping[str, Attribute | None] | None = None, *, rows: bool = True
) -> pyarrow.Table:
    """A table in memory as Arrow, with these columns only; without rows it tells names and types.

    A typed column keeps its type. A list and a column of Python objects have none: each value becomes text by itself,
    by the rule of ``schema.values``; the attribute that it is read for tells which text denotes a number.
    """
    import pyarrow as pa

    try:
        named = _columns(table, columns, rows)
        chosen = named if columns is None else [(name, dict(named)[name]) for name in columns]
        arrays = [_column(each, (columns or {}).get(name), rows) for name, each in chosen]
        return pa.table(arrays, names=[name for name, _ in chosen])
    except Exception:  # whatever objects, lazy frames and other libraries say when they are converted may quote a value
        raise TableError(
            f"Table: a {type(table).__name__} is not a table that can be read. Expected a path, or an Arrow, "
            "pandas or polars table."
        ) from None


def _columns(table: Any, wanted: Iterable[str] | None, rows: bool) -> list[tuple[str, Any]]:
    """The columns of a table and their names, still as they are."""
    import pyarrow as pa

    library = type(table).__module__.split(".")[0]
    if library == "polars" and hasattr(table, "collect_schema"):
        chosen = table if wanted is None else table.select(list(wanted))
        chosen = chosen if rows else chosen.head(0)
        frame = chosen.collect() if hasattr(chosen, "collect") else chosen
        return [(each.name, each) for each in frame.get_columns()]
    if library == "pandas" and hasattr(table, "iloc"):
        return [(str(name), table.iloc[:, place]) for place, name in enumerate(table.columns)]
    if isinstance(table, Mapping):
        return [(str(name), each) for name, each in table.items()]
    arrow = table if isinstance(table, pa.Table) else pa.table(table)
    return list(zip(arrow.column_names, arrow.columns, strict=True))


def _column(values: Any, attribute: Attribute | None, rows: bool) -> pyarrow.Array:
    import pyarrow as pa

    values = values if rows else values.iloc[:0] if hasattr(values, "iloc") else values[:0]
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return _countable(values)
    kind = str(getattr(values, "dtype", "object"))
    if kind == "category":  # the categories may be objects too
        found = _column(values.cat.categories.to_series(), attribute, True)
        places = values.cat.codes.to_numpy()
        return found.take(pa.array(places, mask=places < 0))
    if kind.lower() == "object" or kind.startswith(("|S", "S")):
        return _texts(values, attribute)
    return _countable(values.to_arrow() if hasattr(values, "to_arrow") else pa.array(values, from_pandas=True))


def _texts(values: Iterable[object], attribute: Attribute | None) -> pyarrow.Array:
    """Each value as text by itself; Arrow does so with texts and bytes, and faster."""
    import pyarrow as pa

    with suppress(Exception):  # it holds something else than texts
        return pa.array(values, pa.string(), from_pandas=True)
    text = text_or_none if attribute is None else attribute.written
    return pa.array([text(value) for value in values], pa.string())


_LIMITS = {"s": 8 * 10**12, "ms": 8 * 10**15, "us": 8 * 10**18}
"""Moments some 250,000 years away, within what engines can hold."""


def _countable(array: Any) -> pyarrow.Array:
    """A typed column that no value makes uncountable: far moments become less far, and stay unknown."""
    import pyarrow as pa
    from pyarrow import compute

    kind = array.type
    if pa.types.is_null(kind):
        return array.cast(pa.string())
    if not pa.types.is_timestamp(kind) or kind.unit not in _LIMITS:
        return array
    limit = pa.scalar(_LIMITS[kind.unit])
    near = compute.min_element_wise(array.cast(pa.int64()), limit, skip_nulls=False)
    near = compute.max_element_wise(near, pa.scalar(-limit.as_py()), skip_nulls=False)
    return near.cast(kind).cast(pa.timestamp("us", kind.tz))


def _check_files(source: FileSource) -> None:
    if not source.files:
        raise TableError(f"Table: there is no file {source.path!r}. Check the path, or try `dpbayes example .` first.")
    for file in source.files:
        if re.search(r"[*?[]", file):
            raise TableError(f"Table: {file!r} has one of * ? [ in its name, which would match others. Rename it.")
        if not Path(file).is_file():
            raise TableError(f"Table: {file!r} is not a file. Name the files in it, as in {file + '/*.parquet'!r}.")


def _first_record(file: str, delimiter: str) -> tuple[str, ...]:
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise TableError(f"Table: expected a delimiter of one character, got {delimiter!r}.")
    try:
        opener = gzip.open if file.endswith(".gz") else open
        # What follows the header is not looked at, even where it comes in the same block.
        with opener(file, "rt", encoding="utf-8-sig", newline="", errors="surrogateescape") as lines:
            header = next(csv.reader(lines, delimiter=delimiter, strict=True), [])
        "".join(header).encode()
    except (OSError, EOFError, zlib.error):
        raise TableError(f"Table: {file!r} cannot be read. Check its permissions and that it is complete.") from None
    except (UnicodeError, csv.Error):
        raise TableError(f"Table: line 1 of {file!r} is not CSV in UTF-8. Save the file as UTF-8.") from None
    if not header:
        raise TableError(f"Table: {file!r} has no header line. The first line must name the columns.")
    return tuple(header)


PREFIX = "dpbayes-rows-"


@dataclass(frozen=True, slots=True)
class _Held:
    path: Path
    process: int
    room: int


_held: list[_Held] = []  # the one of this process; after a fork, the parent's until the child makes its own
_guard = threading.Lock()


def private_folder() -> Path:
    """The private folder of this process, made when it is first asked for; folders of dead processes are removed."""
    return _mine().path


def room() -> int:
    """How many bytes an engine may write there: half of what was free when the folder was made."""
    return _mine().room


def sweep() -> None:
    """Remove the folders that processes of this user left behind when they were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # it is locked by a living process, or another process was faster
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(folder).st_uid == os.geteuid():
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(folder)


def _mine() -> _Held:
    with _guard:
        if not _held or _held[0].process != os.getpid() or not _held[0].path.is_dir():
            try:
                sweep()
                path = _made()
                held = _Held(path, os.getpid(), shutil.disk_usage(path).free // 2)
            except OSError:
                raise TableError(
                    "Table: no private folder for temporary files can be made. Set TMPDIR to a folder you can write to."
                ) from None
            _held[:] = [held]
            atexit.register(_remove, held)
        return _held[0]


def _made() -> Path:
    """A new folder, locked for as long as this process lives."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        with suppress(FileNotFoundError):  # a sweep found it before it was locked
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)  # never closed: the lock goes with it
            with suppress(OSError):  # a file system without locks: nobody can sweep there either
                fcntl.flock(folder, fcntl.LOCK_EX)
            if path.stat().st_ino == os.fstat(folder).st_ino:
                return path


def _remove(held: _Held) -> None:
    if held.process == os.getpid():  # not in a child that was forked
        shutil.rmtree(held.path, ignore_errors=True)
