"""Damaged and hostile files for every reader: whatever the bytes, a reader reads them or refuses in one sentence.

Usage: python -m tests.fuzz INPUTS SEED [READER…]. Prints, by reader, how many inputs were read, refused and unexpected.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from tests.releases import ASKED, made_by_a_curator

from dpbayes import Attribute, Curator, Ledger, PureDP, Release, Request, Schema, Tables, verify
from dpbayes.base.errors import DpbayesError
from dpbayes.cli.models import read_columns
from dpbayes.cli.published import _ledger_in as read_export
from dpbayes.jobs import WideDistribution
from dpbayes.ledger.kept import Kept
from dpbayes.mechanisms.kinds import cost_of
from dpbayes.models.bayes_net import BayesNet
from dpbayes.release.signature import check_signature, new_key, sign
from dpbayes.schema import Marginal
from dpbayes.schema.codebook import read_codebook
from dpbayes.schema.marginal import Prior
from dpbayes.tables.sources import open_table

SCHEMA = """
id = "people"
adjacency = "replace-one"
records = 60
[[attribute]]
name = "sex"
categories = ["F", "M"]
missing = "other"
[[attribute]]
name = "age"
edges = [0, 30, 60]
[[attribute]]
name = "code"
categories = { "1" = ["1", "01"], "2" = ["2"] }
[[margin]]
of = ["sex"]
totals = [30, 30, 0]
[[impossible]]
sex = ["F"]
code = ["2"]
"""
REQUEST = """
title = "People"
tables = ["sex", "age|sex"]
epsilon = 1.0
delta = 1e-6
mechanism = "auto"
level = 0.95
"""
CODEBOOKS = {
    "csv": "variable,code,label,level\nsex,1,male,m\nsex,2,female,f\n,3,none,\n",
    "tsv": "variable\tcode\tlabel\nsex\t1\tmale\nsex\t2\tfemale\n",
    "plain.json": json.dumps({"sex": [{"value": 1, "label": "male"}, {"code": "2"}], "job": {"1": "cook"}, "x": ["a"]}),
    "fields.json": json.dumps({"fields": [{"name": "sex", "categories": [{"value": "F", "label": "female"}, "M"]},
                                          {"name": "b", "type": "boolean", "constraints": {"enum": ["y", "n"]}}]}),
    "csvw.json": json.dumps({"@context": "x", "tables": [{"tableSchema": {"columns": [
        {"name": "sex", "datatype": {"base": "string", "format": "F|M"}}, {"titles": ["b"]}]}}]}),
    "xml": '<codeBook xmlns="ddi:codebook:2_5"><dataDscr><var name="sex" ID="V1"><labl>Sex</labl><catgry><catValu>1'
           "</catValu><labl>male</labl></catgry><catgry><catValu>2</catValu></catgry></var></dataDscr></codeBook>",
}  # fmt: skip
GRAPH = json.dumps({"nodes": ["sex", "age"], "edges": [["sex", "age"]]})
RECORDS = json.dumps(
    [{"mechanism": "laplace-1", "scale": 2.0, "unit": {"adjacency": "replace-one", "max_rows": 1, "person": None}}]
)
PRIOR = "sex,share\nF,51\nM,48\nother,1\n"

Read = Callable[[Path], object]


@dataclass(frozen=True)
class Reader:
    """A sound file, perhaps in a folder of others, and what reads it."""

    file: Path
    read: Read
    folder: bool = False
    """Whether the file needs those that lie beside it."""
    apart: bool = False
    """Whether it is read in a process of its own."""


def _verified(path: Path) -> object:
    found = Release.load(path)
    return verify(found, folder=path.parent)


def _ledger(path: Path) -> object:
    ledger = Ledger(path)
    return [ledger.receipt("x"), *(ledger.export(name) for name in ledger.datasets())]


def _counted(path: Path) -> object:
    engine = open_table(str(path))
    schema = Schema.from_toml(SCHEMA.partition("[[margin]]")[0])
    return [engine.columns(), engine.count(schema, [Marginal(("sex", "age"))])]


def _drafts(path: Path) -> object:
    with Kept(path.parent).unfinished() as slots:
        return [(slot.key, slot.kept()) for slot in slots]


def readers(folder: Path, *, whole: bool) -> dict[str, Reader]:
    """Every reader with a sound file of its kind; unless ``whole``, without those that take long to make."""
    schema = Schema.from_toml(SCHEMA)
    table = {"sex": ["F", "M"] * 30, "age": list(range(60)), "code": ["1"] * 60}
    made: dict[str, Reader] = {}

    def text(name: str, content: str, read: Read, kind: str = "") -> None:
        file = folder / f"{name}{kind or '.txt'}"
        file.write_text(content, encoding="utf-8")
        made[name] = Reader(file, read)

    text("schema", SCHEMA, Schema.load, ".toml")
    text("request", REQUEST, Request.load, ".toml")
    for name, content in CODEBOOKS.items():
        text(f"codebook-{name}", content, read_codebook, f".{name.rpartition('.')[2]}")
    text("graph", GRAPH, lambda path: BayesNet.of(path.read_text(encoding="utf-8", errors="replace")))
    text("records", RECORDS, lambda path: cost_of([str(path)], schema.unit), ".json")
    text("prior", PRIOR, lambda path: Prior.from_csv(path.read_text(encoding="utf-8", errors="replace"), schema))
    statistics(folder, made)

    for number, kind in enumerate(ASKED if whole else ("tables", "wide")):
        (inner := folder / f"kind-{number}").mkdir()
        found = made_by_a_curator(kind, inner)
        found.release.save(inner / "published")
        made[f"release of {kind}"] = Reader(inner / "published" / "release.json", _verified, folder=True)
        if kind == "wide":
            made["wide"] = Reader(inner / "people.wide", WideDistribution.load)
    ledger = Ledger(folder / "people.ledger")
    ledger.open("people", PureDP(epsilon=9.0), schema.unit)
    curator = Curator(table, replace(schema, margins=()), ledger=ledger)
    curator.release(Tables("sex", "age|sex", mechanism="laplace"), PureDP(epsilon=1.0), out=folder / "release")
    made["ledger"] = Reader(folder / "people.ledger", _ledger)
    export = folder / "people.jsonl"
    export.write_text("".join(f"{line}\n" for line in ledger.export("people")))
    made["export"] = Reader(export, lambda path: read_export(str(path)))
    draft = folder / "drafts" / "0.draft"
    draft.parent.mkdir()
    draft.write_text(json.dumps({"key": "k", "plan": {}, "table": "x", "goes": None}))
    made["draft"] = Reader(draft, _drafts)
    (draft.parent / "0.draw.json").write_text((folder / "release" / "release.json").read_text())
    made["draw"] = Reader(
        draft.parent / "0.draw.json",
        lambda path: [Release.from_json(each.text()) for each in Kept(path.parent).draws()],
    )

    signatures(folder, made)
    tables(folder, table, made)
    if whole:
        numbers(folder, schema, made)
    return made


def numbers(folder: Path, schema: Schema, made: dict[str, Reader]) -> None:
    """A table so large that its numbers are in a file of their own."""
    long = Schema(id="p", unit=schema.unit, attributes=(Attribute(name="age", edges=tuple(range(20_010))),))
    Curator({"age": [1, 2, 3]}, long).release(
        Tables("age", mechanism="laplace"), PureDP(epsilon=1.0), out=folder / "long", numbers="parquet"
    )
    [file] = sorted((folder / "long").glob("*.parquet"))[:1]
    made["numbers"] = Reader(file, lambda path: Release.load(path.parent), folder=True)


def signatures(folder: Path, made: dict[str, Reader]) -> None:
    """Keys, and what was signed with them."""
    public, secret = sorted(new_key(folder / "owner.key"), key=lambda path: "pub" not in path.name)
    sign(folder / "release", secret)
    signature = next(path for path in (folder / "release").iterdir() if "sig" in path.suffix)
    made["public key"] = Reader(public, lambda path: check_signature(folder / "release", path))
    made["secret key"] = Reader(secret, lambda path: sign(folder / "release", path))
    made["signature"] = Reader(signature, lambda path: check_signature(path.parent, public), folder=True)


def tables(folder: Path, table: dict[str, list[Any]], made: dict[str, Reader]) -> None:
    """Private tables, for engines and for what reads columns."""
    pyarrow.parquet.write_table(pa.table(table), folder / "table.parquet")
    made["table-parquet"] = Reader(folder / "table.parquet", _counted)
    made["columns-parquet"] = Reader(folder / "table.parquet", lambda path: read_columns(str(path), ["sex", "age"]))
    (folder / "table.csv").write_text("sex,age,code\n" + "F,1,1\nM,50,2\n" * 30)
    made["table-csv"] = Reader(folder / "table.csv", _counted)
    made["columns-csv"] = Reader(folder / "table.csv", lambda path: read_columns(str(path), ["sex", "age"]))


def statistics(folder: Path, made: dict[str, Reader]) -> None:
    """Files of SPSS and Stata, where their library is installed."""
    try:
        import pandas
        import pyreadstat
    except ImportError:
        return
    frame = pandas.DataFrame({"sex": [1.0, 2.0]})
    labels = {"sex": {1: "male", 2: "female"}}
    for kind, write in {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta, "por": pyreadstat.write_por}.items():
        extra = {} if kind == "por" else {"variable_value_labels": labels}
        write(frame, str(folder / f"codes.{kind}"), **extra)
        made[f"codebook-{kind}"] = Reader(folder / f"codes.{kind}", read_codebook, apart=True)


# -- damage -----------------------------------------------------------------------------------------------------------

HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1.5, 1e308, 10**400, float("nan"), float("inf"), "", "x", "\x00", "\ud800", "日本", "{}",
    [], {}, [[]], [None], {"": None}, {"x": []}, "9" * 5000, "2026-01-01", [1, "a", None], -(2**63), 2**64,
]  # fmt: skip
TOKENS = [
    b"", b"\x00", b"\xff", b"\xed\xa0\x80", b'"', b"{", b"[" * 2000, b"null", b"NaN", b"1e999", b"9" * 400, b"\n",
    b"\r", b",", b"\\", b"\\ud800", b"-", b"true", b"1979-05-27", b"\xef\xbb\xbf", b"=", b"<", b"&", b"''", b"%",
]  # fmt: skip


def damaged(content: bytes, name: str, rng: random.Random) -> bytes:
    """The content with one to four faults in it."""
    if name.endswith((".json", ".draft", ".jsonl", "graph.txt")) and rng.random() < 0.6:
        lines = content.split(b"\n") if name.endswith(".jsonl") else [content]
        place = rng.randrange(len(lines))
        try:
            lines[place] = _rewritten(lines[place], rng)
            return b"\n".join(lines)
        except ValueError:
            pass
    if name.endswith(".ledger") and rng.random() < 0.5:
        return _altered(content, rng)
    if name.endswith((".toml", ".xml", ".csv", ".txt")) and rng.random() < 0.4:
        return _exchanged(content, rng)
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(found) + 1)
        match rng.randrange(6):
            case 0:
                found[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del found[at : at + rng.choice((1, 2, 10, 100))]
            case 2:
                found[at:at] = rng.choice(TOKENS)
            case 3:
                del found[at:]
            case 4:
                found[at:at] = found[at : at + rng.choice((4, 40))]
            case _:
                found[at : at + 4] = bytes(rng.randrange(256) for _ in range(4))
    return bytes(found)


def _rewritten(text: bytes, rng: random.Random) -> bytes:
    """JSON with a part replaced, removed, doubled or renamed."""
    whole: Any = json.loads(text)
    for _ in range(rng.choice((1, 1, 2))):
        inner, depth = whole, rng.randrange(8)
        while isinstance(inner, (dict, list)) and inner:
            key = rng.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
            if depth == 0 or not isinstance(inner[key], (dict, list)) or not inner[key]:
                match rng.randrange(4):
                    case 0 | 1:
                        inner[key] = rng.choice(HOSTILE)
                    case 2:
                        del inner[key]
                    case _ if isinstance(inner, dict):
                        inner[rng.choice(("", "x", "value", "0"))] = inner.pop(key)
                    case _:
                        inner.append(inner[key])
                break
            inner, depth = inner[key], depth - 1
    return json.dumps(whole).encode()


def _exchanged(content: bytes, rng: random.Random) -> bytes:
    """A word of the text exchanged for another, or for something hostile."""
    words = list(re.finditer(rb"[\w.\"'-]+", content))
    if not words:
        return content
    word = rng.choice(words)
    other = rng.choice(words).group() if rng.random() < 0.5 else rng.choice(TOKENS)
    return content[: word.start()] + other + content[word.end() :]


def _altered(content: bytes, rng: random.Random) -> bytes:
    """A ledger in which a statement has changed a value; SQLite keeps any kind of value in any column."""
    with tempfile.NamedTemporaryFile(suffix=".ledger") as file:
        Path(file.name).write_bytes(content)
        connection = sqlite3.connect(file.name)
        table, column = rng.choice([
            ("dpbayes_ledger", "format"), ("dpbayes_datasets", "dataset"), ("dpbayes_datasets", "head"),
            ("dpbayes_entries", "dataset"), ("dpbayes_entries", "serial"), ("dpbayes_entries", "text"),
            ("dpbayes_entries", "hash"),
        ])  # fmt: skip
        value = rng.choice([None, 0, 7, 10**15, 1.5, "x", b"\xff\xfe", b"", "\ud7ff", "1"])
        kind = rng.choice(["?", "CAST(? AS TEXT)"])
        try:
            connection.execute(f"UPDATE {table} SET {column} = {kind} WHERE rowid = ?", [value, rng.randrange(1, 4)])
            connection.commit()
        except sqlite3.Error:
            pass
        connection.close()
        return Path(file.name).read_bytes()


def fuzz(inputs: int, seed: int, names: list[str] | None = None, *, whole: bool = True) -> dict[str, Counter[str]]:
    """By reader: how many inputs were ``read``, ``refused``, or met an unexpected exception, which is named."""
    rng = random.Random(seed)
    told: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = readers(Path(folder), whole=whole)
        apart = [name for name in made if made[name].apart]  # a process for each: so they are tried seldom
        chosen = names or [*apart, *[name for name in made if not made[name].apart] * 25]
        for number in range(inputs):
            name = chosen[number % len(chosen)]
            reader = made[name]
            whole = reader.file.read_bytes()
            try:
                reader.file.write_bytes(damaged(whole, reader.file.name, rng))
                verdict = _verdict(reader)
            finally:
                reader.file.write_bytes(whole)
                for left in (reader.file.parent / f"{reader.file.name}-journal", reader.file.with_suffix(".draws")):
                    shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
            told.setdefault(name, Counter())[verdict] += 1
    return told


def _verdict(reader: Reader) -> str:
    try:
        reader.read(reader.file)
    except DpbayesError as problem:
        return "refused" if str(problem).strip() else "without a word"
    except Exception as problem:
        trace = problem.__traceback__
        where = ""
        while trace is not None:
            if "dpbayes" in trace.tb_frame.f_code.co_filename:
                where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
            trace = trace.tb_next
        return f"{type(problem).__name__} at {where}"
    return "read"


def unexpected(told: dict[str, Counter[str]]) -> dict[str, dict[str, int]]:
    strange = {
        name: {each: n for each, n in met.items() if each not in ("read", "refused")} for name, met in told.items()
    }
    return {name: met for name, met in strange.items() if met}


if __name__ == "__main__":
    result = fuzz(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or None)
    for reader_name, met in result.items():
        print(f"{reader_name}: {dict(met)}")
    print(f"{sum(map(Counter.total, result.values()))} inputs, unexpected: {unexpected(result)}")
