"""Models: what can be built from published tables. Free."""

from __future__ import annotations

import io
from itertools import combinations
from typing import Any

from pyarrow import csv
from scipy.special import softmax
from starlette.datastructures import QueryParams
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from dpbayes.base import checks
from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.models.bayes_net import BayesNet, directed
from dpbayes.models.model import Model, ModelSpec, Published, built
from dpbayes.models.naive_bayes import NaiveBayes, NaiveBayesModel
from dpbayes.models.synthetic import plain_text, synthetic_table
from dpbayes.plot.pictures import network_picture
from dpbayes.schema.marginal import Marginal
from dpbayes.studio.desk import command, page
from dpbayes.studio.pages.published import Collection, collection_of
from dpbayes.studio.safety import attachment

MOST_ROWS = 100_000
"""Records of one download: it is made in memory, in a second or two."""


def show(http: HttpRequest) -> Response:
    """A model, drawn, and what it predicts."""
    published, others = collection_of(http)
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
        title="Models",
        problem=problem,
        published=published,
        others=others,
        query=query,
        kind=query.get("kind", "network"),
        targets=[] if published is None else _targets(published),
        most=MOST_ROWS,
        **context,
    )


def _context(published: Collection, query: QueryParams) -> dict[str, Any]:
    model = build(published, query)
    shown = model.network
    tables = [(node, above, shown.tables[node].size) for node, above in shown.parents.items()]
    drawn = None  # a larger network is listed
    if len(shown.parents) <= 60:
        drawn = network_picture(shown, f"{model.kind} of {published.id}").svg
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
    return list(zip(model.classes, softmax(scores).tolist(), strict=True))


def build(published: Collection, query: QueryParams) -> Model:
    """The model that an address names; by default a network over everything published."""
    if published.releases[0].kind == "model" and not query.get("kind"):
        return built(published.releases[:1])
    return specification(published, query).build(list(published.releases))


def specification(published: Collection, query: QueryParams) -> ModelSpec[Model]:
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


def tree(published: Collection) -> BayesNet:
    """A network that the published pairs support: each attribute hangs below one that came before it."""
    pairs = _pairs(published)
    names = [n for n in published.releases[0].schema.names if any(n in t.names for t in _marginals(published))]
    near = {name: [other for other in names if frozenset((name, other)) in pairs] for name in names}
    edges = directed(near, sorted(names, key=lambda name: -len(near[name])))
    linked = {name for edge in edges for name in edge}
    return BayesNet(edges=edges, nodes=tuple(name for name in names if name not in linked))


def _marginals(published: Collection) -> list[Marginal]:
    return [table.marginal for table in Published.of(list(published.releases)).tables]


def _pairs(published: Collection) -> set[frozenset[str]]:
    """The pairs of attributes that some table has."""
    return {frozenset(pair) for each in _marginals(published) for pair in combinations(each.names, 2)}


def _targets(published: Collection) -> list[str]:
    """The attributes that are published with another one."""
    paired = {name for pair in _pairs(published) for name in pair}
    return [name for name in published.releases[0].schema.names if name in paired]


def _commands(published: Collection, query: QueryParams) -> tuple[str, ...]:
    if published.releases[0].kind == "model" and not query.get("kind"):
        return (command("dpbayes", "model", published.folders[0]),)
    if query.get("kind") == "naive-bayes":
        target = query.get("target", "") or next(iter(_targets(published)), "ATTRIBUTE")
        return (_built(published, "naive-bayes", str(Marginal((target,)))),)
    spec = specification(published, query)
    edges: Any = spec.edges  # type: ignore[attr-defined]  # a network
    parents = {child: tuple(one for one, other in edges if other == child) for _, child in edges}
    roots = dict.fromkeys((*spec.nodes, *(one for one, _ in edges if one not in parents)))  # type: ignore[attr-defined]
    nodes = [*(Marginal((each,)) for each in roots), *(Marginal((each,), of) for each, of in parents.items())]
    return (_built(published, "network", *map(str, nodes)),)


def _built(published: Collection, kind: str, *tables: str) -> str:
    also = [word for each in published.folders[1:] for word in ("--also", each)]
    return command("dpbayes", "model", published.folders[0], *tables, "--as", kind, *also)


def synthetic(http: HttpRequest) -> Response:
    """Synthetic records that follow the model."""
    published, _ = collection_of(http)
    if published is None:
        raise InvalidArgument("studio: nothing is published in this folder yet.")
    text = http.query_params.get("rows", "1000")
    many = checks.whole("synthetic", "records", text)
    if many > MOST_ROWS:
        raise InvalidArgument(f"synthetic: expected a number of records from 1 to {MOST_ROWS:,}.")
    table = synthetic_table(build(published, http.query_params), many)
    written = io.BytesIO()
    csv.write_csv(plain_text(table), written)
    return Response(written.getvalue(), media_type="text/csv; charset=utf-8", headers=attachment("synthetic.csv"))


ROUTES = [Route("/models", show, methods=["GET"]), Route("/models/synthetic.csv", synthetic, methods=["GET"])]
