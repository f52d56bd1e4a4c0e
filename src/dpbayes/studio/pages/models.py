"""Models: what can be built from published tables. Free."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
from starlette.datastructures import QueryParams
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from dpbayes.base import checks
from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.models.base import Model, ModelSpec, built
from dpbayes.models.base import Published as Tables
from dpbayes.models.bayes_net import BayesNet
from dpbayes.models.naive_bayes import NaiveBayes, NaiveBayesModel
from dpbayes.models.synthetic import synthetic_table
from dpbayes.plot.pictures import network_picture
from dpbayes.schema.marginal import Marginal
from dpbayes.studio.desk import command, page
from dpbayes.studio.pages.explain import Published, chosen
from dpbayes.studio.safety import attachment

MOST_ROWS = 100_000
MOST_NODES = 60
"""A larger network is listed, and not drawn."""


def show(http: HttpRequest) -> Response:
    """A model, drawn, and what it predicts."""
    published, found = chosen(http)
    query, problem = http.query_params, ""
    context: dict[str, Any] = {"model": None, "drawn": None, "tables": [], "prediction": [], "spec": None, "inputs": []}
    if published is not None:
        try:
            context |= _context(published, query) | {"commands": _commands(published, query)}
        except DpbayesError as met:
            problem = str(met)
    return page(
        http,
        "models.html",
        status=422 if problem else 200,
        title="Models",
        problem=problem,
        published=published,
        others=[each for each in found if published is None or each != published.id],
        query=query,
        kind=query.get("kind", "network"),
        targets=[] if published is None else _targets(published),
        most=MOST_ROWS,
        **context,
    )


def _context(published: Published, query: QueryParams) -> dict[str, Any]:
    model = build(published, query)
    shown = model.network
    tables = [(node, above, shown.tables[node].size) for node, above in shown.parents.items()]
    small = len(shown.parents) <= MOST_NODES
    drawn = network_picture(shown, f"{model.kind} of {published.id}").svg if small else None
    found: dict[str, Any] = {"model": model, "drawn": drawn, "tables": tables}
    if isinstance(model, NaiveBayesModel):
        schema = model.published.schema
        found["inputs"] = [(name, schema[name].levels) for name in model.features]
        said = {name: query.get(f"x.{name}", "") for name in model.features}
        given = {name: [level] for name, level in said.items() if level in schema[name].levels}
        if given:
            found["prediction"] = _prediction(model, given)
    return found


def _prediction(model: NaiveBayesModel, given: dict[str, list[str]]) -> list[tuple[str, float]]:
    """Shares of the classes for what is said; attributes that are left out say nothing."""
    schema = model.published.schema
    scores = model.class_log_prior[: len(model.classes)].copy()
    for name, table in zip(model.features, model.feature_log_prob, strict=True):
        if name in given:
            scores += model.temperature * table[: len(model.classes), schema[name].levels.index(given[name][0])]
    shares = np.exp(scores - scores.max())
    return list(zip(model.classes, (shares / shares.sum()).tolist(), strict=True))


def build(published: Published, query: QueryParams) -> Model:
    """The model that an address names; by default a network over everything published."""
    if published.releases[0].kind == "model" and not query.get("kind"):
        return built(published.releases[:1])
    return specification(published, query).build(list(published.releases))


def specification(published: Published, query: QueryParams) -> ModelSpec[Model]:
    """Naive Bayes of one attribute, or a network: as written, or a tree over the published pairs."""
    if query.get("kind") == "naive-bayes":
        target = query.get("target", "") or next(iter(_targets(published)), "")
        if not target:
            raise InvalidArgument("NaiveBayes: no published table has two attributes. Release one first.")
        return NaiveBayes(target=target)
    lines = [line for line in query.get("edges", "").splitlines() if line.strip()]
    if lines:
        edges = [tuple(part.strip() for part in line.replace("→", "->").split("->")) for line in lines]
        if any(len(edge) != 2 for edge in edges):
            raise InvalidArgument("BayesNet: expected one edge per line, as in sex -> income.")
        return BayesNet(edges=tuple(edges))
    return tree(published)


def tree(published: Published) -> BayesNet:
    """A network that the published pairs support: each attribute hangs below one that came before it."""
    pairs = _pairs(published)
    names = [n for n in published.releases[0].schema.names if any(n in t.names for t in _marginals(published))]
    edges: list[tuple[str, str]] = []
    seen: set[str] = set()
    for root in sorted(names, key=lambda name: -sum(name in pair for pair in pairs)):
        queue = [root] if root not in seen else []
        seen.update(queue)
        while queue:
            node = queue.pop(0)
            for other in names:
                if other not in seen and frozenset((node, other)) in pairs:
                    seen.add(other)
                    queue.append(other)
                    edges.append((node, other))
    linked = {name for edge in edges for name in edge}
    return BayesNet(edges=tuple(edges), nodes=tuple(name for name in names if name not in linked))


def _marginals(published: Published) -> list[Marginal]:
    tables = Tables.of(list(published.releases)).tables
    return [table.marginal for table in tables]


def _pairs(published: Published) -> set[frozenset[str]]:
    """The pairs of attributes that some table has."""
    return {
        frozenset((one, other))
        for each in _marginals(published)
        for one in each.names
        for other in each.names
        if one != other
    }


def _targets(published: Published) -> list[str]:
    """The attributes that are published with another one."""
    paired = {name for pair in _pairs(published) for name in pair}
    return [name for name in published.releases[0].schema.names if name in paired]


def _commands(published: Published, query: QueryParams) -> tuple[str, ...]:
    if published.releases[0].kind == "model" and not query.get("kind"):
        return (command("dpbayes", "show", published.folders[0]),)
    if query.get("kind") == "naive-bayes":
        target = query.get("target", "") or next(iter(_targets(published)), "ATTRIBUTE")
        return (command("dpbayes", "build", "naive-bayes", *published.folders, "--target", target),)
    spec = specification(published, query)
    graph = json.dumps({"nodes": spec.nodes, "edges": spec.edges}, ensure_ascii=False)  # type: ignore[attr-defined]
    return (
        command("printf", "%s", graph) + " > edges.json",
        command("dpbayes", "build", "bayes-net", *published.folders, "--graph", "edges.json"),
    )


def synthetic(http: HttpRequest) -> Response:
    """Made-up records that follow the model."""
    published, _ = chosen(http)
    if published is None:
        raise InvalidArgument("studio: nothing is published in this folder yet.")
    text = http.query_params.get("rows", "1000")
    many = checks.whole("synthetic", "records", text)
    if many > MOST_ROWS:
        raise InvalidArgument(f"synthetic: expected a number of records from 1 to {MOST_ROWS:,}.")
    table = synthetic_table(build(published, http.query_params), many)
    return Response(_csv(table), media_type="text/csv; charset=utf-8", headers=attachment("synthetic.csv"))


def _csv(table: Any) -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    columns = [each.cast(pa.string()) if pa.types.is_dictionary(each.type) else each for each in table.itercolumns()]
    kept = io.BytesIO()
    csv.write_csv(pa.table(columns, names=table.column_names), kept)
    return kept.getvalue()


ROUTES = [Route("/models", show, methods=["GET"]), Route("/models/synthetic.csv", synthetic, methods=["GET"])]
