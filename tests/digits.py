"""Numbers, draws and refusals that no change may move: each case is computed and compared with what is kept.

    python -m tests.digits tests.mechanisms.test_pinned

writes the numbers of a module's ``CASES`` beside it: of new cases, or of all with ``--again``. What is kept was
compared with the theorem tests of the same room, which compute it otherwise; here it stands in digits, at many points
and on both sides of every threshold, so that a change of any term, constant or comparison shows.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpbayes.base.errors import DpbayesError
from dpbayes.privacy.pld import Pld

Cases = dict[str, Callable[[], object]]

DIGITS = 1e-10
"""Relative differences below this are those of libraries and processors."""

SHOWN = 24
"""Longer arrays are kept as sums, or as a digest if they hold whole numbers."""


def told(value: Any) -> Any:
    """A value as JSON keeps it."""
    if isinstance(value, Pld):
        return [value.interval, *(told([lowest, masses, more]) for lowest, masses, more in value.directions)]
    if isinstance(value, np.ndarray) and value.size > SHOWN:
        if value.dtype.kind in "iub":
            content = np.ascontiguousarray(value.astype(np.int64)).tobytes()
            return {"shape": list(value.shape), "digest": hashlib.sha256(content).hexdigest()[:16]}
        flat = np.where(np.isfinite(value), value, 1e9 * np.sign(np.nan_to_num(value))).ravel()
        place = np.arange(flat.size)
        sums = [float(np.abs(flat).sum()), *(float(flat @ (1.0 + np.sin(place * step))) for step in (0.7, 1.9))]
        return {"shape": list(value.shape), "sums": sums}
    if isinstance(value, np.ndarray):
        return told(value.tolist())
    if isinstance(value, (np.floating, np.integer, np.bool_)):
        return told(value.item())
    if isinstance(value, Mapping):
        return {str(key): told(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [told(each) for each in value]
    if (isinstance(value, float) and not math.isfinite(value)) or (isinstance(value, int) and abs(value) >= 2**53):
        return str(value)
    assert value is None or isinstance(value, (bool, int, float, str)), f"{type(value)} is not pinned"
    return value


def refusal(call: Callable[..., object], *given: object, **named: object) -> str:
    """What a refusal says, with its type; what came where nothing was refused."""
    try:
        return f"nothing refused: {told(call(*given, **named))}"
    except (DpbayesError, TypeError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"


def outcome(case: Callable[[], object]) -> Any:
    """The value of a case, or its refusal."""
    try:
        return told(case())
    except DpbayesError as error:
        return f"{type(error).__name__}: {error}"


def apart(found: Any, kept: Any, where: str = "") -> str:
    """Where two values differ; empty if they do not."""
    if isinstance(kept, dict) and isinstance(found, dict) and set(kept) == set(found):
        if "sums" in kept:
            near = DIGITS * max(kept["sums"][0], 1e-300)
            same = all(abs(a - b) <= near for a, b in zip(found["sums"], kept["sums"], strict=True))
            return "" if same and found["shape"] == kept["shape"] else f"{where}: {found} for {kept}"
        return next(filter(None, (apart(found[key], kept[key], f"{where}.{key}") for key in kept)), "")
    if isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        pairs = enumerate(zip(found, kept, strict=True))
        return next(filter(None, (apart(a, b, f"{where}[{at}]") for at, (a, b) in pairs)), "")
    if isinstance(kept, float) and isinstance(found, float):
        near = math.isclose(found, kept, rel_tol=DIGITS, abs_tol=3e-16)  # what a sum of probabilities leaves of one
        return "" if near else f"{where}: {found!r} for {kept!r}"
    return "" if type(found) is type(kept) and found == kept else f"{where}: {found!r} for {kept!r}"


def kept_of(module: str) -> Path:
    """Where the numbers of a test module stand."""
    return Path(__file__).parent.parent.joinpath(
        *module.split(".")[:-1], module.rsplit(".", maxsplit=1)[-1][5:] + ".json"
    )


def check(module: str, name: str, case: Callable[[], object]) -> None:
    """One case against what is kept."""
    kept = json.loads(kept_of(module).read_text(encoding="utf-8"))
    if difference := apart(outcome(case), kept[name], name):
        raise AssertionError(difference)


def main(module: str, *again: str) -> None:
    """Keep what is not kept yet."""
    path = kept_of(module)
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    cases = importlib.import_module(module).CASES
    found = {name: kept[name] if name in kept and not again else outcome(case) for name, case in cases.items()}
    lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in found.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
