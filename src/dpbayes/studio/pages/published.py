"""A release on its own page: verified, with its report and its files. For readers too."""

from __future__ import annotations

from starlette.requests import Request as HttpRequest
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from dpbayes.base.errors import DpbayesError, InvalidArgument
from dpbayes.release.format import Release
from dpbayes.release.verify import Verification, verify
from dpbayes.report.page import report_html
from dpbayes.studio.desk import Desk, command, desk_of, page
from dpbayes.studio.pages.preview import framed
from dpbayes.studio.safety import attachment


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
    return page(
        http,
        "published.html",
        title=release.about.get("title") or release.dataset,
        at=name,
        release=release,
        checked=checked,
        ledger=ledger,
        replaced=_replaced(desk, release),
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


def _replaced(desk: Desk, release: Release) -> tuple[str, str] | None:
    """The newer release that says it replaces this one."""
    for name, other in desk.folder.releases().items():
        said = other.about.get("supersedes", "")
        if said and other.dataset == release.dataset and release.digest().startswith(said):
            return name, other.about.get("title") or name
    return None


def report(http: HttpRequest) -> Response:
    """The report, made anew from the numbers."""
    return framed(report_html(at(http)[1]))


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


ROUTES = [
    Route("/release", show, methods=["GET"]),
    Route("/release/report", report, methods=["GET"]),
    Route("/release/file", file, methods=["GET"]),
]

HOME = [Route("/", home, methods=["GET"])]
