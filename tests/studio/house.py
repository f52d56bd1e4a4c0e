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
