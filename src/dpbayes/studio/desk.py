"""What every page works with: the folder, the drafts with their requests, the session, and one way to show a page.

The request of a draft is a plain file, the same that ``dpbayes release -r`` takes.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dpbayes.base.display import listed, plural
from dpbayes.base.errors import DpbayesError
from dpbayes.jobs.request import Request
from dpbayes.ledger.account import Account
from dpbayes.plot.canvas import gauge
from dpbayes.privacy.guarantee import ApproxDP, Guarantee, PureDP
from dpbayes.privacy.risk import percent
from dpbayes.schema.marginal import Marginal
from dpbayes.studio.drafts import Draft, Drafts
from dpbayes.studio.folder import Folder
from dpbayes.studio.safety import Session
from dpbayes.studio.work import Work
from dpbayes.words import budget
from dpbayes.words.promise import warning, whom
from dpbayes.words.report import VERDICTS, title
from dpbayes.words.view import plus

FIRST = ApproxDP(epsilon=1.0, delta=1e-6)
"""What is proposed where no ledger says otherwise."""

STEPS = {
    "table": "Table and people",
    "declare": "Declare",
    "ask": "Ask",
    "risk": "Risk",
    "preview": "Preview",
    "review": "Review and release",
}
"""The way from a table to a publication."""

SAID = {
    "budget": budget,
    "gauge": gauge,
    "listed": listed,
    "percent": percent,
    "plural": plural,
    "plus": plus,
    "table_title": title,
    "verdicts": VERDICTS,
    "warning": warning,
    "whom": whom,
}
"""What templates say and draw; they have no words of their own for it."""


@dataclass
class Desk:
    """One studio: a start folder, and who may use it."""

    folder: Folder
    session: Session | None
    """None where readers are served: nothing can be changed."""

    def __post_init__(self) -> None:
        self.drafts = Drafts(self.folder)
        self.work = Work(self.drafts.state)

    @property
    def public(self) -> bool:
        """Whether it serves readers."""
        return self.session is None

    def account(self, draft: Draft) -> Account | None:
        """What the ledger of a draft says; None before there is one."""
        if not draft.ledger or not draft.id:
            return None
        from dpbayes.ledger.ledger import Ledger

        where = self.folder.ledger(draft.ledger)
        if "://" not in where and not Path(where).is_file():
            return None
        ledger = Ledger(where)
        return ledger.standing(draft.id) if draft.id in ledger.datasets() else None

    def request(self, draft: Draft) -> Request:
        """The request of a draft so far."""
        path = self.folder.start / _request_file(draft)
        found = Request.load(path) if path.is_file() and not path.is_symlink() else Request()
        return found if found.target is not None else found.with_changes(target=self._first_target(draft))

    def keep(self, draft: Draft, request: Request) -> None:
        """Write the request of a draft."""
        request.save(self.folder.start / _request_file(draft))

    def _first_target(self, draft: Draft) -> Guarantee:
        """Half of the limit, in the notion of the ledger, or what is left if that is less."""
        try:
            account = self.account(draft)
        except DpbayesError:
            return FIRST
        if account is None or hasattr(account.budget, "rho"):
            return FIRST
        half = min(account.budget.size / 2, account.left()) or account.budget.size / 2
        epsilon = float(f"{half:.2g}") if half >= 0.01 else half
        delta = getattr(account.budget, "delta", None)
        return PureDP(epsilon=epsilon) if delta is None else ApproxDP(epsilon=epsilon, delta=delta)

    def out_folder(self, draft: Draft) -> str:
        """A new folder for the release."""
        number = 1
        while (self.folder.start / "published" / f"{draft.name}-{number}").exists():
            number += 1
        return f"published/{draft.name}-{number}"


class Form:
    """A form that was sent; the guard has checked where it came from."""

    def __init__(self, values: Mapping[str, list[str]]) -> None:
        self._values = values

    def text(self, name: str, default: str = "") -> str:
        """The last value of a field."""
        return self._values.get(name, [default])[-1].strip()

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def texts(self, name: str) -> list[str]:
        """All values of a field."""
        return [value.strip() for value in self._values.get(name, []) if value.strip()]


def desk_of(request: HttpRequest) -> Desk:
    """The desk of a request."""
    return cast(Desk, request.app.state.desk)


def form_of(request: HttpRequest) -> Form:
    """The form of a request."""
    return Form(request.scope.get("form", {}))


def draft_of(request: HttpRequest) -> Draft:
    """The draft that an address names."""
    return desk_of(request).drafts.load(request.path_params["name"])


def command(*words: str) -> str:
    """A command line that a shell reads as meant.

    >>> command("dpbayes", "release", "my table.csv", "income|sex")
    "dpbayes release 'my table.csv' 'income|sex'"
    """
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    """A word in double quotes where that reads better, as in a question with single ones."""
    return f'"{word}"' if "'" in word and not set(word) & set('"$`\\\\!') else shlex.quote(word)


def _request_file(draft: Draft) -> str:
    return f"{draft.name}.request.toml"


def release_commands(draft: Draft, *, out: str = "", dry: bool = False) -> tuple[str, ...]:
    """The release, or its dry run, on the command line."""
    words = ["dpbayes", "plan" if dry else "release", draft.table or draft.schema, "-r", _request_file(draft)]
    words += ["--schema", draft.schema, "--ledger", draft.ledger or "none", *(["--out", out] if out else [])]
    first = [] if draft.ledger or not dry else [command(*_opening(draft))]
    return (*first, command(*words))


def _opening(draft: Draft) -> list[str]:
    limit = ["--epsilon", "2", "--delta", "1e-6"]
    return ["dpbayes", "ledger", "init", draft.schema, "--ledger", f"{draft.name}.ledger", *limit]


def to(path: str) -> Response:
    """Go on to another page, with GET."""
    return RedirectResponse(path, status_code=303)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"drawn": Markup, "marginal": Marginal.parse, "number": "{:g}".format, "thousands": "{:,}".format}
    made.globals |= {"steps": STEPS, **SAID}
    return made


def page(request: HttpRequest, template: str, *, status: int = 0, step: str = "", **context: Any) -> HTMLResponse:
    """A page, with what all pages show. A page of a step has its title, and one that tells a problem its status."""
    desk = desk_of(request)
    draft: Draft | None = context.setdefault("draft", None)

    def csrf(*actions: str) -> Markup:  # the hidden fields of a form that is sent to these paths
        tokens = [] if desk.session is None else [desk.session.form_token(action) for action in actions]
        return Markup("").join(Markup('<input type="hidden" name="csrf" value="{}">').format(each) for each in tokens)

    everywhere: dict[str, Any] = {
        "desk": desk,
        "path": request.url.path,
        "problem": "",
        "commands": (),
        "title": STEPS.get(step, "dpbayes studio"),
        "step": step,
        "csrf": csrf,
        "strip": _strip(desk, draft),
    }
    status = status or (422 if context.get("problem") else 200)
    return HTMLResponse(_environment().get_template(template).render({**everywhere, **context}), status_code=status)


def _strip(desk: Desk, draft: Draft | None) -> dict[str, Any] | None:
    """The promise, always in sight: whom it protects, and what the ledger still allows."""
    if draft is None or not draft.adjacency:
        return None
    try:
        account, trouble = desk.account(draft), ""
    except DpbayesError as problem:
        account, trouble = None, str(problem)
    return {"unit": whom(draft.unit()), "account": account, "trouble": trouble}
