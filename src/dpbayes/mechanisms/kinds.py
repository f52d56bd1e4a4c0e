"""What every mechanism is: parameters that know their privacy cost (theorems, no data), how to draw, what to say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks, codec
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.display import nearest
from dpbayes.base.errors import DpbayesError, InvalidArgument, ReleaseError
from dpbayes.privacy.calibrate import Family, by_name, called
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.privacy.pld import Pld
from dpbayes.schema.unit import Sensitivity, Unit

Record = dict[str, object]

CHECKS: dict[str, Callable[[str, Any], None]] = {
    "renyi": checks.order,
    "concentrated": checks.order,
    "delta": lambda owner, epsilon: checks.non_negative(owner, epsilon=epsilon),
    "epsilon": lambda owner, delta: checks.probability(owner, delta=delta),
}
"""What the argument of a privacy curve has to be."""

NAMES = {"epsilon_stated": "epsilon", "delta_stated": "delta", "mechanism": "of"}
"""What fields are called in records, where not by their own names."""

READERS: dict[str, Callable[[Any], object]] = {
    "unit": Unit.from_record,
    "sensitivity": lambda record: None if record is None else Sensitivity(**record),
    "what": str,
}
"""Fields that are not read from a record as they stand."""


Formula = TypeVar("Formula", bound=Callable[[Any, float], float])


class Noise(Protocol):
    """What the linear law must know of a noise: an unbiased reading of the counts and its variance."""

    @property
    def even(self) -> bool:
        """Whether the variance is the same in every cell, whatever the counts."""

    def center(self, values: Floats) -> Floats:
        """An unbiased estimate of the counts."""

    def variance(self, counts: Floats) -> Floats:
        """Variance of ``center`` at given counts, cell by cell."""

    def slope(self) -> float:
        """How much the variance grows with one more record in the cell."""

    def log_law(self, value: float, counts: Ints) -> Floats:
        """The logarithm of P[value is released | count] at given counts, up to a constant."""


class Additive:
    """Noise of mean zero whose law is the same at every count."""

    __slots__ = ()
    even = True

    def center(self, values: Floats) -> Floats:
        """The noise has mean zero."""
        return values

    def slope(self) -> float:
        """The same at every count."""
        return 0.0


class Loss(Protocol):
    """A privacy loss between neighbours: of one pair of laws that dominates all others, or of a bound."""

    def renyi(self, order: float) -> float:
        """Rényi divergence of this order."""

    def delta(self, epsilon: float) -> float:
        """Smallest δ for this ε."""

    def epsilon(self, delta: float) -> float:
        """Smallest ε for this δ."""

    def pld(self, interval: float) -> Pld:
        """Its distribution on multiples of ``interval``."""


def curve(formula: Formula) -> Formula:
    """A formula that is written for one valid number: the number is checked, and arrays are taken number by number."""
    check = CHECKS[formula.__name__]

    @wraps(formula)
    def on_all(self: Any, at: Any) -> Any:
        if np.ndim(at) == 0:
            check(type(self).__name__, at)
            return formula(self, at)
        values = np.asarray(at, dtype=np.float64)
        return np.array([on_all(self, float(value)) for value in values.flat]).reshape(values.shape)

    return cast(Formula, on_all)


class Mechanism:
    """A frozen set of parameters. It states its name in records, its concentrated cost, and its loss or its curves.

    Privacy face: ``renyi`` … ``pld``. Sampling face: ``draw``, of mechanisms that draw from tables. What it says of
    its draws: ``tables``, ``law_in_words``, ``noise``.
    """

    __slots__ = ()
    unit: Unit
    kind: ClassVar[str]
    """Its name in records, for ever."""
    tables: ClassVar[tuple[str, ...]] = ()
    """The kinds of published tables that it makes."""
    law_in_words: ClassVar[str] = "see the record below"
    """The law of what it publishes, in words."""
    closed: ClassVar[bool] = False
    """Whether what it draws adds up to the number of records, which is public."""

    def __init_subclass__(cls) -> None:
        for name in CHECKS:
            if name in vars(cls) and not hasattr(vars(cls)[name], "__wrapped__"):  # slots make a class twice
                setattr(cls, name, curve(vars(cls)[name]))

    def __post_init__(self) -> None:
        """Numbers are positive, whole where they are declared as int."""
        owner = type(self).__name__
        for field in fields(cast(Any, self)):
            value = getattr(self, field.name)
            if field.type == "float":
                checks.positive(owner, **{NAMES.get(field.name, field.name): value})
                object.__setattr__(self, field.name, float(value))
            elif field.type == "int":
                checks.positive_integer(owner, **{field.name: value})
                object.__setattr__(self, field.name, int(value))
            elif field.type == "Unit":
                object.__setattr__(self, field.name, Unit.of(value))

    def __add__(self, other: Cost | Priced) -> Cost:
        """The cost of both."""
        return Cost.of(self) + other

    def __mul__(self, times: int) -> Cost:
        """The cost of drawing that often."""
        return Cost.of(self, times)

    __rmul__ = __mul__

    @classmethod
    def family(cls, unit: Unit) -> Family[Self]:
        """The mechanisms that differ in their one number."""
        numbers = [field.name for field in fields(cast(Any, cls)) if field.name != "unit"]
        if len(numbers) != 1:
            raise InvalidArgument(
                f"calibrate: {cls.__name__} has the parameters {', '.join(numbers)}. Fix all but one in a Family; a "
                "dpbayes.mechanisms.ConcentrationCurve chooses the weight of a Dirichlet mechanism."
            )
        return Family(name=cls.kind.rpartition("-")[0], make=lambda number: cls(**{numbers[0]: number, "unit": unit}))

    @property
    def exact(self) -> bool:
        """Whether every number is that of the worst neighbours, rather than a bound."""
        return True

    def _loss(self) -> Loss:
        """What every number derives from that is not stated otherwise."""
        raise NotImplementedError

    @curve
    def renyi(self, order: float) -> float:
        """Rényi divergence of this order between any two neighbours; at infinity, the pure ε."""
        return self._loss().renyi(order)

    @curve
    def concentrated(self, omega: float) -> float:  # noqa: ARG002 - the same at every ω
        """A ρ with renyi(λ) ≤ ρ·λ for all 1 < λ < ω, the smaller the better; ω = inf asks for zCDP. Here ρ = ½ε²

        Symbols: ε the pure cost.
        Source: [BS16] proposition 1.4.
        Adjacency: any that the ε holds for.
        """
        return 0.5 * self.renyi(math.inf) ** 2

    @curve
    def delta(self, epsilon: float) -> float:
        """Smallest δ for this ε ≥ 0."""
        return self._loss().delta(epsilon)

    @curve
    def epsilon(self, delta: float) -> float:
        """Smallest ε ≥ 0 for this δ."""
        return self._loss().epsilon(delta)

    def pld(self, interval: float) -> Pld:
        """Privacy loss distribution on multiples of ``interval``, never too optimistic."""
        return self._loss().pld(interval)

    def values(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Floats | Ints:
        """What a release publishes of a table: the draw, unless something before it says as much at the same cost."""
        return cast("Floats | Ints", cast(Any, self).draw(counts, rng))

    def noise(self, shape: tuple[int, ...] = (-1,)) -> Noise:  # noqa: ARG002 - for those that have one
        """The law of the noise in a table of this shape, or in its cells in a row."""
        raise ReleaseError(f"Posterior: tables drawn by {type(self).__name__} have no estimate.")

    def record(self) -> Record:
        """JSON form, from which ``mechanisms.kinds.from_record`` makes an equal mechanism."""
        listed = [field.name for field in fields(cast(Any, self))]
        held = {NAMES.get(name, name): codec.to_record(getattr(self, name)) for name in listed}
        return {"mechanism": self.kind, **held}

    @classmethod
    def from_record(cls, record: Record) -> Self:
        """Read the JSON form back; numbers are checked as any others are."""
        listed = [field.name for field in fields(cast(Any, cls))]
        held = {name: record[NAMES.get(name, name)] for name in listed}
        return cls(**{name: READERS[name](value) if name in READERS else value for name, value in held.items()})


class TableNoise(Mechanism):
    """Integer noise of mean zero on the counts of a table, of any size: jobs calibrate it, ``auto`` chooses."""

    __slots__ = ()
    tables: ClassVar[tuple[str, ...]] = ("noisy-counts", "parameters")
    name: ClassVar[str]
    """What it is called when asked for, and in the reasons of a choice."""
    split: ClassVar[Literal["gaussian", "laplace"]]
    """How tables share a budget: 1/σ² of Gaussian noise add up, and 1/scale of Laplace noise."""

    @classmethod
    def suits(cls, target: Guarantee, unit: Unit) -> bool:  # noqa: ARG003 - for those that do not
        """Whether ``auto`` considers it."""
        return True

    @classmethod
    def of_size(cls, size: float, unit: Unit, cells: int = 0, *, joint: bool = False) -> TableNoise:
        """The noise of this σ or scale, or one as large, for a table of so many cells, if they are known."""
        raise NotImplementedError

    def draw(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Ints:
        """Noisy counts, possibly negative: exact integer noise, secure unless a generator is handed in."""
        raise NotImplementedError


@runtime_checkable
class Confirmable(Protocol):
    """A mechanism whose cost rests on a stored computation that can be done again."""

    def confirm(self) -> None:
        """Do it again, and raise if the stored one was wrong."""


def confirm(mechanism: object) -> None:
    """Check what a mechanism claims beyond theorems, before it is charged and when a ledger is verified."""
    if isinstance(mechanism, Confirmable):
        mechanism.confirm()


NOISES = {
    "gaussian-1": "dpbayes.mechanisms.gaussian:Gaussian",
    "laplace-1": "dpbayes.mechanisms.laplace:Laplace",
    "sum-zero-laplace-1": "dpbayes.mechanisms.sum_zero:SumZeroLaplace",
}
"""Noise for tables. Jobs choose among all of these, the first of equals."""

KINDS = NOISES | {
    "dirichlet-1": "dpbayes.mechanisms.dirichlet:UnroundedDirichlet",
    "dirichlet-2": "dpbayes.mechanisms.dirichlet:Dirichlet",
    "dp-event-1": "dpbayes.mechanisms.stated:ForeignEvent",
    "hellinger-1": "dpbayes.hellinger.mechanism:Hellinger",
    "laplace-threshold-1": "dpbayes.mechanisms.threshold:Threshold",
    "posterior-exponential-1": "dpbayes.hellinger.baselines:PosteriorExponential",
    "posterior-laplace-1": "dpbayes.hellinger.baselines:PosteriorLaplace",
    "pseudo-records-1": "dpbayes.mechanisms.urn:PseudoRecords",
    "selection-1": "dpbayes.mechanisms.selection:Selection",
    "stated-1": "dpbayes.mechanisms.stated:Stated",
    "stated-rdp-1": "dpbayes.mechanisms.stated:StatedRDP",
    "subsampled-1": "dpbayes.mechanisms.subsampled:Subsampled",
}


def class_of(kind: str) -> type[Mechanism]:
    """The mechanism whose records have this name."""
    module, name = KINDS[kind].split(":")
    return cast(type[Mechanism], getattr(import_module(module), name))


def noises() -> tuple[type[TableNoise], ...]:
    """Every kind of noise for tables."""
    return tuple(cast(type[TableNoise], class_of(kind)) for kind in NOISES)


def from_record(record: object) -> Priced:
    """The mechanism that wrote this record.

    >>> from dpbayes import Gaussian, Unit
    >>> from dpbayes.schema import Adjacency
    >>> mechanism = Gaussian(sigma=3, unit=Unit(adjacency=Adjacency.ADD_REMOVE))
    >>> from_record(mechanism.record()) == mechanism
    True
    """
    if not isinstance(record, dict) or record.get("mechanism") not in tuple(KINDS):
        raise InvalidArgument(
            f"Record: expected a mechanism that is one of {', '.join(KINDS)}. "
            "A newer dpbayes may have written it: upgrade to read it."
        )
    read = cast(Callable[[Record], Priced], class_of(record["mechanism"]).from_record)
    try:
        mechanism = read(record)
    except DpbayesError:
        raise
    except (KeyError, TypeError, ValueError) as problem:
        raise InvalidArgument(f"Record: a {record['mechanism']} record has wrong or missing fields.") from problem
    return mechanism


codec.READERS[Priced] = from_record


def from_text(text: str, unit: Unit) -> Cost:
    """The cost of a mechanism as Python writes it, or of the list of records in a ``.json`` file.

    >>> from_text("3 * Gaussian(4)", Unit(adjacency="replace-one")).entries[0][1]
    3
    """
    if text.endswith(".json"):
        return _of_file(Path(text))
    times, name, given = called("price", text)
    named = {place.rpartition(":")[2]: kind for kind, place in KINDS.items() if kind != "dp-event-1"}
    if name not in named:
        raise InvalidArgument(f"price: there is no mechanism {name!r}. {nearest(name, named)}")
    made: Any = class_of(named[name])
    own = [each.name for each in fields(made) if each.name not in ("unit", "what") and each.default is MISSING]
    names = [NAMES.get(each, each) for each in own]
    numbers = by_name("price", text, names, given)
    held = {each: numbers[NAMES.get(each, each)] for each in own}
    silent = {"unit": unit, "what": "made elsewhere"}
    return Cost.of(
        made(**held, **{each.name: silent[each.name] for each in fields(made) if each.name in silent}), times
    )


def cost_of(texts: Iterable[str], unit: Unit) -> Cost:
    """The cost of several mechanisms together."""
    parts = [from_text(text, unit) for text in texts]
    return sum(parts[1:], parts[0])


def _of_file(path: Path) -> Cost:
    """The cost of a JSON list of mechanism records, each perhaps with ``times``."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidArgument(f"price: cannot read {path}: {problem.strerror}.") from problem
    except (ValueError, RecursionError) as problem:
        raise InvalidArgument(f"price: {path} is not JSON.") from problem
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidArgument(f"price: expected {path} to hold a non-empty JSON list of mechanism records.")
    times = [entry.pop("times", 1) for entry in entries]
    parts = [Cost.of(from_record(entry), many) for entry, many in zip(entries, times, strict=True)]
    return sum(parts[1:], parts[0])
