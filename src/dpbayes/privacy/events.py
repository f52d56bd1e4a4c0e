"""What dp-accounting says about its own events: divergences and privacy loss distributions of one DpEvent.

Neighbours differ by an added record. For replaced ones dp-accounting 0.6 is of two minds: its distributions take a
noise multiplier to be relative to an added record, and double the sensitivity; its divergences do not.

An accountant may keep a part of the cost beside its divergences or its distribution, as dp-accounting 0.6 does with
noise of size zero. So what is read is compared with the accountant's public answers, and refused if it is less.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from dpbayes.base.codec import canonical
from dpbayes.base.errors import InvalidArgument
from dpbayes.privacy.convert import ROUND_UP, renyi_to_epsilon
from dpbayes.privacy.pld import ROUNDING, Pld, epsilon_of
from dpbayes.privacy.pld import read as pld_read

SAMPLED = re.compile("Sampled|Subsampled")
DELTAS = (1e-2, 1e-6, 1e-10)
"""Where what was read is compared with the accountant's public answers."""


def leaves(event: Any, times: int = 1) -> Iterator[tuple[str, int]]:
    """The parts of a DpEvent that are composed, as texts, and how often each happens."""
    name = type(event).__name__
    if name == "SelfComposedDpEvent":
        yield from leaves(event.event, times * _whole(event.count))
    elif name == "ComposedDpEvent":
        for part in event.events:
            yield from leaves(part, times)
    elif name != "NoOpDpEvent":
        yield canonical(_record(event)), times


def read(text: str) -> Any:
    """The DpEvent of a text; refused unless dp-accounting can price it."""
    return _read(text)[0]


def renyi(text: str, order: float) -> float:
    """Rényi divergence by dp-accounting's accountant; infinite where it has none for this event."""
    event, by_rdp, _ = _read(text)
    return math.inf if not by_rdp or math.isinf(order) else _divergence(event, order)


def _divergence(event: Any, order: float) -> float:
    """The same; infinite where the accountant says more in public than its divergence tells."""
    from dp_accounting.rdp import rdp_privacy_accountant

    accountant = rdp_privacy_accountant.RdpAccountant([order], _relation())
    accountant.compose(event)
    # the oldest version that is admitted has no public name for it; it is rounded to nearest
    value = float(accountant._rdp[0]) * ROUND_UP
    if order <= 1.01:  # no divergence is converted there, and it is asked at order 2 only
        return value
    known = all(_covers(renyi_to_epsilon(order, value, delta), accountant.get_epsilon(delta)) for delta in DELTAS)
    return value if known else math.inf


def _covers(read: float, public: float) -> bool:
    return read >= (1.0 - 1e-6) * public


@lru_cache(maxsize=64)
def pld(text: str, interval: float) -> Pld | None:
    """Privacy loss distribution by dp-accounting's accountant; None where it has none for this event."""
    event, _, by_pld = _read(text)
    return _distribution(event, interval) if by_pld else None


def _distribution(event: Any, interval: float) -> Pld:
    """The same; refused where the accountant says more in public than its distribution tells."""
    from dp_accounting.pld import pld_privacy_accountant

    accountant = pld_privacy_accountant.PLDAccountant(_relation(), interval)
    accountant.compose(event)
    read = pld_read(accountant._pld, interval)  # it has no public name either
    made = Pld(interval, tuple((low, masses, infinity + ROUNDING) for low, masses, infinity in read.directions))
    known = [(made.delta(epsilon), accountant.get_delta(epsilon)) for epsilon in (0.0, 0.1, 1.0, 10.0)]
    known += [(epsilon_of(made, delta), accountant.get_epsilon(delta)) for delta in DELTAS]
    if not accountant.get_delta(0.0) < 1.0 or not all(_covers(*each) for each in known):
        raise ValueError
    return made


def _relation() -> Any:
    from dp_accounting import privacy_accountant

    return privacy_accountant.NeighboringRelation.ADD_OR_REMOVE_ONE


@lru_cache(maxsize=256)
def _read(text: str) -> tuple[Any, bool, bool]:
    """The event, and whether its divergences and its loss distribution are known."""
    from dp_accounting.pld import pld_privacy_accountant
    from dp_accounting.rdp import rdp_privacy_accountant

    relation = _relation()
    try:
        event = _event(json.loads(text))
        by_rdp = rdp_privacy_accountant.RdpAccountant([2.0], relation).supports(event)
        by_pld = pld_privacy_accountant.PLDAccountant(relation).supports(event)
        told = [_divergence(event, 2.0)] if by_rdp else []
        told += [_distribution(event, 1e-2).delta(0.0) - ROUNDING] if by_pld else []
        if "NonPrivate" in text or not told or not all(0 < each < math.inf for each in told):
            raise ValueError
    except (AttributeError, ArithmeticError, KeyError, TypeError, ValueError):
        raise InvalidArgument("Event: expected a DpEvent that dp-accounting can price.") from None
    return event, by_rdp, by_pld


def _record(event: Any) -> dict[str, object]:
    """The fields of an event, with its class."""
    if not type(event).__module__.startswith("dp_accounting"):
        raise InvalidArgument("Event: expected a DpEvent of dp-accounting.")
    made: dict[str, object] = {"class": type(event).__name__}
    for field in type(event).__attrs_attrs__:
        value = getattr(event, field.name)
        if field.name == "event":
            value = _record(value)
        elif field.name == "events":
            value = [_record(part) for part in value]
        made[field.name] = value
    return made


def _event(record: dict[str, Any]) -> Any:
    from dp_accounting import dp_event

    fields = {key: value for key, value in record.items() if key != "class"}
    for key, value in fields.items():
        if key == "event":
            fields[key] = _event(value)
        elif key == "events":
            fields[key] = [_event(part) for part in value]
        elif not all(_number(each) for each in (value if isinstance(value, list) else [value])):
            raise ValueError
    name = record["class"]
    if not isinstance(name, str) or not re.fullmatch(r"\w+DpEvent", name):
        raise ValueError
    return getattr(dp_event, name)(**fields)


def _number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0  # type: ignore[arg-type, operator]


def _whole(count: object) -> int:
    if type(count) is not int or count < 1:
        raise InvalidArgument("Event: expected an event that happens once or more.")
    return count
