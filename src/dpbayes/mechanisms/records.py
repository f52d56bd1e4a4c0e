"""From JSON records back to mechanisms. A name, once published, keeps its meaning for ever."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from dpbayes.base.codec import READERS
from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.mechanisms.base import Mechanism, Record, TableNoise
from dpbayes.privacy.cost import Priced

NOISES = {
    "gaussian-1": "dpbayes.mechanisms.gaussian:Gaussian",
    "laplace-1": "dpbayes.mechanisms.laplace:Laplace",
    "sum-zero-laplace-1": "dpbayes.mechanisms.sum_zero:SumZeroLaplace",
}
"""Noise for tables. Jobs choose among all of these, the first of equals."""

KINDS = NOISES | {
    "dirichlet-1": "dpbayes.mechanisms.dirichlet:UnroundedDirichlet",
    "dirichlet-2": "dpbayes.mechanisms.dirichlet:Dirichlet",
    "dp-event-1": "dpbayes.mechanisms.events:Event",
    "hellinger-1": "dpbayes.hellinger.mechanism:Hellinger",
    "laplace-threshold-1": "dpbayes.mechanisms.threshold:Threshold",
    "posterior-exponential-1": "dpbayes.hellinger.exponential:PosteriorExponential",
    "posterior-laplace-1": "dpbayes.hellinger.posterior_laplace:PosteriorLaplace",
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
    read = cast(Callable[[Record], Priced], class_of(record["mechanism"]).from_record)
    try:
        mechanism = read(record)
    except DpbayesError:
        raise
    except (KeyError, TypeError, ValueError) as problem:
        raise InvalidArgument(f"Record: a {record['mechanism']} record has wrong or missing fields.") from problem
    return mechanism


READERS[Priced] = from_record
