"""Made-up data to try dpbayes on: 20,000 people who do not exist, the same on every machine.

The files beside this module are what is public about them. They are written to the folder with the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import TableError

RECORDS = 20_000
SEED = 1763
"""The year in which Bayes's essay was read to the Royal Society."""

SEXES = ("female", "male")
REGIONS = ("North", "East", "South", "West", "Islands")
EDUCATIONS = ("primary", "secondary", "vocational", "bachelor", "postgraduate")
INCOMES = ("under 15k", "15k to 30k", "30k to 50k", "50k to 80k", "80k and over")
COLUMNS = "sex,age,region,education,income"
UNKNOWN = ((0.008, "self-described"), (0.002, "-1"), (0.003, "abroad"), (0.004, "n/a?"), (0.0, ""))
"""Of each column: the share of answers that no schema foresaw, and what they say."""

PUBLIC = ("survey.toml", "request.toml", "prior.csv", "margins.toml", "codebook.csv", "geography.toml")
SCHEMA = Path(__file__).with_name("survey.toml").read_text(encoding="utf-8")

Texts = NDArray[np.str_]


def write_example(folder: str | Path) -> tuple[Path, Path]:
    """Write ``survey.csv``, its schema and what else the manual uses; a file that is there and differs is left alone.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table, schema = write_example(folder)
    ...     table.read_text().splitlines()[0]
    'sex,age,region,education,income'
    """
    where = Path(folder)
    files = {"survey.csv": survey_csv(), "wave-2.csv": second_wave_csv(), "visits.csv": visits_csv()}
    files |= {name: Path(__file__).with_name(name).read_text(encoding="utf-8") for name in PUBLIC}
    try:
        where.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            path = where / name
            if path.exists() and path.read_bytes() != text.encode():
                raise TableError(f"example: {str(path)!r} exists and is another file. Choose another folder.")
        for name, text in files.items():
            (where / name).write_bytes(text.encode())
    except OSError as problem:
        raise TableError(f"example: cannot write to {str(where)!r}: {problem.strerror}.") from None
    return where / "survey.csv", where / "survey.toml"


def survey_csv() -> str:
    """The survey as CSV text. Only uniform random numbers are used, whose stream no numpy version changes."""
    rng = np.random.default_rng(SEED)
    lost = (0.004, 0.006, 0.0, 0.012, 0.07)
    return _csv(COLUMNS, [_spoiled(rng, *each) for each in zip(_texts(*_people(rng)), lost, UNKNOWN, strict=True)])


def second_wave_csv() -> str:
    """The same people a year later: one in three has another income, and one in eight, mostly young, is silent."""
    sex, age, region, education, income = _people(np.random.default_rng(SEED))
    rng = np.random.default_rng(SEED + 1)
    income = np.where(rng.random(RECORDS) < 1 / 3, _choose(rng, _income(sex, age + 1, region, education)), income)
    silent = rng.random(RECORDS) < np.where(age < 30, 0.2, 0.1)
    answers = _texts(sex, age + 1, region, education, income)
    return _csv(COLUMNS, [column if column is answers[2] else np.where(silent, "", column) for column in answers])


def visits_csv() -> str:
    """Visits to clinics, of people with one to four of them, in tracts that lie in counties, and these in states."""
    rng = np.random.default_rng(SEED + 2)
    times = 1 + _choose(rng, np.tile((0.55, 0.26, 0.12, 0.07), (RECORDS // 2, 1)))
    home = _choose(rng, np.tile(1.0 / (1.0 + np.arange(36) % 7), (times.size, 1)))
    age = np.floor(95.0 * rng.random(times.size) ** 1.2).astype(np.int64)
    sex = _choose(rng, np.tile((0.53, 0.46, 0.01), (times.size, 1)))
    smokes = _choose(rng, np.where((age < 15)[:, None], (0, 0, 0, 1, 0), (0.16, 0.08, 0.22, 0.44, 0.1)))
    person = np.repeat(np.arange(times.size), times)
    home, age, sex, smokes = home[person], age[person], sex[person], smokes[person]
    weights = np.tile((0.25, 0.25, 0.05, 0.07, 0.2, 0.18), (person.size, 1))
    weights[:, 2] *= 1 + age / 12
    weights[smokes < 2, 3] *= 5.0
    day = np.datetime64("2026-01-01") + np.floor(365 * rng.random(person.size)).astype(np.int64)
    tract = 100 * (home // 9 + 1) + 10 * (home // 3 % 3 + 1) + home % 3 + 1
    columns = [1 + np.arange(person.size), 10_000 + person, tract // 100, tract // 10, tract, day]
    columns += [np.array((1, 2, 9))[sex], age, 1 + _choose(rng, weights), np.array((1, 2, 3, 4, 9))[smokes]]
    return _csv("visit,person,state,county,tract,admitted,sex,age,reason,smokes", columns)


def _texts(sex: Ints, age: Ints, *others: Ints) -> list[Texts]:
    """The answers as they are written: sex, age, region, education and income."""
    named = zip((REGIONS, EDUCATIONS, INCOMES), others, strict=True)
    return [np.array(SEXES)[sex], age.astype(np.str_), *(np.array(levels)[chosen] for levels, chosen in named)]


def _csv(header: str, columns: Sequence[NDArray[np.generic]]) -> str:
    rows = zip(*(column.astype(np.str_).tolist() for column in columns), strict=True)
    return f"{header}\n" + "\n".join(map(",".join, rows)) + "\n"


def _people(rng: np.random.Generator) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Sex, age, region, education and income of everybody."""
    sex = _choose(rng, np.tile((0.512, 0.488), (RECORDS, 1)))
    age = np.floor(16.0 + 79.0 * rng.random(RECORDS) ** 1.25).astype(np.int64)
    region = _choose(rng, np.tile((0.31, 0.24, 0.27, 0.165, 0.015), (RECORDS, 1)))
    education = _choose(rng, _education(age, region))
    return sex, age, region, education, _choose(rng, _income(sex, age, region, education))


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


def _spoiled(rng: np.random.Generator, column: Texts, missing: float, unknown: tuple[float, str]) -> Texts:
    """The column with a few answers lost, and a few that no schema foresaw."""
    share, answer = unknown
    spoiled = column.astype(f"<U{max(column.dtype.itemsize // 4, len(answer))}")
    luck = rng.random(column.size)
    spoiled[luck < share] = answer
    spoiled[luck > 1.0 - missing] = ""
    return spoiled
