"""Codebooks: lists of codes with labels, in the formats in which offices, archives and survey tools keep them.

A codebook is public: it says which codes there may be, not which there are. It never looks at rows. And lists that
everybody knows: ready-made declarations of columns, taken from conventions.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from dpbayes.base.errors import MissingExtra, SchemaError
from dpbayes.schema.attribute import LONGEST_NOTE, Attribute
from dpbayes.schema.values import text_of

OWNER = "Codebook"

COLUMNS = {
    "variable": ("variable", "column", "name", "attribute", "field"),
    "code": ("code", "value", "category"),
    "label": ("label", "description", "meaning"),
    "level": ("level", "group", "recode"),
}
"""Names that the columns of a CSV codebook may have; variable and code must be there."""

STATISTICS = {".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por", ".dta": "read_dta"}
"""Files of SPSS and Stata, whose headers hold value labels."""

PATIENCE = 60
"""Seconds until a file counts as one that its library cannot read."""

MISSING = 3
"""The exit code that says that the library is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One code of one variable."""

    code: str
    label: str = ""
    level: str = ""
    """The category that it is merged into, if not its own."""


Codebook = dict[str, list[Code]]


def read_codebook(path: str | Path) -> dict[str, Attribute]:
    """The declarations in a codebook, by variable; variables without codes are left out."""
    where = Path(path)
    readers: dict[str, Callable[[Path], Codebook]] = {
        ".csv": _of_csv,
        ".tsv": _of_csv,
        ".json": _of_json,
        ".xml": _of_ddi,
        **dict.fromkeys(STATISTICS, _of_statistics),
    }
    reader = readers.get(where.suffix.lower())
    if reader is None:
        raise SchemaError(f"{OWNER}: expected a file named {', '.join(readers)}, got {where.name!r}.")
    try:
        found = reader(where)
    except OSError:
        raise SchemaError(f"{OWNER}: {str(path)!r} cannot be read. Check the name.") from None
    except (UnicodeError, ValueError, LookupError, TypeError, AttributeError, csv.Error, RecursionError):
        raise SchemaError(f"{OWNER}: {where.name!r} is damaged, or not in the format that its name says.") from None
    made = {name: _attribute(name, codes, where.name) for name, codes in found.items() if codes}
    if not made:
        raise SchemaError(f"{OWNER}: {where.name!r} lists no codes. It needs a variable and its codes.")
    return made


def _attribute(name: str, codes: list[Code], source: str) -> Attribute:
    """One variable: its codes are the categories, unless they are merged into levels."""
    levels = list(dict.fromkeys(each.level or each.code for each in codes))
    merged: dict[str, list[str]] = {}
    labels: dict[str, str] = {}
    for each in codes:
        level = each.level or each.code
        texts = merged.setdefault(level, [])
        if each.code not in texts:
            texts.append(each.code)
        if each.label and not each.level and each.label != level:
            labels[level] = " ".join(each.label.split())[:LONGEST_NOTE]
    recoded = tuple((level, tuple(texts)) for level, texts in merged.items() if texts != [level])
    said = f"codebook {source}"[:LONGEST_NOTE]
    return Attribute(name=name, categories=tuple(levels), codes=recoded, labels=tuple(labels.items()), source=said)


# -- CSV --------------------------------------------------------------------------------------------------------------


def _of_csv(path: Path) -> Codebook:
    text = path.read_text(encoding="utf-8-sig")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ";" if ";" in text.partition("\n")[0] else ","
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names = {name.strip().casefold(): name for name in rows.fieldnames or () if name}
    known = {key: names[alias] for key, aliases in COLUMNS.items() for alias in reversed(aliases) if alias in names}
    if "variable" not in known or "code" not in known:
        raise SchemaError(
            f"{OWNER}: expected columns named variable and code, and perhaps label and level, in {path.name!r}."
        )
    found: Codebook = {}
    variable = ""
    for row in rows:
        variable = (row[known["variable"]] or "").strip() or variable  # sheets leave repeated names empty
        code = row[known["code"]]
        if variable and code not in (None, ""):
            more = {key: (row[known[key]] or "").strip() for key in ("label", "level") if key in known}
            found.setdefault(variable, []).append(Code(code=code, **more))
    return found


# -- JSON: plain lists, Table Schema, CSVW ----------------------------------------------------------------------------


def _of_json(path: Path) -> Codebook:
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    if isinstance(content, dict) and ("@context" in content or "tableSchema" in content):
        return dict(_of_csvw(content))
    if isinstance(content, dict) and ("fields" in content or "resources" in content):
        return dict(_of_table_schema(content))
    if not isinstance(content, dict):
        raise TypeError
    return {str(name): list(_plain(listed)) for name, listed in content.items()}


def _plain(listed: object) -> Iterator[Code]:
    """``{"1": "male"}``, ``["F", "M"]`` or ``[{"code": "1", "label": "male"}]``."""
    if isinstance(listed, Mapping):
        for code, label in listed.items():
            yield Code(code=str(code), label=str(label))
        return
    if not isinstance(listed, list):
        raise TypeError  # the caller says what is wrong with the file
    for each in listed:
        if isinstance(each, Mapping):
            [code, *_] = [each[key] for key in ("code", "value", "name") if key in each]
            yield Code(code=text_of(code), label=str(each.get("label", "")), level=str(each.get("level", "")))
        else:
            yield Code(code=text_of(each))


def _of_table_schema(content: Mapping[str, Any]) -> Iterator[tuple[str, list[Code]]]:
    """Frictionless: ``categories`` or ``constraints.enum`` of a field, in a Table Schema or a Data Package."""
    schemas = [each.get("schema", {}) for each in content["resources"]] if "resources" in content else [content]
    for schema in schemas:
        for field in schema.get("fields", []):
            listed = field.get("categories") or field.get("constraints", {}).get("enum") or []
            if field.get("type") == "boolean" and not listed:
                listed = ["true", "false"]
            yield str(field["name"]), list(_plain(listed))


def _of_csvw(content: Mapping[str, Any]) -> Iterator[tuple[str, list[Code]]]:
    """CSV on the Web: a text type whose format is an alternation of plain words, or a boolean with its two words."""
    for table in content.get("tables", [content]):
        for column in table.get("tableSchema", {}).get("columns", []):
            kind = column.get("datatype", "string")
            base, form = (kind.get("base", "string"), kind.get("format", "")) if isinstance(kind, dict) else (kind, "")
            words = str(form).removeprefix("^").removesuffix("$").removeprefix("(").removesuffix(")").split("|")
            if base == "boolean" and not form:
                words = ["true", "false"]
            titles = column.get("titles")
            name = column.get("name") or (titles if isinstance(titles, str) else titles[0])
            literal = base in ("string", "boolean", "token") and all(
                re.fullmatch(r"[\w \-/&,']+", each) for each in words
            )
            yield str(name), [Code(code=each) for each in words] if literal and len(words) > 1 else []


# -- DDI codebook -----------------------------------------------------------------------------------------------------


def _of_ddi(path: Path) -> Codebook:
    text = path.read_bytes()
    if b"<!ENTITY" in text or b"<!DOCTYPE" in text:  # what a document type may expand to has no place in a codebook
        raise SchemaError(f"{OWNER}: {path.name!r} declares a document type. Remove its DOCTYPE line.")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - entities are refused above
    except ElementTree.ParseError:
        raise SchemaError(f"{OWNER}: {path.name!r} is not XML. Export it again.") from None
    found: Codebook = {}
    for variable in (each for each in root.iter() if each.tag.rpartition("}")[2] == "var"):  # in any name space
        name = variable.attrib.get("name") or variable.attrib.get("ID") or ""
        codes = []
        for category in _children(variable, "catgry"):
            value = _first_text(category, "catValu")
            if name and value:
                codes.append(Code(code=value, label=_first_text(category, "labl")))
        found[name] = codes
    return found


def _children(element: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [each for each in element if each.tag.rpartition("}")[2] == name]


def _first_text(element: ElementTree.Element, name: str) -> str:
    return next(("".join(each.itertext()).strip() for each in _children(element, name)), "")


# -- SPSS and Stata ---------------------------------------------------------------------------------------------------


def _of_statistics(path: Path) -> Codebook:
    """Read in a process of its own: its library may crash on a damaged file, and would take us with it."""
    if not path.is_file():
        raise OSError
    ours = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    code = "import sys; from dpbayes.schema.codebook import _tell; sys.exit(_tell(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(path.absolute())]
    try:
        done = subprocess.run(command, env=ours, capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise ValueError from None
    if done.returncode == MISSING:
        raise MissingExtra(
            f"{OWNER}: value labels of SPSS and Stata files need pyreadstat. Install dpbayes[codebooks]."
        )
    if done.returncode:
        raise ValueError
    return {
        name: [Code(code=text_of(code), label=str(label)) for code, label in values]
        for name, values in json.loads(done.stdout)
    }


def _tell(path: str) -> int:
    """In that process: print the value labels."""
    try:
        import pyreadstat
    except ImportError:
        return MISSING
    reader = getattr(pyreadstat, STATISTICS[Path(path).suffix.lower()])
    _, header = reader(path, metadataonly=True, output_format="dict")
    labels = header.variable_value_labels.items()
    told = [(str(name), [(text_of(code), str(label)) for code, label in values.items()]) for name, values in labels]
    print(json.dumps(told))
    return 0


_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

COUNTRIES = tuple(
    """
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC
    CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD
    GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH
    KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW
    MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC
    SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY
    UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
    """.split()  # noqa: SIM905 - 249 quoted words would fill a page
)
"""ISO 3166-1 alpha-2, 249 codes."""

INCOME = (0, 10_000, 20_000, 30_000, 40_000, 50_000, 75_000, 100_000, 150_000, 200_000)


def preset(kind: str, name: str) -> Attribute:
    """The declaration of a column by a known list.

    >>> preset("ages-10", "age").levels[:3]
    ('[0, 10)', '[10, 20)', '[20, 30)')
    >>> yes = preset("yes-no", "smokes")
    >>> [yes.levels[yes.level(value)] for value in ("Y", True, "No", "?")]
    ['yes', 'yes', 'no', 'other']
    """
    if kind not in PRESETS:
        raise SchemaError(f"Schema: there is no preset {kind!r}. Choose one of {', '.join(PRESETS)}.")
    return PRESETS[kind](name)


def _named(words: tuple[str, ...], source: str) -> Callable[[str], Attribute]:
    """Numbers from one with names; rows may hold the number, or the name in full or cut to three letters."""
    levels = tuple(str(number) for number in range(1, len(words) + 1))
    texts = {level: _texts(level, word) for level, word in zip(levels, words, strict=True)}
    labels = dict(zip(levels, words, strict=True))
    return lambda name: _made(name, levels, texts, source, labels)


def _texts(level: str, word: str) -> tuple[str, ...]:
    forms = [form(part) for part in (word, word[:3]) for form in (str, str.lower, str.upper)]
    return tuple(dict.fromkeys((level, level.zfill(2), *forms)))


def _made(
    name: str,
    categories: tuple[str, ...],
    codes: Mapping[str, tuple[str, ...]],
    source: str,
    labels: Mapping[str, str] | None = None,
) -> Attribute:
    said = tuple((labels or {}).items())
    return Attribute(name=name, categories=categories, codes=tuple(codes.items()), labels=said, source=source)


def _ages(step: int, last: int) -> Callable[[str], Attribute]:
    edges = (*range(0, last + 1, step), math.inf)
    return lambda name: Attribute(name=name, edges=edges, source=f"preset: ages in {step}-year groups")


_YES = ("yes", "Yes", "YES", "y", "Y", "true", "True", "TRUE", "1")
_NO = ("no", "No", "NO", "n", "N", "false", "False", "FALSE", "0")
_FEMALE = ("female", "Female", "FEMALE", "f", "F", "woman", "Woman")
_MALE = ("male", "Male", "MALE", "m", "M", "man", "Man")

PRESETS: dict[str, Callable[[str], Attribute]] = {
    "yes-no": lambda name: _made(name, ("yes", "no"), {"yes": _YES, "no": _NO}, "preset: yes or no"),
    "sex": lambda name: _made(name, ("female", "male"), {"female": _FEMALE, "male": _MALE}, "preset: sex"),
    "sex-iso": lambda name: Attribute(
        name=name,
        categories=("1", "2", "9", "0"),
        labels=(("1", "male"), ("2", "female"), ("9", "not applicable"), ("0", "not known")),
        source="ISO/IEC 5218",
    ),
    "months": _named(_MONTHS, "preset: months"),
    "weekdays": _named(_DAYS, "preset: days of the week, Monday first"),
    "countries": lambda name: Attribute(name=name, categories=COUNTRIES, source="ISO 3166-1 alpha-2"),
    "ages-5": _ages(5, 100),
    "ages-10": _ages(10, 100),
    "income": lambda name: Attribute(name=name, edges=(*INCOME, math.inf), source="preset: bands of income"),
}
