"""From JSON records back to mechanisms. A name, once published, keeps its meaning for ever."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from typing import cast

from dpbayes.base.codec import READERS
from dpbayes.base.display import nearest
from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.mechanisms.base import NAMES, Record
from dpbayes.privacy.calibrate import by_name, called
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.schema.unit import PrivacyUnit

KINDS = {
    "dirichlet-1": "dpbayes.mechanisms.dirichlet:UnroundedDirichlet",
    "dirichlet-2": "dpbayes.mechanisms.dirichlet:Dirichlet",
    "dp-event-1": "dpbayes.mechanisms.events:Event",
    "gaussian-1": "dpbayes.mechanisms.gaussian:Gaussian",
    "hellinger-1": "dpbayes.hellinger.mechanism:Hellinger",
    "laplace-1": "dpbayes.mechanisms.laplace:Laplace",
    "laplace-threshold-1": "dpbayes.mechanisms.threshold:Threshold",
    "posterior-exponential-1": "dpbayes.hellinger.exponential:PosteriorExponential",
    "posterior-laplace-1": "dpbayes.hellinger.posterior_laplace:PosteriorLaplace",
    "pseudo-records-1": "dpbayes.mechanisms.urn:PseudoRecords",
    "selection-1": "dpbayes.mechanisms.selection:Selection",
    "stated-1": "dpbayes.mechanisms.stated:Stated",
    "stated-rdp-1": "dpbayes.mechanisms.stated:StatedRDP",
    "subsampled-1": "dpbayes.mechanisms.subsampled:Subsampled",
}


def from_record(record: object) -> Priced:
    """The mechanism that wrote this record.

    >>> from dpbayes import Adjacency, Gaussian, PrivacyUnit
    >>> mechanism = Gaussian(sigma=3, unit=PrivacyUnit(adjacency=Adjacency.ADD_REMOVE))
    >>> from_record(mechanism.record()) == mechanism
    True
    """
    if not isinstance(record, dict) or record.get("mechanism") not in tuple(KINDS):
        raise InvalidArgument(
            f"Record: expected a mechanism that is one of {', '.join(KINDS)}. "
            "A newer dpbayes may have written it: upgrade to read it."
        )
    module, name = KINDS[record["mechanism"]].split(":")
    read = cast(Callable[[Record], Priced], getattr(import_module(module), name).from_record)
    try:
        mechanism = read(record)
    except DpbayesError:
        raise
    except (KeyError, TypeError, ValueError) as problem:
        raise InvalidArgument(f"Record: a {record['mechanism']} record has wrong or missing fields.") from problem
    return mechanism


READERS[Priced] = from_record

NAMED = {place.rpartition(":")[2]: place for name, place in KINDS.items() if name not in ("dirichlet-1", "dp-event-1")}
"""The mechanisms that can be written as text."""

SILENT = ("unit", "what")
"""Fields that a text does not name."""


def from_text(text: str, unit: PrivacyUnit) -> Cost:
    """The cost of a mechanism as Python writes it, or of the list of records in a ``.json`` file.

    >>> from_text("3 * Gaussian(4)", PrivacyUnit(adjacency="replace-one")).entries[0][1]
    3
    """
    if text.endswith(".json"):
        return _of_file(Path(text))
    times, name, given = called("price", text)
    if name not in NAMED:
        raise InvalidArgument(f"price: there is no mechanism {name!r}. {nearest(name, NAMED)}")
    module, kind = NAMED[name].split(":")
    made = getattr(import_module(module), kind)
    own = [each.name for each in fields(made) if each.name not in SILENT and each.default is MISSING]
    names = [NAMES.get(each, each) for each in own]
    numbers = by_name("price", text, names, given)
    if len(numbers) < len(names):
        raise InvalidArgument(f"price: {name} needs {' and '.join(names)}, got {text[:80]!r}.")
    held = {each: numbers[NAMES.get(each, each)] for each in own}
    silent = {"unit": unit, "what": "made elsewhere"}
    return Cost.of(
        made(**held, **{each.name: silent[each.name] for each in fields(made) if each.name in silent}), times
    )


def cost_of(texts: Iterable[str], unit: PrivacyUnit) -> Cost:
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
