"""Judges what a history has left behind, by the files alone: it shares no code with what wrote them.

Prices are its own. Gaussian noise of deviation σ on counts, of which a replaced record moves two by one, costs
ρ = 1/σ² and shifts by μ = √2/σ; Laplace noise of scale b costs ε = 2/b; a selection costs its sharpness. A Dirichlet
draw shifts by no less than its exact Rényi divergence between two neighbours says, whatever bound the ledger takes.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import stat
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln
from scipy.stats import norm

Rows = list[tuple[str, int, str, str]]


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def rows_of_file(path: Path) -> tuple[Rows, dict[str, str]]:
    """Entries and heads, straight from the file."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = connection.execute("SELECT dataset, serial, text, hash FROM dpbayes_entries ORDER BY serial").fetchall()
        return rows, dict(connection.execute("SELECT dataset, head FROM dpbayes_datasets").fetchall())
    finally:
        connection.close()


def charges(rows: Rows, heads: dict[str, str]) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """The budget, and the charges by serial; the chain is checked on the way."""
    before, found, budget = "0" * 64, {}, {}
    for place, (dataset, serial, text, stored) in enumerate(rows):
        body = json.loads(text)
        assert (serial, sha(text), body["previous"], body["serial"]) == (place, stored, before, place), "broken chain"
        before = stored
        if body["kind"] == "budget":
            budget = body["budget"]
        elif body["kind"] == "charge":
            found[serial] = {**body, "state": "charged"}
        elif body["kind"] in ("drawn", "void"):
            charge = found[body["charge"]]
            assert charge["state"] == "charged", "a charge is settled twice"
            charge.update(state=body["kind"], digest=body.get("digest"))
            if body["kind"] == "void":
                assert sha(body["key"]) == charge["lock"], "taken back by somebody who did not make it"
        assert set(heads) == {dataset}
    assert list(heads.values()) == [before], "entries are missing at the end"
    return budget, found


def within(budget: dict[str, Any], found: dict[int, dict[str, Any]]) -> float:
    """The share of the limit that is used by what can be priced here; it must not exceed one."""
    paid = [each for one in found.values() if one["state"] != "void" for each in one["releases"]]
    if budget["notion"] == "pure-dp":
        used = math.fsum(each["times"] * _pure(each["mechanism"]) for each in paid) / budget["epsilon"]
    else:
        rho = math.fsum(each["times"] / each["mechanism"]["sigma"] ** 2 for each in paid if _gaussian(each))
        if budget["notion"] == "zcdp":
            assert all(map(_gaussian, paid))
            used = rho / budget["rho"]
        else:
            shifted = 2.0 * rho + math.fsum(each["times"] * _shifted(each["mechanism"]) for each in paid)
            used = shifted / _largest_shift(budget["epsilon"], budget["delta"]) ** 2
    assert used <= 1.0 + 1e-9, f"{used} of the limit is spent"
    return used


def _gaussian(each: dict[str, Any]) -> bool:
    return bool(each["mechanism"]["mechanism"] == "gaussian-1")


def _shifted(mechanism: dict[str, Any]) -> float:
    """μ² ≥ 2·D_λ/λ of a Dirichlet draw, D_λ between gammas of shape α + r and α in one cell, α and α + r in another.

    D_λ(Γ(a)‖Γ(b)) = [lnΓ(λa + (1−λ)b) − λ·lnΓ(a) − (1−λ)·lnΓ(b)]/(λ − 1).
    """
    if not mechanism["mechanism"].startswith("dirichlet"):
        return 0.0
    alpha, weight = mechanism["concentration"], mechanism["weight"]
    first, second = sorted(alpha)[:2] if isinstance(alpha, list) else (alpha, alpha)
    largest = 0.0
    for order in (1.001, 1.5, 2.0, 4.0, 8.0):
        found = 0.0
        for a, b in ((first + weight, first), (second, second + weight)):
            mixed = order * a + (1.0 - order) * b
            if mixed <= 0:
                break
            found += (gammaln(mixed) - order * gammaln(a) - (1.0 - order) * gammaln(b)) / (order - 1.0)
        else:
            largest = max(largest, 2.0 * found / order)
    return largest


def _pure(mechanism: dict[str, Any]) -> float:
    name = mechanism["mechanism"]
    if name == "selection-1":
        return float(mechanism["sharpness"])
    several = name == "posterior-laplace-1" and len(mechanism["prior"]) > 2
    assert several or name in ("laplace-1", "sum-zero-laplace-1")
    return float(2.0 / mechanism["scale"])


def _largest_shift(epsilon: float, delta: float) -> float:
    def excess(mu: float) -> float:
        first = norm.cdf(-epsilon / mu + mu / 2.0)
        return float(first - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2.0) - delta)

    return float(brentq(excess, 1e-3, 10.0))


def content(release: dict[str, Any]) -> str:
    """The hash of a draw, without what was computed from it or came after it."""
    bare = {key: value for key, value in release.items() if key not in ("seal", "spending", "files")}
    if "tables" in bare:
        later = ("products", "groups", "notes")
        bare["tables"] = [{key: value for key, value in one.items() if key not in later} for one in bare["tables"]]
    return sha(json.dumps(bare, sort_keys=True, separators=(",", ":")))


@dataclass
class Witness:
    """Looks into the folder now and then, and remembers every draw that it could see."""

    folder: Path
    kept: Path
    seen: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    states: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    published: Counter[str] = field(default_factory=Counter)

    def look(self) -> None:
        """Whatever has a final name is whole."""
        self.published = Counter()
        for path in self.kept.glob("*.draw.json"):
            if not path.name.startswith("."):
                release = json.loads(path.read_text())
                self.seen[release["lock"]].add(content(release))
        for path in self.folder.glob("*.out"):
            release = json.loads((path / "release.json").read_text())
            assert {"release.json", *release["files"]} == {each.name for each in path.iterdir()}
            for name, stated in release["files"].items():
                assert sha((path / name).read_bytes()) == stated, f"{name} is not whole"
            self.seen[release["lock"]].add(content(release))
            self.published[release["lock"]] += 1
        for path in self.folder.glob("*.wide"):
            with np.load(path, allow_pickle=False) as file:
                lock = json.loads(str(file["about"]))["plan"]["lock"]
            self.states[lock].add(sha(path.read_bytes()))
            self.published[lock] += 1
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        if self.kept.exists():
            assert stat.S_IMODE(self.kept.stat().st_mode) == 0o700
        for path in self.unfinished():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def unfinished(self) -> list[Path]:
        """Drafts, in any state."""
        return [path for path in self.kept.glob("*") if path.suffix in (".draft", ".reading")]

    def waiting(self, found: dict[int, dict[str, Any]]) -> tuple[int, int]:
        """How many charges wait to be finished: from a draw that was kept, and by drawing anew."""
        locks = {one["lock"] for one in found.values() if one["state"] != "void"}
        drafts = {sha(json.loads(path.read_text())["key"]): path for path in self.unfinished()}
        mine = [path for lock, path in drafts.items() if lock in locks]
        kept = sum(path.with_suffix(".draw.json").exists() for path in mine)
        return kept, len(mine) - kept

    def judge(self, budget: dict[str, Any], found: dict[int, dict[str, Any]]) -> int:
        """Everything that must be true at the end, when all faults are mended and all is finished; what is lost."""
        self.look()
        within(budget, found)
        locks = [one["lock"] for one in found.values()]
        assert len(locks) == len(set(locks)), "two charges with one lock"
        live = {one["lock"]: one for one in found.values() if one["state"] != "void"}
        assert set(self.seen) | set(self.states) | set(self.published) <= set(live), "published without a charge"
        for lock, one in live.items():
            assert len(self.seen[lock]) <= 1, "two draws of one charge were visible"
            assert len(self.states[lock]) <= 1, "two states of one charge were visible"
            assert self.published[lock] <= 1, "one charge is published twice"
            assert one["state"] == "charged" or {one["digest"]} == self.seen[lock], "the note is of another draw"
        kept = Counter(json.loads(path.read_text())["lock"] for path in self.kept.glob("*.draw.json"))
        assert set(kept.values()) <= {1}
        assert not self.unfinished(), "there is something left to finish"
        assert not list(self.kept.glob(".*")), "something half-written was left with the draws"
        return sum(not (kept[lock] and self.published[lock]) for lock in live)
