"""The request of a draft: a plain file, the same that ``dpbayes release -r`` takes."""

from __future__ import annotations

from dpbayes.base.errors import DpbayesError
from dpbayes.jobs.request import Request
from dpbayes.privacy.guarantee import ApproxDP, Guarantee, PureDP
from dpbayes.studio.desk import Desk, command
from dpbayes.studio.drafts import Draft

FIRST = ApproxDP(epsilon=1.0, delta=1e-6)
"""What is proposed where no ledger says otherwise."""


def file_name(draft: Draft) -> str:
    """Where the request of a draft is, from the start folder."""
    return f"{draft.name}.request.toml"


def load(desk: Desk, draft: Draft) -> Request:
    """The request so far."""
    path = desk.folder.start / file_name(draft)
    if path.is_file() and not path.is_symlink():
        found = Request.load(path)
        return found if found.target is not None else found.with_changes(target=_first(desk, draft))
    return Request(target=_first(desk, draft))


def save(desk: Desk, draft: Draft, request: Request) -> None:
    """Keep it."""
    request.save(desk.folder.start / file_name(draft))


def _first(desk: Desk, draft: Draft) -> Guarantee:
    """Half of the limit, in the notion of the ledger, or what is left if that is less."""
    try:
        account = desk.account(draft)
    except DpbayesError:
        return FIRST
    if account is None:
        return FIRST
    half = min(account.limit / 2, account.left()) or account.limit / 2
    epsilon = float(f"{half:.2g}") if half >= 0.01 else half
    delta = getattr(account.budget, "delta", None)
    if hasattr(account.budget, "rho"):
        return FIRST
    return PureDP(epsilon=epsilon) if delta is None else ApproxDP(epsilon=epsilon, delta=delta)


def out_folder(desk: Desk, draft: Draft) -> str:
    """A new folder for the release."""
    number = 1
    while (desk.folder.start / "published" / f"{draft.name}-{number}").exists():
        number += 1
    return f"published/{draft.name}-{number}"


def commands(draft: Draft, *, out: str = "", dry: bool = False) -> tuple[str, ...]:
    """The release, or its dry run, on the command line."""
    words = ["dpbayes", "plan" if dry else "release", draft.table or draft.schema, "-r", file_name(draft)]
    words += ["--schema", draft.schema, "--ledger", draft.ledger or "none", *(["--out", out] if out else [])]
    first = [] if draft.ledger or not dry else [command(*_opening(draft))]
    return (*first, command(*words))


def _opening(draft: Draft) -> list[str]:
    limit = ["--epsilon", "2", "--delta", "1e-6"]
    return ["dpbayes", "ledger", "init", draft.schema, "--ledger", f"{draft.name}.ledger", *limit]
