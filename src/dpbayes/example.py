"""A made-up survey to try dpbayes on: 20,000 people who do not exist, the same on every machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import TableError
from dpbayes.base.toml import value_text

RECORDS = 20_000
SEED = 1763
"""The year in which Bayes's essay was read to the Royal Society."""

SEXES = ("female", "male")
REGIONS = ("North", "East", "South", "West", "Islands")
EDUCATIONS = ("primary", "secondary", "vocational", "bachelor", "postgraduate")
INCOMES = ("under 15k", "15k to 30k", "30k to 50k", "50k to 80k", "80k and over")

SCHEMA = f"""\
# What is public about survey.csv. Nothing in this file was learned from the rows.
id = "example-survey"
unit = "replace-one"  # neighbours: one person's answers are replaced by others, so the number of records is public
records = {RECORDS}

[attributes]
# no answer, and any answer that is not listed, is counted as "other"
sex = {{ categories = {value_text(list(SEXES))}, missing = "other" }}
age = {{ edges = [16, 30, 45, 60, 75, 120], missing = "other" }}  # years, cut into [16, 30), [30, 45), …
region = {{ categories = {value_text(list(REGIONS))}, missing = "other" }}
# no answer is a level of its own, "missing"
education = {value_text(list(EDUCATIONS))}
income = {value_text(list(INCOMES))}
"""

Texts = NDArray[np.str_]


def write_example(folder: str | Path) -> tuple[Path, Path]:
    """Write ``survey.csv`` and its schema ``survey.toml``; a file that is there and differs is left alone.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table, schema = write_example(folder)
    ...     table.read_text().splitlines()[0]
    'sex,age,region,education,income'
    """
    where = Path(folder)
    files = {where / "survey.csv": survey_csv(), where / "survey.toml": SCHEMA}
    try:
        where.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            if path.exists() and path.read_bytes() != text.encode():
                raise TableError(f"example: {str(path)!r} exists and is another file. Choose another folder.")
        for path, text in files.items():
            path.write_bytes(text.encode())
    except OSError as problem:
        raise TableError(f"example: cannot write to {str(where)!r}: {problem.strerror}.") from None
    table, schema = files
    return table, schema


def survey_csv() -> str:
    """The survey as CSV text. Only uniform random numbers are used, whose stream no numpy version changes."""
    rng = np.random.default_rng(SEED)
    sex = _choose(rng, np.tile((0.512, 0.488), (RECORDS, 1)))
    age = np.floor(16.0 + 79.0 * rng.random(RECORDS) ** 1.25).astype(np.int64)
    region = _choose(rng, np.tile((0.31, 0.24, 0.27, 0.165, 0.015), (RECORDS, 1)))
    education = _choose(rng, _education(age, region))
    income = _choose(rng, _income(sex, age, region, education))
    columns = [
        _spoiled(rng, np.array(SEXES)[sex], missing=0.004, unknown=(0.008, "self-described")),
        _spoiled(rng, age.astype(np.str_), missing=0.006, unknown=(0.002, "-1")),
        _spoiled(rng, np.array(REGIONS)[region], missing=0.0, unknown=(0.003, "abroad")),
        _spoiled(rng, np.array(EDUCATIONS)[education], missing=0.012, unknown=(0.004, "n/a?")),
        _spoiled(rng, np.array(INCOMES)[income], missing=0.07, unknown=(0.0, "")),
    ]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return "sex,age,region,education,income\n" + "\n".join(map(",".join, rows)) + "\n"


def _choose(rng: np.random.Generator, weights: Floats) -> Ints:
    """One category per row, with probability proportional to the row's weights."""
    steps = np.cumsum(weights, axis=1)
    point = rng.random((len(weights), 1)) * steps[:, -1:]
    return np.asarray((point >= steps).sum(axis=1), dtype=np.int64)


def _education(age: Ints, region: Ints) -> Floats:
    """The young are still at school, the old left it earlier, and the East has the universities."""
    weights = np.tile(np.array((0.12, 0.34, 0.24, 0.21, 0.09)), (RECORDS, 1))
    weights[age < 22] *= (1.0, 2.2, 0.7, 0.12, 0.0)
    weights[age < 19] *= (1.0, 1.0, 0.3, 0.0, 0.0)
    weights[age >= 65] *= (2.6, 1.1, 0.9, 0.5, 0.5)
    weights[region == 1] *= (0.8, 0.9, 0.8, 1.4, 1.8)
    weights[region == 4] *= (1.5, 1.2, 1.1, 0.6, 0.3)
    return weights


def _income(sex: Ints, age: Ints, region: Ints, education: Ints) -> Floats:
    """A score that rises with schooling and with age up to retirement, spread over the bands."""
    score = 0.7 + 0.55 * education + 0.045 * np.minimum(age - 16, 38) - 0.9 * (age >= 67)
    score += np.array((0.1, 0.35, -0.15, 0.05, -0.5))[region] - 0.25 * (sex == 0)
    middle = np.array((0.4, 1.5, 2.5, 3.5, 4.8))
    return np.asarray(np.exp(-0.5 * ((score[:, None] - middle) / 0.95) ** 2), dtype=np.float64)


def _spoiled(rng: np.random.Generator, column: Texts, *, missing: float, unknown: tuple[float, str]) -> Texts:
    """The column with a few answers lost, and a few that no schema foresaw."""
    share, answer = unknown
    spoiled = column.astype(f"<U{max(column.dtype.itemsize // 4, len(answer))}")
    luck = rng.random(column.size)
    spoiled[luck < share] = answer
    spoiled[luck > 1.0 - missing] = ""
    return spoiled
