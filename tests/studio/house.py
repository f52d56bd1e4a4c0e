"""A studio on a folder, and a browser of few words that has been let in."""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.testclient import TestClient

from dpbayes.example import write_example
from dpbayes.studio.app import studio
from dpbayes.studio.safety import Session, allowed_hosts

PORT = 8765
ORIGIN = f"http://127.0.0.1:{PORT}"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Visitor:
    """Follows links and sends forms as a browser does: with the cookie, the origin and the hidden fields."""

    def __init__(self, start: Path, *, enter: bool = True) -> None:
        self.told: list[str] = []
        self.clock = Clock()
        self.session = Session(ORIGIN, tell=self.told.append, clock=self.clock)
        self.app = studio(start, session=self.session, hosts=allowed_hosts("127.0.0.1", PORT))
        self.desk = self.app.state.desk
        self.client = TestClient(self.app, base_url=ORIGIN, follow_redirects=False, raise_server_exceptions=True)
        if enter:
            answer = self.client.get(self.session.address().removeprefix(ORIGIN))
            assert answer.status_code == 303

    def get(self, path: str, **more: object):
        return self.client.get(path, **more)

    def csrf(self, action: str) -> str:
        return self.session.form_token(action)

    def post(self, action: str, fields: dict[str, object] | None = None, **headers: str):
        sent = {"csrf": self.csrf(action), **(fields or {})}
        return self.client.post(action, data=sent, headers={"origin": ORIGIN, **headers})


def text_of(answer: object) -> str:
    """What a reader sees."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.text)))  # type: ignore[attr-defined]


@cache
def _example() -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        return {path.name: path.read_bytes() for path in write_example(folder)}


def survey(folder: Path) -> Path:
    """The example survey in a folder of its own."""
    (folder / "private").mkdir(parents=True, exist_ok=True)
    for name, content in _example().items():
        (folder / "private" / name).write_bytes(content)
    return folder


ASKED = {"epsilon": "1", "delta": "1e-6", "cell": ["2-2", "4-0"], "form": ["income|sex"]}


def declared(visitor: Visitor, name: str, **changes: str) -> dict[str, str]:
    """The form of the Declare page as a browser would send it back."""
    columns = visitor.desk.drafts.load(name).columns
    fields = {"count": str(len(columns))}
    for place, column in enumerate(columns):
        for key in ("use", "values", "text", "missing", "unknown", "source"):
            fields[f"{key}.{place}"] = getattr(column, key)
    return {**fields, **changes}


def begun(visitor: Visitor, **changes: str) -> str:
    """A draft of the example survey, with its table said."""
    answer = visitor.post("/begin", {"table": "private/survey.csv", "schema": "private/survey.toml"})
    name = answer.headers["location"].split("/")[2]
    said = {
        "table": "private/survey.csv",
        "id": "example-survey",
        "several": "no",
        "size": "public",
        "records": "20000",
    }
    assert visitor.post(f"/d/{name}/table", {**said, **changes}).status_code == 303
    return name


def ready(visitor: Visitor, **limit: str) -> str:
    """A draft that could be released: declared, asked, with a budget."""
    name = begun(visitor)
    assert visitor.post(f"/d/{name}/declare", declared(visitor, name)).status_code == 303
    budget = {"action": "budget", "limit-epsilon": "2", "limit-delta": "1e-6", "ledger": "survey.ledger", **limit}
    answer = visitor.post(f"/d/{name}/ask", {**ASKED, **budget})
    assert answer.status_code == 303, text_of(answer)
    return name


def confirmed(visitor: Visitor, name: str) -> dict[str, str]:
    """The form that spends, as the Review page shows it, with the name typed."""
    shown = visitor.get(f"/d/{name}/review").text
    hidden = {key: re.search(rf'name="{key}" value="(\w+)"', shown)[1] for key in ("once", "reviewed")}  # type: ignore[index]
    return {**hidden, "confirm": "example-survey"}


def released(visitor: Visitor, name: str) -> str:
    """Release it, and wait; the folder."""
    fields = confirmed(visitor, name)
    answer = visitor.post(f"/d/{name}/release", fields)
    assert answer.status_code == 303, text_of(answer)
    visitor.desk.work.wait(fields["once"])
    status = visitor.desk.work.status(fields["once"])
    assert status["state"] == "done", status
    return status["folder"]
