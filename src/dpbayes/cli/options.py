"""Every option and argument of the command line, once: a name has one type, one default and one meaning everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

MANY = "may be repeated"


@dataclass(frozen=True, slots=True)
class Option:
    """What the parameter of this name is on the command line."""

    help: str
    type: Any = str
    """``str``, ``int``, ``float``, ``Path``, ``bool`` for a flag, or a tuple of choices."""
    default: Any = None
    many: bool = False
    short: str = ""
    metavar: str = ""


OPTIONS = {
    "about": Option("Who decided, and why; public, and kept."),
    "all_": Option("Every entry, instead of the last 50.", bool),
    "also": Option("Another release of the same data set.", many=True, metavar="RELEASE"),
    "as_": Option("What is made of the tables, or which model; the list is below.", metavar="KIND"),
    "at": Option("Where to state it: delta=1e-6, epsilon=1, order=5.", many=True),
    "blind": Option("How often a guess is right without the release, from 0 to 1.", float, many=True),
    "categories": Option("Declare a column: sex=F,M (or F;M).", many=True),
    "cells": Option("How many cells the table has.", int, 10),
    "codebook": Option("Code lists: CSV, JSON, Table Schema, CSVW, DDI, SPSS or Stata.", Path, many=True),
    "dates": Option("Declare a column: admitted=quarter:2019-01-01:2022-01-01, or days.", many=True),
    "delta": Option("δ of the guarantee; left out, that of the ledger. 0 is pure.", float, short="-d"),
    "dry_run": Option("Exactly `dpbayes plan`: read no rows, charge nothing, write nothing.", bool),
    "edges": Option("Declare a column: age=0:100:10, or age=0,18,65,inf.", many=True),
    "epsilon": Option("ε of the guarantee.", float, short="-e"),
    "expose": Option("Let other machines reach it at this address."),
    "from_public": Option("Take categories from this file, which is public already."),
    "give_up": Option("Take back the charges of releases that never read a row.", bool),
    "guarantee": Option("Any other notion of privacy: 'RDP(5, 1)', 'ZCDP(0.1)', 'TCDP(0.1, 20)'."),
    "independent": Option("Independent records, instead of ones spread evenly over the model.", bool),
    "insecure_seed": Option("Repeatable draws for tests: stamped not private, and never charged.", int),
    "interactive": Option("Ask about each column that is not declared yet.", bool),
    "key": Option("A key of `dpbayes keys`, or its file: secret to sign, public to verify."),
    "leave_out": Option("A column that no release will use.", many=True, metavar="COLUMN"),
    "ledger": Option("What remembers the cost: a file, an address, or none; left out, it is looked for."),
    "level": Option("Of the intervals.", float, 0.95),
    "no_browser": Option("Do not open the browser.", bool),
    "only": Option("Only the release of this name, as the list of this command has it.", metavar="NAME"),
    "out": Option("New file or folder to write.", Path, short="-o"),
    "person": Option("The column that identifies people.", metavar="COLUMN"),
    "plot": Option("Draw a picture: .svg, .html, .png or .pdf.", Path),
    "population": Option("Shares of all people like these, instead of these records.", bool),
    "port": Option("Port to listen on; 0 takes a free one.", int, 8765),
    "preset": Option("Declare a column by a known list: smokes=yes-no, age=ages-10, countries, …", many=True),
    "probabilities": Option("Add P(class) of every class.", bool),
    "public": Option("For readers: show published releases, and nothing else.", bool),
    "read_rows": Option("For the owner: undeclared values? changed since the last time? Not private.", bool),
    "records": Option("The number of records, if it is public.", int),
    "request": Option("Request file; other options win over it.", Path, short="-r"),
    "rows": Option("How many records to draw; left out, as many as are public.", int),
    "rule": Option("How an (ε, δ) limit is kept: for Gaussian noise, or mixtures.", ("gaussian", "renyi"), "gaussian"),
    "schema": Option("What is public about the table; left out, it is looked for beside the table.", Path),
    "seed": Option("Repeatable records; harmless, as the model is public.", int),
    "set_": Option("One key of the request, or of an export: title=…; wins over it.", many=True, metavar="KEY=VALUE"),
    "sets": Option("Several sets, each a file: their differences say how sure a number is.", int, 1),
    "since": Option("Entries from this one on, by number, or from this day on: 2026-11-01."),
    "test": Option("Public records with known classes: accuracy and calibration."),
    "thorough": Option("Derive certificates again.", bool),
    "times": Option("How many releases share the guarantee.", int, 1),
    "unit": Option("Neighbours: replace-one, add-remove; add-remove:5 for five rows a person.", default="replace-one"),
    "witness": Option("A second file or address that sees every charge: an older ledger is refused."),
    "with_": Option("What else to write; the names are below.", many=True, metavar="NAME"),
}  # fmt: skip
"""By the name of the parameter; a trailing underscore is none of the option's."""

ARGUMENTS = {
    "data": "A table, its schema or its ledger: each finds the others by their name, in its folder.",
    "folder": "A folder.",
    "arguments": "Arguments of a function, by their symbols: alpha=10 delta=1e-5.",
    "mechanisms": "'Dirichlet(1, 10)', '3 * Gaussian(4)', 'Stated(0.5, 0)' made elsewhere, or a .json list.",
    "model": "A release of a fitted model: its file or folder.",
    "name": "Of keys: where to write NAME.key and NAME.pub. Of a paper: a function, errata, figure or table.",
    "out_": "The new file or folder.",
    "paper": "rdp, tcdp, hellinger, or a document such as h-notes.",
    "questions": "A table ('income|sex'), one row (\"income|sex='male'\") or a formula; none: all tables.",
    "release": "A release: its file, or its folder.",
    "schema": "A schema file.",
    "source": "A release, a folder of releases, or the state of a wide release.",
    "table": "A CSV, Parquet or DuckDB file, a pattern of files, or an address.",
    "tables": "sex,income is joint, income|sex has a row for each sex; '… ± 1 point' says how exact.",
    "things": "Releases, folders of them, ledgers, or exported ledgers; - reads a release.",
    "thing": "A release, or a ledger.",
}
"""What is named without an option."""


Words = tuple[str, ...]
Text = str | None
File = Path | None
ALIASES = {"Words": "tuple", "Text": "str | None", "File": "Path | None"}
"""What parameters of commands are, in short: any number of texts, and a text or a file that may be left out."""


class GuaranteeOptions(TypedDict):
    """The guarantee."""

    epsilon: float | None
    delta: float | None
    guarantee: str | None


class ReleaseOptions(GuaranteeOptions):
    """Everything that says what is released: the same for plan and release."""

    as_: Text
    request: File
    set_: Words
    schema: File
    ledger: Text
