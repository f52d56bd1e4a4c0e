"""What the advisories say of one ledger, one published file, or several schemas."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpbayes import _checks
from dpbayes.advisories.known import Finding, Status
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import DpbayesError
from dpbayes.mechanisms.hellinger import candidates
from dpbayes.mechanisms.hellinger.certificate import affordable, certify
from dpbayes.mechanisms.records import from_record
from dpbayes.mechanisms.rounding import ENOUGH, leaked_delta, points_of_first_version
from dpbayes.mechanisms.threshold import delta_of_first_version
from dpbayes.privacy.cost import Cost

VOIDED = "counting failed; nothing was drawn"
"""How 0.1.0 took back a charge, also when it had compared the counts with declared totals."""

REFERENCE_DELTA = 1e-6
"""The δ at which an ε is given where nothing names one."""

NOTICED = 1e-3
"""A true δ that exceeds the stated one by less than this share of it is not worth a sentence."""

AGREE = 1e-7
"""How near a certificate that is derived again must come."""

INTEGER_NOISE = {"gaussian-1", "laplace-1", "posterior-laplace-1", "stated-1"}

FORMATS = {"dpbayes-release", "dpbayes-model", "dpbayes-posterior"}

Body = Mapping[str, Any]


def is_ours(body: Body) -> bool:
    """Whether a JSON object is something that dpbayes publishes."""
    return str(body.get("format")) in FORMATS or ({"column", "cost"} <= body.keys() and isinstance(body["cost"], dict))


# -- ledgers ------------------------------------------------------------------------------------------------------


def ledger(where: str, dataset: str, bodies: Sequence[Body]) -> list[Finding]:
    """What is wrong with the charges of one data set."""
    budgets = [
        body["budget"] for body in bodies if body.get("kind") == "budget" and isinstance(body.get("budget"), dict)
    ]
    budget = budgets[-1] if budgets else {}
    settled = {body["charge"]: body for body in bodies if body.get("kind") in ("void", "drawn") and "charge" in body}
    voided = {serial for serial, body in settled.items() if body["kind"] == "void"}
    charges = [body for body in bodies if body.get("kind") == "charge"]
    counted = [body for body in charges if body.get("serial") not in voided]
    delta = budget.get("delta") or REFERENCE_DELTA
    found: list[Finding] = []
    for body in counted:
        what = f"charge {body.get('serial')} of {_line(dataset)} ({_line(body.get('about', ''))})"
        found += [each for record, _ in _releases(body) for each in mechanism(where, what, record, delta=delta)]
    if budget.get("notion") == "approx-dp" and len(counted) > 1:
        found.append(_adaptive(where, dataset, budget, counted))
    guesses = [serial for serial in voided if settled[serial].get("about") == VOIDED]
    units = [body.get("unit", {}) for body in bodies if body.get("kind") == "budget"]
    if guesses and any(unit.get("adjacency") == "replace-one" for unit in units if isinstance(unit, dict)):
        found.append(
            Finding(
                advisory="count-oracle",
                status="check",
                where=where,
                what=f"{_line(dataset)}: charges {', '.join(map(str, sorted(guesses)))} were taken back after counting",
                stated="nothing was read",
                true="rows were counted, and each refusal may have told whether a declared total was right",
            )
        )
    return found


def _releases(body: Body) -> Iterator[tuple[Body, int]]:
    for release in body.get("releases", ()):
        if isinstance(release, dict) and isinstance(release.get("mechanism"), dict):
            yield release["mechanism"], int(release.get("times", 1))


def _adaptive(where: str, dataset: str, budget: Body, charges: Sequence[Body]) -> Finding:
    limit = f"ε={budget.get('epsilon')} at δ={budget.get('delta')}"
    bound = _renyi(charges, float(budget.get("delta") or REFERENCE_DELTA))
    known = f"ε={bound:.4g} at the same δ, by Rényi accounting" if math.isfinite(bound) else "no figure is proven"
    return Finding(
        advisory="adaptive-budget",
        status="check",
        where=where,
        what=f"{_line(dataset)}: {len(charges)} charges under an (ε, δ) limit",
        stated=f"{limit}, whatever is asked",
        true=f"{limit} if all was settled beforehand; otherwise {known} (the worst case known has 2.8 times the δ)",
    )


def _renyi(charges: Sequence[Body], delta: float) -> float:
    """The ε of everything that was charged, by its Rényi divergences."""
    try:
        parts = [Cost.of(from_record(record), times) for body in charges for record, times in _releases(body)]
        first, *others = parts
        return float(sum(others, first).renyi_epsilon(delta)[1])
    except (DpbayesError, ValueError):
        return math.inf


# -- mechanisms ---------------------------------------------------------------------------------------------------


def mechanism(
    where: str,
    what: str,
    record: Body,
    *,
    delta: float = REFERENCE_DELTA,
    values: Iterable[float] = (),
    grid: float = 0.0,
) -> list[Finding]:
    """What is wrong with one release, by the record of its mechanism; ``values`` and ``grid`` where they are known."""
    match record.get("mechanism"):
        case "stated-1" if str(record.get("what", "")).startswith("categories of"):
            return _discovery(where, what, record)
        case "dirichlet-1":
            return _gammas(where, what, record, delta, values, grid)
        case "hellinger-1" if isinstance(record.get("certificate"), dict):
            return _certificate(where, what, record, record["certificate"])
    return []


def _discovery(where: str, what: str, record: Body) -> list[Finding]:
    epsilon, stated = float(record["epsilon"]), float(record["delta"])
    true = delta_of_first_version(epsilon=epsilon, delta=stated, unit=PrivacyUnit.from_record(record["unit"]))
    if true <= stated * (1.0 + NOTICED):
        return []
    return [
        _affected("discovery-delta", where, what, f"ε={epsilon:.4g} at δ={stated:.3g}", f"δ={true:.3g} at the same ε")
    ]


def _gammas(where: str, what: str, record: Body, delta: float, values: Iterable[float], grid: float) -> list[Finding]:
    made = from_record(dict(record))
    points = points_of_first_version(record, grid=grid or None, largest=max(map(float, values), default=0.0))
    if points >= ENOUGH:
        return []
    epsilon, least = made.epsilon(delta), np.min(record["concentration"])
    true = leaked_delta(epsilon, weight=float(record["weight"]), concentration=float(least), points=points)
    if not true > delta * (1.0 + NOTICED):
        return []
    return [
        _affected("float-gammas", where, what, f"ε={epsilon:.4g} at δ={delta:.3g}", f"δ about {true:.2g} at the same ε")
    ]


def _certificate(where: str, what: str, record: Body, certificate: Body) -> list[Finding]:
    prior, total, stated = tuple(map(float, record["prior"])), record["total"], float(certificate["epsilon"])
    candidates.check_prior("affected", prior)
    candidates.check_total("affected", total)
    _checks.positive("affected", sharpness=record["sharpness"], epsilon=stated)
    _checks.non_negative("affected", smoothing=record["smoothing"], delta=certificate["delta"])
    if not affordable(prior, total):
        return [_affected("certificate", where, what, f"ε={stated:.4g}", "too large to derive again here", "check")]
    derived = certify(
        prior,
        total,
        sharpness=float(record["sharpness"]),
        smoothing=float(record["smoothing"]),
        delta=float(certificate["delta"]),
    )
    if derived.epsilon <= stated + AGREE:
        return []
    return [_affected("certificate", where, what, f"ε={stated:.4g}", f"ε={derived.epsilon:.4g}")]


def _affected(advisory: str, where: str, what: str, stated: str, true: str, status: Status = "affected") -> Finding:
    return Finding(advisory=advisory, status=status, where=where, what=what, stated=stated, true=true)


# -- published files ----------------------------------------------------------------------------------------------


def published(where: str, body: Body) -> list[Finding]:
    """What is wrong with a release of any version, or with a model, a posterior or a discovery of 0.1.0."""
    release = body["release"] if isinstance(body.get("release"), dict) else body
    guarantee = release.get("guarantee") or release.get("promise")
    delta = (guarantee.get("delta") if isinstance(guarantee, dict) else None) or REFERENCE_DELTA
    found: list[Finding] = []
    for table in release.get("tables", ()):
        made = _drawn_by(release, table)
        if made is not None and table.get("kind") == "gammas":
            what = f"the table {_marginal(table.get('marginal'))}"
            grid = table.get("grid") or _job(release).get("grid") or 0.0
            found += mechanism(where, what, made, delta=delta, values=table.get("values", ()), grid=grid)
    for answer in release.get("answers", ()):
        made = _drawn_by(release, answer)
        if made is not None:
            found += mechanism(where, _line(answer.get("name")), made, delta=delta)
    if isinstance(body.get("mechanism"), dict):
        found += mechanism(where, "a posterior", body["mechanism"], delta=delta)
    if isinstance(body.get("cost"), dict):
        found += mechanism(where, f"the categories of {_line(body.get('column'))}", body["cost"])
    return found


def _drawn_by(release: Body, part: object) -> Body | None:
    """The record of the mechanism that drew a table or an answer: named by its place since 0.2, written out before."""
    if not isinstance(part, dict):
        return None
    paid, place, holder = release.get("paid"), part.get("by"), part
    if isinstance(paid, list) and type(place) is int and 0 <= place < len(paid) and isinstance(paid[place], dict):
        holder = paid[place]
    return holder["mechanism"] if isinstance(holder.get("mechanism"), dict) else None


def _job(release: Body) -> Body:
    return release["job"] if isinstance(release.get("job"), dict) else {}


def _marginal(record: object) -> str:
    if isinstance(record, str):
        return _line(record)
    if not isinstance(record, dict):
        return "?"
    of, given = (", ".join(map(_line, record.get(part) or ())) for part in ("of", "given"))
    return f"{of} | {given}" if given else of


# -- schemas, and what no file says -------------------------------------------------------------------------------


@dataclass(slots=True)
class Schemas:
    """The schemas that were found, by data set."""

    known: dict[str, dict[str, str | None]] = field(default_factory=dict)

    def add(self, where: str, schema: Body) -> None:
        """Note a schema's person column."""
        self.known.setdefault(_line(schema.get("id")), {})[where] = schema.get("person")

    def findings(self) -> list[Finding]:
        """Data sets that were read both with a person column and without, or with different ones."""
        found = []
        for dataset, persons in sorted(self.known.items()):
            if len(set(persons.values())) > 1:
                columns = sorted(_line(person) if person else "none" for person in set(persons.values()))
                found.append(
                    Finding(
                        advisory="person-column",
                        status="affected",
                        where=", ".join(sorted(persons)),
                        what=f"{dataset}: person columns {', '.join(columns)}",
                        stated="the same protection for every release",
                        true="releases without the person column protect one row, not one person",
                    )
                )
        return found


def draws_noise(bodies: Iterable[Body]) -> bool:
    """Whether integer noise of OpenDP was drawn for any of these, by a version that did not note which OpenDP."""
    return any(
        record.get("mechanism") in INTEGER_NOISE and not _noted(body.get("software"))
        for body in bodies
        for record in _records(body)
    )


def _noted(software: object) -> bool:
    """Whether more than the version of dpbayes was noted."""
    return isinstance(software, dict) and bool(software.keys() - {"dpbayes"})


def _records(body: Body) -> Iterator[Body]:
    yield from (record for record, _ in _releases(body))
    release = body["release"] if isinstance(body.get("release"), dict) else body
    parts = (_drawn_by(release, part) for part in (*release.get("tables", ()), *release.get("answers", ())))
    yield from (part for part in parts if part is not None)
    yield from (part for part in (body.get("mechanism"), body.get("cost")) if isinstance(part, dict))


def biased_noise() -> Finding:
    """The one thing that no file of 0.1.0 can tell."""
    return Finding(
        advisory="biased-noise",
        status="unknown",
        where="all of them",
        what="releases with integer noise",
        stated="noise of the stated law",
        true="cannot be told: the files do not say which OpenDP drew it",
    )


def _line(text: object) -> str:
    """One line that any terminal shows."""
    return "".join(sign if sign.isprintable() else "?" for sign in str(text))[:200]
