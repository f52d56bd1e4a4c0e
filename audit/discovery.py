"""Private choices: does a text that only one person has appear, which edge and which temperature is chosen?"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from audit.bounds import distinguish
from audit.command import dpbayes
from audit.result import Effort, Row, from_betrayals, from_evidence
from dpbayes import Attribute, Curator, Edges, NaiveBayes, PureDP, Release, Schema, Unit, load
from dpbayes.jobs import Quantiles
from dpbayes.jobs.edges import selection_for
from dpbayes.jobs.model import choose_temperature
from dpbayes.tables.engine import CodedTable

AREA = "discovery"

ASKED = (
    (8.0, 1e-3, "add-remove", 1),
    (5.0, 1e-3, "add-remove", 1),
    (2.0, 1e-2, "replace-one", 1),
    (8.0, 1e-3, "replace-one", 3),
    (20.0, 1e-3, "replace-one", 1),
    (20.0, 1e-6, "add-remove", 3),
    (1.0, 1e-2, "add-remove", 1),
    (0.1, 1e-2, "add-remove", 1),
)


def run(effort: Effort) -> list[Row]:
    """Categories through the real command, edges through the real draw."""
    asked = ASKED if effort.thorough else ASKED[:3]
    rows = [_lone_texts(effort, *each, spread=spread) for each in asked for spread in ([False, True][: each[3]])]
    return [*rows, _edges(effort), _temperature(effort)]


def _lone_texts(effort: Effort, epsilon: float, delta: float, adjacency: str, max_rows: int, *, spread: bool) -> Row:
    """Many people with texts that nobody else has. Each is a trial: without that person the text cannot appear.

    A person's rows all have the same text, or (``spread``) a text for each row.
    """
    people = 5 * effort.pairs
    texts = [f"{person}-{row if spread else 0}" for person in range(people) for row in range(max_rows)]
    with tempfile.TemporaryDirectory() as folder:
        path, schema = Path(folder) / "people.csv", Path(folder) / "people.toml"
        csv.write_csv(pa.table({"text": texts}), path)
        unit = Unit(adjacency=adjacency, max_rows=max_rows)
        declared = Schema(
            id="people", unit=unit, attributes=(Attribute(name="text", categories=("?",), missing="other"),)
        )
        schema.write_text(declared.to_toml(), encoding="utf-8")
        asked = ["--as", "categories", "--epsilon", epsilon, "--delta", delta, "--schema", schema, "--ledger", "none"]
        done = dpbayes("release", path, "text", *asked, "--out", Path(folder) / "published")
        published = None if done.code else load(Path(folder) / "published")
    what = f"ε = {epsilon:g}, δ = {delta:g}, {adjacency}" + (f", {max_rows} rows" if max_rows > 1 else "")
    attack = f"a text of one person appears ({what}{', all different' if spread and max_rows > 1 else ''})"
    if published is None:
        return Row(area=AREA, attack=attack, claim="published or refused", measured="refused", holds=True)
    [found] = published.answers
    stated = published.cost.delta(epsilon)
    betrayed = len({str(text).partition("-")[0] for text in found.values})
    return from_betrayals(AREA, attack, betrayed, people, stated)


def _edges(effort: Effort) -> Row:
    """One record moves from the bottom to the top, and the median with it from the lower half to the upper."""
    asked = Edges(column="value", quantiles=Quantiles(lower=0.0, upper=1.0, bins=2, candidates=5))
    number = Attribute(name="value", edges=(0.0, 1.0), missing="other")
    schema = Schema(id="edges", unit=Unit(adjacency="replace-one"), attributes=(number,))
    goal, draws = PureDP(epsilon=2.0), min(effort.draws // 20, 4_000)
    scores = []
    for values in ([-1.0, 0.6], [2.0, 0.6]):
        curator = Curator(CodedTable({"value": np.array(values)}), schema)
        texts = [curator.release(asked, goal).to_json() for _ in range(draws)]
        scores.append([Release.from_json(text).answers[0].values[1] for text in texts])
    return from_evidence(AREA, "which edge is chosen", distinguish(*scores, [(2.0, 0.0)]))


def _temperature(effort: Effort) -> Row:
    """How far a model may trust itself, chosen from one record that the model gets right, or wrong."""
    unit = Unit(adjacency="replace-one")
    names = {"x": ("a", "b"), "y": ("c", "d")}
    schema = Schema(
        id="temperature",
        unit=unit,
        attributes=tuple(
            Attribute(name=name, categories=levels, unknown="drop", missing="drop") for name, levels in names.items()
        ),
    )
    rows = pa.table({"x": ["a", "b"] * 500, "y": ["c", "d"] * 500})
    model = Curator(rows, schema, seed=1).release(NaiveBayes(target="y"), PureDP(epsilon=50.0)).model()
    selection = selection_for(PureDP(epsilon=2.0), unit)
    draws = min(effort.draws // 5, 20_000)
    people = [CodedTable({"x": np.array(["a"]), "y": np.array([label])}) for label in names["y"]]
    scores = [[choose_temperature(model, table, selection) for _ in range(draws)] for table in people]
    evidence = distinguish(*scores, [(selection.renyi(math.inf), 0.0)])
    return from_evidence(AREA, "which temperature is chosen", evidence)
