"""One way between frozen dataclasses and JSON records: field by field, by the declared types, strictly.

A record holds text, whole numbers, finite numbers, booleans, null, lists and objects. Infinities, which JSON lacks, are
written as text. A class with ``record`` and ``from_record`` of its own is left to speak for itself.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np

from dpbayes.base.errors import InvalidArgument

T = TypeVar("T")

Record = dict[str, Any]

READERS: dict[Any, Callable[[object], Any]] = {}
"""How to read what a protocol names, such as any guarantee or any mechanism; filled where those are defined."""

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: object) -> str:
    """The one JSON text of a value: ASCII, sorted keys, no spaces, no NaN.

    >>> canonical({"b": 0.5, "a": "x"})
    '{"a":"x","b":0.5}'
    """
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError) as problem:
        raise InvalidArgument(
            "Record: expected text and finite numbers. For an infinite order ask for PureDP, for an infinite omega "
            "for ZCDP."
        ) from problem


def digest(text: str | bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def to_record(value: object) -> Any:
    """The JSON form of a value. Fields that are None, and empty lists and objects that are defaults, are left out.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Point:
    ...     x: float
    ...     label: str | None = None
    >>> to_record(Point(x=math.inf)), from_record(Point, {"x": "inf"})
    ({'x': 'inf'}, Point(x=inf, label=None))
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            raise InvalidArgument("Record: NaN is no number that can be written down.")
        return value if math.isfinite(value) else str(value)
    if isinstance(value, np.ndarray):
        return value.ravel().tolist()
    if isinstance(value, (list, tuple)):
        return [to_record(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_record(item) for key, item in value.items()}
    if hasattr(value, "record"):
        return value.record()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return fields_record(value)
    raise InvalidArgument(f"Record: cannot write down a {type(value).__name__}.")


def fields_record(value: object, *, without: tuple[str, ...] = ()) -> Record:
    """The fields of a dataclass by name, without those that hold an empty default, and without those named."""
    fields = [field for field in dataclasses.fields(cast(Any, value)) if field.name not in without]
    listed = [(field, getattr(value, field.name)) for field in fields]
    return {field.name: to_record(held) for field, held in listed if not (_empty(held) and _empty(_default(field)))}


def from_record(kind: type[T], record: object, where: str = "") -> T:
    """Read a value of this type; an error names the place in the file and what was expected there."""
    return cast(T, _read(kind, record, where))


def from_fields(kind: type[T], record: object, where: str = "") -> T:
    """Read a dataclass by its fields: all that have no default, and no others."""
    if not isinstance(record, dict):
        raise _wrong(where or kind.__name__, "an object", record)
    listed = _listed(cast(Any, kind))
    for name in record:
        if name not in listed:
            raise InvalidArgument(f"{_place(where)}expected no field {str(name)[:40]!r} here.")
    read: dict[str, Any] = {}
    for name, (field, hint) in listed.items():
        if name in record:
            read[name] = _read(hint, record[name], f"{where}.{name}" if where else name)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise InvalidArgument(f"{_place(where)}the field {name!r} is missing.")
    return kind(**read)


class WithKind:
    """Base of dataclasses whose record begins with their ``kind``: jobs, and specifications of models."""

    __slots__ = ()
    kind: ClassVar[str]
    place: ClassVar[str]
    """What errors call the record."""

    def record(self) -> Record:
        """JSON form, with its ``kind``."""
        return {"kind": self.kind, **fields_record(self)}

    @classmethod
    def from_record(cls, record: Record) -> Self:
        """Read the JSON form back."""
        return from_fields(cls, record, cls.place)


@lru_cache(maxsize=256)
def _listed(kind: Any) -> dict[str, tuple[dataclasses.Field[Any], Any]]:
    hints = typing.get_type_hints(kind, include_extras=False)
    return {field.name: (field, hints[field.name]) for field in dataclasses.fields(kind) if field.init}


def _empty(value: object) -> bool:
    return value is None or (isinstance(value, (tuple, list, dict)) and not value)


def _default(field: dataclasses.Field[Any]) -> object:
    """What a field holds where nothing is said; something that is not empty if it must be said."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


@lru_cache(maxsize=1024)
def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    return typing.get_origin(kind), typing.get_args(kind)


def _read(kind: Any, value: object, where: str) -> Any:
    origin, arguments = _parts(kind)
    if origin in (typing.Union, types.UnionType):
        return _read_union(arguments, value, where)
    if origin is typing.Literal:
        if value not in arguments or isinstance(value, bool):
            came = repr(value[:40]) if isinstance(value, str) else type(value).__name__
            raise InvalidArgument(f"{_place(where)}expected one of {', '.join(map(str, arguments))}, got {came}.")
        return value
    if origin is np.ndarray:
        return _read_array(kind, value, where)
    if origin in (tuple, list):
        return _read_list(origin, arguments, value, where)
    if origin in (dict, Mapping):
        if not isinstance(value, dict):
            raise _wrong(where, "an object", value)
        return {str(key): _read(arguments[1], item, f"{where}.{str(key)[:40]}") for key, item in value.items()}
    return _read_plain(kind, value, where)


def _read_plain(kind: Any, value: object, where: str) -> Any:
    if kind is Any or kind is object:
        canonical(value)
        return value
    if kind in _PLAIN:
        return _PLAIN[kind](value, where)
    if kind is type(None):
        if value is not None:
            raise _wrong(where, "null", value)
        return None
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            raise _wrong(where, "one of " + ", ".join(str(each.value) for each in kind), value) from None
    if kind in READERS:
        return READERS[kind](value)
    if hasattr(kind, "from_record"):
        return kind.from_record(value)
    return from_fields(kind, value, where)


def _read_union(arguments: tuple[Any, ...], value: object, where: str) -> Any:
    problems = []
    for kind in sorted(arguments, key=lambda each: each is not type(None)):
        try:
            return _read(kind, value, where)
        except InvalidArgument as problem:
            problems.append(problem)
    raise problems[-1]


def _read_list(origin: type, arguments: tuple[Any, ...], value: object, where: str) -> Any:
    if not isinstance(value, (list, tuple)):
        raise _wrong(where, "a list", value)
    if len(arguments) == 2 and arguments[1] is not Ellipsis:
        if len(value) != 2:
            raise _wrong(where, "a list of two", value)
        return tuple(
            _read(kind, item, f"{where}.{i}") for i, (kind, item) in enumerate(zip(arguments, value, strict=True))
        )
    return origin(_read(arguments[0], item, f"{where}.{i}") for i, item in enumerate(value))


def _read_array(kind: Any, value: object, where: str) -> np.ndarray:
    """A list of numbers, all whole for an array of whole numbers; an array of floats keeps whole numbers as floats."""
    whole = issubclass(_parts(_parts(kind)[1][1])[1][0], np.integer)
    if isinstance(value, np.ndarray):  # from a file of columns
        value = value if whole else value.astype(np.float64, copy=False)
        if not np.isfinite(value).all():
            raise _wrong(where, "finite numbers", None)
        return value
    if not isinstance(value, list):
        raise _wrong(where, "a list of numbers", value)
    allowed = {int} if whole else {int, float}
    if not set(map(type, value)) <= allowed:
        raise _wrong(where, "a list of whole numbers" if whole else "a list of numbers", value)
    try:
        array = np.array(value, dtype=np.int64 if whole else np.float64)
    except OverflowError:
        raise _wrong(where, "numbers of 64 bits", value) from None
    if not whole and not np.isfinite(array).all():
        raise _wrong(where, "finite numbers", value)
    array.flags.writeable = False
    return array


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong(where, "text", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _wrong(where, "whole characters", None) from None
    return value


def _whole(value: object, where: str) -> int:
    """Of 64 bits, which any language reads."""
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise _wrong(where, "a whole number of 64 bits", value)
    return value


def _number(value: object, where: str) -> float:
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(where, "a number", value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _wrong(where, "a finite number", None)
    return number


def _truth(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(where, "true or false", value)
    return value


_PLAIN: dict[Any, Callable[[object, str], Any]] = {str: _text, int: _whole, float: _number, bool: _truth}


def _place(where: str) -> str:
    return f"{where}: " if where else ""


def _wrong(where: str, expected: str, value: object) -> InvalidArgument:
    came = "" if value is None else f", got {type(value).__name__}"
    return InvalidArgument(f"{_place(where)}expected {expected}{came}.")
