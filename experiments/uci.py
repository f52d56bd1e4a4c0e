"""The raw files of the UCI repository, turned into one table per data set: named columns, labels for codes, class last.

The columns are numbers where they count or measure something and texts where they name something. The class is the
column ``target``, an integer. Rows keep the order of the files; where there is a file for training and one for tests,
in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd

Convert = Callable[[Sequence[bytes]], pd.DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a data set lies below the repository's address, how it is read, and what must come out.

    A path is a file, or ``archive.zip!member``. ``digest`` is taken of the finished table, so that it holds for every
    copy of the file that has the same content.
    """

    paths: tuple[str, ...]
    convert: Convert
    digest: str


def _read(raw: bytes, **options: Any) -> pd.DataFrame:
    return pd.read_csv(BytesIO(raw), keep_default_na=False, encoding="utf-8", **options)


def _labelled(frame: pd.DataFrame, labels: dict[str, dict[int, str]]) -> pd.DataFrame:
    """Codes turned into labels; a code without label keeps its number."""
    named = {
        column: [names.get(code, f"undocumented {code}") for code in frame[column]] for column, names in labels.items()
    }
    return frame.assign(**named)


def _numbered(names: Sequence[str], first: int = 1) -> dict[int, str]:
    return dict(enumerate(names, start=first))


CREDITCARD = (
    ["LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE", "PAY_0"]
    + [f"PAY_{month}" for month in range(2, 7)]
    + [f"BILL_AMT{month}" for month in range(1, 7)]
    + [f"PAY_AMT{month}" for month in range(1, 7)]
    + ["target"]
)


def creditcard(files: Sequence[bytes]) -> pd.DataFrame:
    """``ID, X1 … X23, Y`` with a header."""
    frame = _read(files[0]).iloc[:, 1:].set_axis(CREDITCARD, axis=1).astype("int64")
    return _labelled(
        frame,
        {
            "SEX": _numbered(["male", "female"]),
            "EDUCATION": _numbered(["graduate school", "university", "high school", "others"]),
            "MARRIAGE": _numbered(["married", "single", "others"]),
        },
    )


THYROID_SIGNS = [
    "sex",
    "on_thyroxine",
    "query_on_thyroxine",
    "on_antithyroid_medication",
    "sick",
    "pregnant",
    "thyroid_surgery",
    "I131_treatment",
    "query_hypothyroid",
    "query_hyperthyroid",
    "lithium",
    "goitre",
    "tumor",
    "hypopituitary",
    "psych",
]
THYROID = ["age", *THYROID_SIGNS, "TSH", "T3", "TT4", "T4U", "FTI", "target"]


def thyroid(files: Sequence[bytes]) -> pd.DataFrame:
    """Blanks between values, no header; training and test file."""
    types = dict.fromkeys(THYROID, "float64") | dict.fromkeys(THYROID_SIGNS, "str") | {"target": "int64"}
    return _stacked(_read(raw, sep=r"\s+", header=None, names=THYROID, dtype=types) for raw in files)


SHOPPER_CODES = ["Month", "OperatingSystems", "Browser", "Region", "TrafficType", "VisitorType", "Weekend"]


def shopper(files: Sequence[bytes]) -> pd.DataFrame:
    """A header; the class is ``Revenue``, TRUE or FALSE."""
    frame = _read(files[0], dtype=dict.fromkeys([*SHOPPER_CODES, "Revenue"], "str"))
    return _with_target(frame, "Revenue", "TRUE")


DIGIT = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)] + ["target"]


def digit(files: Sequence[bytes]) -> pd.DataFrame:
    """64 pixels and the digit, no header; training and test file."""
    return _stacked(_read(raw, header=None, names=DIGIT, dtype="int64") for raw in files)


GERMANCREDIT: dict[str, dict[int, str] | None] = {
    "status": _numbered(
        ["no checking account", "... < 0 DM", "0<= ... < 200 DM", "... >= 200 DM / salary for at least 1 year"]
    ),
    "duration": None,
    "credit_history": _numbered(
        [
            "delay in paying off in the past",
            "critical account/other credits elsewhere",
            "no credits taken/all credits paid back duly",
            "existing credits paid back duly till now",
            "all credits at this bank paid back duly",
        ],
        first=0,
    ),
    "purpose": _numbered(
        [
            "others",
            "car (new)",
            "car (used)",
            "furniture/equipment",
            "radio/television",
            "domestic appliances",
            "repairs",
            "education",
            "vacation",
            "retraining",
            "business",
        ],
        first=0,
    ),
    "amount": None,
    "savings": _numbered(
        ["unknown/no savings account", "... < 100 DM", "100 <= ... < 500 DM", "500 <= ... < 1000 DM", "... >= 1000 DM"]
    ),
    "employment_duration": _numbered(["unemployed", "< 1 yr", "1 <= ... < 4 yrs", "4 <= ... < 7 yrs", ">= 7 yrs"]),
    "installment_rate": _numbered([">= 35", "25 <= ... < 35", "20 <= ... < 25", "< 20"]),
    "personal_status_sex": _numbered(
        [
            "male : divorced/separated",
            "female : non-single or male : single",
            "male : married/widowed",
            "female : single",
        ]
    ),
    "other_debtors": _numbered(["none", "co-applicant", "guarantor"]),
    "present_residence": _numbered(["< 1 yr", "1 <= ... < 4 yrs", "4 <= ... < 7 yrs", ">= 7 yrs"]),
    "property": _numbered(
        ["unknown / no property", "car or other", "building soc. savings agr./life insurance", "real estate"]
    ),
    "age": None,
    "other_installment_plans": _numbered(["bank", "stores", "none"]),
    "housing": _numbered(["for free", "rent", "own"]),
    "number_credits": _numbered(["1", "2-3", "4-5", ">= 6"]),
    "job": _numbered(
        [
            "unemployed/unskilled - non-resident",
            "unskilled - resident",
            "skilled employee/official",
            "manager/self-empl./highly qualif. employee",
        ]
    ),
    "people_liable": _numbered(["3 or more", "0 to 2"]),
    "telephone": _numbered(["no", "yes (under customer name)"]),
    "foreign_worker": _numbered(["yes", "no"]),
    "target": None,
}
"""The columns of SouthGermanCredit.asc in order, with Grömping's English labels; numbers have none."""


def germancredit(files: Sequence[bytes]) -> pd.DataFrame:
    """Blanks between codes, German names in the header; the class 1 means good there and bad here."""
    frame = _read(files[0], sep=r"\s+").set_axis(list(GERMANCREDIT), axis=1).astype("int64")
    frame["target"] = 1 - frame["target"]
    return _labelled(frame, {name: labels for name, labels in GERMANCREDIT.items() if labels is not None})


def bank(files: Sequence[bytes]) -> pd.DataFrame:
    """Semicolons between quoted values, a header; the class is ``y``, yes or no."""
    return _with_target(_read(files[0], sep=";"), "y", "yes")


SPAM_WORDS = (  # noqa: SIM905 - 48 words on 48 lines would hide the rest
    "make address all 3d our over remove internet order mail receive will people report addresses free "
    "business email you credit your font 000 money hp hpl george 650 lab labs telnet 857 data 415 85 "
    "technology 1999 parts pm direct cs meeting original project re edu table conference"
).split()
SPAM = (
    [f"word_freq_{word}" for word in SPAM_WORDS]
    + [f"char_freq_{sign}" for sign in ("semicolon", "parenthesis", "bracket", "exclamation", "dollar", "hash")]
    + [f"capital_run_length_{what}" for what in ("average", "longest", "total")]
    + ["target"]
)


def spam(files: Sequence[bytes]) -> pd.DataFrame:
    """57 numbers and the class, no header."""
    whole = dict.fromkeys(("capital_run_length_longest", "capital_run_length_total", "target"), "int64")
    return _read(files[0], header=None, names=SPAM, dtype=dict.fromkeys(SPAM, "float64") | whole)


ADULT = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "target",
]


def adult(files: Sequence[bytes]) -> pd.DataFrame:
    """Commas and blanks, no header; the test file starts with a remark and ends its classes with a dot."""
    frame = _stacked(_read(raw, header=None, names=ADULT, skipinitialspace=True, comment="|") for raw in files)
    return _with_target(frame.assign(target=frame["target"].str.rstrip(".")), "target", ">50K")


def _with_target(frame: pd.DataFrame, column: str, positive: str) -> pd.DataFrame:
    """The class as 1 for this value and 0 for others, in the last column."""
    target = np.asarray(frame[column] == positive, dtype=np.int64)
    return frame.drop(columns=column).assign(target=target)


def _stacked(frames: Any) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True)
