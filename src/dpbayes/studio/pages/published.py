"""What readers see: each release, verified, with its report and files; and what published numbers mean. Free."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request as HttpRequest
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.inference.ask import Reply
from dpbayes.plot.pictures import interval_picture
from dpbayes.release.estimates import NOISY, Posterior, standing
from dpbayes.release.format import Release
from dpbayes.release.verify import Verification, verify
from dpbayes.report.page import report_html
from dpbayes.studio.desk import Desk, command, desk_of, page
from dpbayes.studio.safety import attachment

REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox"
"""A report brings its own style and needs nothing else; it may be shown inside the studio's pages only."""


SIGNS = {"minus": "-", "plus": "+", "over": "/"}


def at(http: HttpRequest) -> tuple[str, Release]:
    """The release that an address names, among those of the folder."""
    name = http.query_params.get("at", "")
    return name, desk_of(http).folder.release(name)


def show(http: HttpRequest) -> Response:
    """What it is, whether it holds, and where its files are."""
    desk = desk_of(http)
    name, release = at(http)
    ledger = _ledger(desk, release)
    checked: Verification = verify(
        release, ledger=desk.folder.ledger(ledger) if ledger else None, folder=desk.folder.inside(name)
    )
    words = ["dpbayes", "verify", name, *(["--ledger", ledger] if ledger else [])]
    newer = None  # the release that says it replaces this one
    for other_name, other in desk.folder.releases().items():
        said = other.about.get("supersedes", "")
        if said and newer is None and other.dataset == release.dataset and release.digest().startswith(said):
            newer = other_name, other.about.get("title") or other_name
    return page(
        http,
        "published.html",
        title=release.about.get("title") or release.dataset,
        at=name,
        release=release,
        checked=checked,
        ledger=ledger,
        replaced=newer,
        commands=(command(*words),),
    )


def _ledger(desk: Desk, release: Release) -> str:
    """The ledger in the folder that was charged for it; readers have none."""
    if desk.public or not release.lock:
        return ""
    from dpbayes.ledger.ledger import Ledger

    for name in desk.folder.ledgers():
        try:
            ledger = Ledger(desk.folder.ledger(name))
            if release.dataset in ledger.datasets():
                charges = ledger.account(release.dataset).charges.values()
                if any(charge.lock == release.lock for charge in charges):
                    return name
        except DpbayesError:
            continue
    return ""


def report(http: HttpRequest) -> Response:
    """The report, made anew from the numbers."""
    return in_frame(report_html(at(http)[1]))


def in_frame(html: str) -> Response:
    """A report for a frame of the studio."""
    return HTMLResponse(html, headers={"Content-Security-Policy": REPORT_POLICY})


def file(http: HttpRequest) -> Response:
    """One of the files that belong to a release."""
    name, release = at(http)
    wanted = http.query_params.get("name", "")
    if wanted not in ("release.json", *release.files):
        raise InvalidArgument("studio: this release has no such file.")
    path = desk_of(http).folder.inside(f"{name}/{wanted}")
    if not path.is_file():
        raise InvalidArgument("studio: this file of the release is missing.")
    return FileResponse(path, headers=attachment(wanted), media_type="application/octet-stream")


def home(http: HttpRequest) -> Response:
    """The first page for readers: what is published."""
    releases = desk_of(http).folder.releases()
    return page(http, "releases.html", title="Releases", releases=releases)


@dataclass(frozen=True, slots=True)
class Collection:
    """All releases of one data set that can be read together."""

    id: str
    folders: tuple[str, ...]
    releases: tuple[Release, ...]

    @property
    def tables(self) -> list[str]:
        """The tables in them, each once."""
        return list(dict.fromkeys(str(table.marginal) for each in self.releases for table in each.tables))


def together(desk: Desk) -> dict[str, Collection]:
    """The data sets with published tables.

    Releases under other declarations than the latest stand back, and so do those that a newer one supersedes.
    """
    found: dict[str, Collection] = {}
    published = desk.folder.releases()
    kept = {release.digest() for release in standing(published.values())}
    for name, release in published.items():
        if release.digest() not in kept or not any(table.kind in NOISY for table in release.tables):
            continue
        key = release.dataset if not release.seeded else f"{release.dataset} (seeded, not private)"
        before = found.get(key)
        if before is None:
            found[key] = Collection(key, (name,), (release,))
        elif _alike(before.releases[0], release) and release.digest() not in {r.digest() for r in before.releases}:
            found[key] = Collection(key, (*before.folders, name), (*before.releases, release))
    return found


def _alike(one: Release, other: Release) -> bool:
    return one.unit == other.unit and one.schema.attributes == other.schema.attributes


def collection_of(http: HttpRequest) -> tuple[Collection | None, list[str]]:
    """The data set that an address names, by its id or the folder of one of its releases, or the first; and others."""
    found = together(desk_of(http))
    folder, asked = http.query_params.get("at", ""), http.query_params.get("of", "")
    for each in found.values():
        if each.id == asked or (folder and folder in each.folders):
            return each, [other for other in found if other != each.id]
    if folder and (newer := found.get(at(http)[1].dataset)) is not None:
        return newer, [other for other in found if other != newer.id]
    if asked or folder:
        raise InvalidArgument("studio: there are no published tables of this data set in the folder.")
    return next(iter(found.values()), None), list(found)[1:]


def explain(http: HttpRequest) -> Response:
    """The page for readers."""
    published, others = collection_of(http)
    query, problem = http.query_params, ""
    question, answer = "", None
    if published is not None:
        try:
            question = question_of(query) if query.get("a") else query.get("ask", "").strip()
            if len(question) > 2_000:
                raise InvalidArgument("ask: expected at most 2,000 characters.")
            answer = Posterior(published.releases).ask(question) if question else None
        except DpbayesError as met:
            problem = str(met)
    folders = published.folders if published else ()
    also = [word for each in folders[1:] for word in ("--also", each)]
    return page(
        http,
        "explain.html",
        title="Explain",
        problem=problem,
        published=published,
        others=others,
        question=question,
        answer=None if answer is None else _answer(answer),
        conditions=_conditions(published),
        query=query,
        commands=(command("dpbayes", "ask", folders[0], *([question] if question else []), *also),) if folders else (),
    )


def question_of(query: QueryParams) -> str:
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


def _conditions(published: Collection | None) -> list[tuple[str, list[tuple[str, str]]]]:
    """For each attribute that is published, its levels as conditions of a question."""
    if published is None:
        return []
    names = {name for each in published.releases for table in each.tables for name in table.marginal.names}
    groups, offered = [], 0
    for attribute in published.releases[0].schema.attributes:
        if attribute.name in names:
            offered += len(attribute.levels)
            if offered > 2_000:  # a longer list is no help, and questions can be typed
                break
            groups.append(
                (attribute.name, [(f"{_name(attribute.name)}={_quoted(level)}", level) for level in attribute.levels])
            )
    return groups


def _name(name: str) -> str:
    """A name as questions write it: in quotes only where it must be."""
    plain = re.fullmatch(r"[^\W\d]\w*", name) and name not in ("in", "count", "share")
    return name if plain else _quoted(name)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _answer(answer: Reply) -> dict[str, Any]:
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


ROUTES = [
    Route("/release", show, methods=["GET"]),
    Route("/release/report", report, methods=["GET"]),
    Route("/release/file", file, methods=["GET"]),
    Route("/explain", explain, methods=["GET"]),
]

HOME = [Route("/", home, methods=["GET"])]
