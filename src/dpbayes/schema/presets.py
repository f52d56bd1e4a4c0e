"""Lists that everybody knows: ready-made declarations of columns, taken from conventions and never from data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from dpbayes.base.errors import SchemaError
from dpbayes.schema.attribute import Attribute

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
