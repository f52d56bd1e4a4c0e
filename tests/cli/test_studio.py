"""``dpbayes studio``: what it prints, and what it refuses."""

from __future__ import annotations

import io
import logging
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from tests.commands import dpbayes
from tests.studio.browser import running
from tests.studio.house import survey


def command(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from dpbayes.cli.main import run; run()", "studio", *words]
    return subprocess.run(program, capture_output=True, text=True, timeout=60, env=env)


def test_it_prints_an_address_that_works_once_and_serves_nobody_else(tmp_path):
    with running(survey(tmp_path)) as address:
        assert address.startswith("http://127.0.0.1:")
        home = address.split("/?")[0]
        assert _status(urllib.request.build_opener(), home) == (403, b"")
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        for each in (address, home):
            code, shown = _status(opener, each)
            assert code == 200
            assert b"example-survey" in shown
        assert _status(urllib.request.build_opener(), address) == (403, b"")


def test_logs_of_other_libraries_stay_open(tmp_path, monkeypatch):
    told = logging.StreamHandler(io.StringIO())
    closed = []
    monkeypatch.setattr(told, "close", lambda: closed.append(told))
    monkeypatch.setattr("uvicorn.Server.run", lambda _, sockets: sockets[0].close())
    monkeypatch.setattr("dpbayes.studio.app.warm", lambda: None)
    assert dpbayes("studio", tmp_path, "--no-browser", "--port", 0).code == 0
    assert not closed


def _status(opener: urllib.request.OpenerDirector, address: str) -> tuple[int, bytes]:
    try:
        with opener.open(address) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code, b""


def test_readers_need_no_token(tmp_path):
    with running(tmp_path, "--public") as address:
        assert "token" not in address
        assert b"no release in this folder" in _status(urllib.request.build_opener(), address)[1]


def test_it_listens_on_this_machine_only(tmp_path):
    with running(tmp_path) as address:
        port = int(address.split(":")[2].split("/")[0])
        others = [each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
        for other in {each for each in others if not each.startswith("127.")}:
            with socket.socket() as probe:
                probe.settimeout(2)
                assert probe.connect_ex((other, port)) != 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", "192.0.2.1"), "write --expose ADDRESS"),
        (("--expose", "0.0.0.0"), "one address"),
        (("--port", "99999"), "a port from 0 to 65535"),
        (("nowhere",), "there is no folder"),
    ],
)
def test_what_it_refuses(tmp_path, words, said):
    done = command(*([str(tmp_path)] if words[0].startswith("--") else []), *words, "--no-browser")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_said(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = command(str(tmp_path), "--port", str(taken.getsockname()[1]), "--no-browser")
    assert done.returncode == 1
    assert "Another studio may be open" in done.stderr


def test_without_the_extra_it_says_what_to_install(tmp_path):
    broken = "raise ModuleNotFoundError('no', name='starlette')"
    (tmp_path / "starlette.py").write_text(broken)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    done = command(str(tmp_path), env=environment)
    assert done.returncode == 1
    assert "Install dpbayes[studio]" in done.stderr
