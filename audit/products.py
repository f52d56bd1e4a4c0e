"""Products as they are published: files in, distinguisher out.

A table with many pairs of cells is released once. In each pair one record is in the first cell or in the second, and
the noise of different pairs is independent, so one published file holds thousands of trials of the same question.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from audit.bounds import Claim, distinguish
from audit.mechanisms import urn_loss
from audit.result import Effort, Row, from_evidence
from dpbayes import ApproxDP, Attribute, Curator, PosteriorTable, PureDP, Release, Schema, Tables, Unit
from dpbayes.base.errors import DpbayesError
from dpbayes.jobs import Wide, WideDistribution
from dpbayes.models import Histogram
from dpbayes.privacy.guarantee import Guarantee

AREA = "product"
REPLACE = Unit(adjacency="replace-one")
LOOSE = ApproxDP(epsilon=2.0, delta=0.01)
"""A guarantee whose δ samples can reach, so that a fault of some percent shows."""


class UnverifiedError(Exception):
    """What was published does not pass its own verification."""


def run(effort: Effort) -> list[Row]:
    """All products."""
    return [
        *_releases(effort),
        *_models(effort),
        *_wide(effort),
        _posterior(effort),
        *_released_records(effort),
        _number_of_people(),
    ]


def published(curator: Curator, asked: object, target: Guarantee) -> Release:
    """A release as its readers get it: out of the JSON file in its folder, after a look at what it promises."""
    with tempfile.TemporaryDirectory() as folder:
        curator.release(asked, target, out=Path(folder) / "out")
        release = Release.load(Path(folder) / "out")
    if not release.verify().ok:
        raise UnverifiedError(f"audit: a release does not verify: {release!r}")
    return release


def pairs(number: int, *, others: int = 0) -> tuple[Schema, pa.Table]:
    """Pairs of cells with one record each: in the first cell of pairs in the first half, else in the second cell.

    Every cell has this many ``others`` besides.
    """
    names = [f"{pair}{side}" for pair in range(number) for side in "ab"]
    column = Attribute(name="cell", categories=tuple(names), unknown="drop", missing="drop")
    schema = Schema(id="pairs", unit=REPLACE, attributes=(column,))
    cells = [f"{pair}{'a' if pair < number // 2 else 'b'}" for pair in range(number)]
    return schema, pa.table({"cell": cells + names * others})


def claim(target: Guarantee) -> Claim:
    """The stated pair."""
    return float(getattr(target, "epsilon", math.inf)), float(getattr(target, "delta", 0.0))


def _halves(scores: Any) -> tuple[Any, Any]:
    middle = len(scores) // 2
    return scores[:middle], scores[middle:]


def _judged(attack: str, values: Sequence[float], target: Guarantee, score: Callable[[Any, Any], Any]) -> Row:
    """Scores of the pairs of a published list of cells; what was dropped comes last and is left out."""
    cells = np.asarray(values, dtype=np.float64)
    cells = cells[: len(cells) // 2 * 2].reshape(-1, 2)
    return from_evidence(AREA, attack, distinguish(*_halves(score(cells[:, 0], cells[:, 1])), [claim(target)]))


def difference(first: Any, second: Any) -> Any:
    """For noise that is added."""
    return first - second


def ratio(first: Any, second: Any) -> Any:
    """For gammas and shares."""
    return np.log(np.maximum(first, 1e-300) / np.maximum(second, 1e-300))


def _releases(effort: Effort) -> list[Row]:
    schema, table = pairs(effort.pairs)
    rows = []
    for mechanism, target in (("gaussian", LOOSE), ("laplace", PureDP(epsilon=2.0)), ("dirichlet", LOOSE)):
        [found] = published(Curator(table, schema), Tables("cell", mechanism=mechanism), target).tables
        score = ratio if found.kind == "gammas" else difference
        rows.append(_judged(f"release.json, {mechanism}: values", found.values, target, score))
        estimates = found.products["counts"].values
        rows.append(_judged(f"release.json, {mechanism}: estimates", estimates, target, difference))
    return rows


def _models(effort: Effort) -> list[Row]:
    """A model that is published as a release, and synthetic records drawn from it."""
    schema, table = pairs(effort.pairs)
    release = published(Curator(table, schema), Histogram(attributes=("cell",)), LOOSE)
    model = release.model()
    shares = model.shares.ravel()
    records = model.sample(50 * effort.pairs, np.random.default_rng(), even=True)["cell"]
    counted = np.bincount(records, minlength=len(shares))
    return [
        _judged("release.json, model: values", release.tables[0].values, LOOSE, difference),
        _judged("model: shares", shares, LOOSE, difference),
        _judged("synthetic records: counts of cells", counted, LOOSE, difference),
    ]


def _wide(effort: Effort) -> list[Row]:
    """Every answer of a wide distribution, under both of its laws."""
    schema, table = pairs(effort.pairs)
    rows = []
    for law in ("cells", "splits"):
        answers = _answers(Curator(table, schema), ("cell",), law)
        rows.append(_judged(f"release.json, wide answers, law {law}", answers, LOOSE, ratio))
    return [*rows, _two_axes(effort)]


def _answers(curator: Curator, names: tuple[str, ...], law: str = "splits") -> Any:
    """The table of these attributes, asked of a wide distribution and read from the file of the answer."""
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "pairs.wide"
        curator.release(Wide(marginal=",".join(names), state=str(state), law=law), LOOSE)
        WideDistribution.load(state).answer(names).save(Path(folder) / "answer")
        [found] = Release.load(Path(folder) / "answer").tables
    return found.values


def _two_axes(effort: Effort) -> Row:
    """A record moves along both axes of a domain: the loss is that of both splits together."""
    number = effort.pairs
    schema, table = pairs(number)
    side = Attribute(name="side", categories=("x", "y"), unknown="drop", missing="drop")
    schema = replace(schema, attributes=(*schema.attributes, side))
    sides = ["x" if pair < number // 2 else "y" for pair in range(number)]
    curator = Curator(table.append_column("side", pa.array(sides)), schema)
    answers = _answers(curator, ("cell", "side"))
    answers = answers.reshape(2 * number + 1, -1)[: 2 * number].reshape(number, 2, -1)
    rows = answers.sum(axis=2)
    inside = answers / rows[:, :, None]
    loss = np.log(rows[:, 0] / rows[:, 1]) + np.log(inside[:, 0, 0]) - np.log(inside[:, 1, 1])
    return from_evidence(AREA, "release.json, wide answers, two axes", distinguish(*_halves(loss), [claim(LOOSE)]))


def _posterior(effort: Effort) -> Row:
    """The parameters of a posterior: every trial is a release of its own, read from its JSON text."""
    column = Attribute(name="cell", categories=("a", "b"), unknown="drop", missing="drop")
    schema = Schema(id="pairs", unit=REPLACE, attributes=(column,), records=6)
    asked, target = PosteriorTable(marginal="cell"), PureDP(epsilon=2.0)
    scores = []
    for cells in ("aaabbb", "aabbbb"):
        curator = Curator(pa.table({"cell": list(cells)}), schema)
        plan = curator.plan(asked, target)
        texts = [curator.release(plan, estimates=False).to_json() for _ in range(effort.releases)]
        scores.append([Release.from_json(text).tables[0].values[0] for text in texts])
    return from_evidence(AREA, "release.json, posterior: parameters", distinguish(*scores, [claim(target)]))


def _released_records(effort: Effort) -> list[Row]:
    """Pseudo-records are drawn together, so every trial is a release of its own."""
    if not effort.thorough:
        return []
    column = Attribute(name="cell", categories=("a", "b", "c"), unknown="drop", missing="drop")
    schema = Schema(id="pairs", unit=REPLACE, attributes=(column,))
    asked = Tables("cell", product="records", pseudo_records=20)
    scores = []
    for cell in "ab":
        curator = Curator(pa.table({"cell": [cell]}), schema)
        plan = curator.plan(asked, LOOSE)
        releases = [Release.from_json(curator.release(plan, estimates=False).to_json()) for _ in range(effort.releases)]
        made: Any = releases[0].paid[0].mechanism
        parameters = {"weight": made.weight, "alpha": made.concentration}
        scores.append([urn_loss(release.tables[0].values.tolist(), **parameters) for release in releases])
    return [from_evidence(AREA, "release.json, pseudo-records", distinguish(*scores, [claim(LOOSE)]))]


def _number_of_people() -> Row:
    """Replace a person by rows that name nobody: nothing outside the noise may change."""
    column = Attribute(name="cell", categories=("a", "b"), unknown="drop", missing="drop")
    schema = Schema(id="pairs", unit=REPLACE, attributes=(column,), person="person")
    asked = Tables("cell", mechanism="laplace")
    seen: list[Any] = []
    for last in ("p3", None):
        table = pa.table({"cell": ["a", "b", "b"], "person": pa.array(["p1", "p2", last])})
        try:
            release = published(Curator(table, schema), asked, PureDP(epsilon=1.0))
            seen.append((release.records, [str(each.marginal) for each in release.tables], release.tables[0].notes))
        except DpbayesError as problem:
            seen.append(("refused", str(problem)))
    same = seen[0] == seen[1]
    return Row(
        area=AREA,
        attack="release.json, replace-one with a person column: the number of records",
        claim="the same for neighbours",
        measured="the same" if same else "tells whether a person has an id",
        holds=same,
    )
