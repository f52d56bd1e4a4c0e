"""Explain: what published numbers mean, and any sum, ratio or difference of them with its interval. Free."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.inference.ask import Reply
from dpbayes.plot.pictures import interval_picture
from dpbayes.release.estimates import NOISY, Posterior
from dpbayes.release.format import Release
from dpbayes.studio.desk import Desk, command, desk_of, page

SIGNS = {"minus": "-", "plus": "+", "over": "/"}
LONGEST = 2_000
MOST_LEVELS = 2_000
"""Choices that a list offers; a longer one is no help, and questions can be typed."""


@dataclass(frozen=True, slots=True)
class Published:
    """All releases of one data set that can be read together."""

    id: str
    folders: tuple[str, ...]
    releases: tuple[Release, ...]

    @property
    def tables(self) -> list[str]:
        """The tables in them, each once."""
        return list(dict.fromkeys(str(table.marginal) for each in self.releases for table in each.tables))

    def posterior(self) -> Posterior:
        """What they say together."""
        return Posterior(self.releases)


def together(desk: Desk) -> dict[str, Published]:
    """The data sets with published tables; releases under other declarations than the latest stand back."""
    found: dict[str, Published] = {}
    for name, release in desk.folder.releases().items():
        if not any(table.kind in NOISY for table in release.tables):
            continue
        key = release.dataset if not release.seeded else f"{release.dataset} (seeded, not private)"
        before = found.get(key)
        if before is None:
            found[key] = Published(key, (name,), (release,))
        elif _same(before.releases[0], release) and release.digest() not in {r.digest() for r in before.releases}:
            found[key] = Published(key, (*before.folders, name), (*before.releases, release))
    return found


def _same(one: Release, other: Release) -> bool:
    return one.unit == other.unit and one.schema.attributes == other.schema.attributes


def chosen(http: HttpRequest) -> tuple[Published | None, dict[str, Published]]:
    """The data set that an address names: by its id, or by the folder of one of its releases; else the first."""
    found = together(desk_of(http))
    folder, asked = http.query_params.get("at", ""), http.query_params.get("of", "")
    for each in found.values():
        if each.id == asked or (folder and folder in each.folders):
            return each, found
    if asked or folder:
        raise InvalidArgument("studio: there are no published tables of this data set in the folder.")
    return next(iter(found.values()), None), found


def show(http: HttpRequest) -> Response:
    """The page for readers."""
    published, found = chosen(http)
    query, problem = http.query_params, ""
    question, answer = "", None
    if published is not None:
        try:
            question = built(query) if query.get("a") else query.get("ask", "").strip()
            if len(question) > LONGEST:
                raise InvalidArgument(f"ask: expected at most {LONGEST:,} characters.")
            answer = published.posterior().ask(question) if question else None
        except DpbayesError as met:
            problem = str(met)
    folders = published.folders if published else ()
    return page(
        http,
        "explain.html",
        status=422 if problem else 200,
        title="Explain",
        problem=problem,
        published=published,
        others=[each for each in found if published is None or each != published.id],
        question=question,
        answer=None if answer is None else _shown(answer),
        conditions=_conditions(published),
        query=query,
        commands=(command("dpbayes", "estimate", *folders, *(["--ask", question] if question else [])),)
        if folders
        else (),
    )


def built(query: QueryParams) -> str:
    """The question that the lists spell."""
    first = _part(query, "a")
    sign = SIGNS.get(query.get("sign", ""))
    return first if sign is None else f"{first} {sign} {_part(query, 'b')}"


def _part(query: QueryParams, which: str) -> str:
    kind = "count" if query.get("kind") == "count" else "share"
    of, among = query.get(which, ""), query.get(f"{which}-among", "")
    if not of:
        raise InvalidArgument("ask: choose what to compare with.")
    if kind == "count":
        return f"count({', '.join(each for each in (of, among) if each)})"
    return f"share({of} | {among})" if among else f"share({of})"


def _conditions(published: Published | None) -> list[tuple[str, list[tuple[str, str]]]]:
    """For each attribute that is published, its levels as conditions of a question."""
    if published is None:
        return []
    names = {name for each in published.releases for table in each.tables for name in table.marginal.names}
    groups, offered = [], 0
    for attribute in published.releases[0].schema.attributes:
        if attribute.name in names:
            offered += len(attribute.levels)
            if offered > MOST_LEVELS:
                break
            groups.append(
                (attribute.name, [(f"{_named(attribute.name)}={_quoted(level)}", level) for level in attribute.levels])
            )
    return groups


def _named(name: str) -> str:
    """A name as questions write it: in quotes only where it must be."""
    plain = re.fullmatch(r"[^\W\d]\w*", name) and name not in ("in", "count", "share")
    return name if plain else _quoted(name)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _shown(answer: Reply) -> dict[str, Any]:
    """An answer with as many digits as its interval supports: shares in percent, their differences in points."""
    bare = re.sub(r"'(?:[^']|'')*'", "", answer.question)
    share = "share(" in bare and "count(" not in bare and "/" not in bare
    factor, sign = (100.0, " points" if "-" in bare else " %") if share else (1.0, "")
    width = factor * (answer.upper - answer.lower) / 2.0
    digits = min(max(1 - math.floor(math.log10(width)), 0), 6) if width > 0 else 2

    def said(value: float) -> str:
        return f"{factor * value:,.{digits}f}"

    return {
        "estimate": said(answer.estimate),
        "lower": said(answer.lower),
        "upper": said(answer.upper),
        "sign": sign,
        "level": f"{100 * answer.level:g}",
        "drawing": interval_picture(answer.lower, answer.upper, answer.estimate, answer.question).svg,
        "zero": "-" in bare and answer.lower <= 0.0 <= answer.upper,
    }


ROUTES = [Route("/explain", show, methods=["GET"])]
