"""A ledger of each kind, and a real PostgreSQL server for the tests that ask for one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpbayes import Adjacency, PrivacyUnit
from dpbayes.ledger.ledger import Ledger

SERVER_USER = "postgres"
PASSWORD = "correct-horse"


@pytest.fixture
def unit() -> PrivacyUnit:
    return PrivacyUnit(adjacency=Adjacency.ADD_REMOVE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "census.ledger"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger(path)


@pytest.fixture
def run_script() -> Callable[..., str]:
    """Run a script of this folder in a process of its own, which may fork and die as it likes."""

    def run(name: str, *arguments: object) -> str:
        command = [sys.executable, str(Path(__file__).with_name(name)), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@dataclass
class Server:
    """A PostgreSQL server on loopback, in a temporary folder."""

    programs: Path
    folder: Path
    port: int

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        if os.geteuid() == 0:  # the server refuses to run as root
            command = [
                shutil.which("runuser", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or "runuser",
                "-u",
                SERVER_USER,
                "--",
                *command,
            ]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)

    def start(self) -> None:
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} "
            "-c recovery_init_sync_method=syncfs"
        )
        log = str(self.folder / "log")
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-l", log, "-o", options, "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", mode, "-w", "stop")

    def url(self, database: str = "postgres", *, password: str = PASSWORD) -> str:
        return f"postgresql://owner:{password}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(shutil.which("initdb") or "absent")]
    if not found[-1].exists():
        pytest.skip("PostgreSQL is not installed: the ledger was tested on SQLite only")
    folder = Path(tempfile.mkdtemp(prefix="dpbayes-pg-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server(programs=found[-1].parent, folder=folder, port=port)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    if os.geteuid() == 0:
        shutil.chown(folder, SERVER_USER)
        shutil.chown(secret, SERVER_USER)
    initdb = (
        "-D",
        str(folder / "data"),
        "-U",
        "owner",
        "-A",
        "scram-sha-256",
        f"--pwfile={secret}",
        "--no-sync",
        "--wal-segsize=1",
    )
    try:
        server.run("initdb", *initdb)
        server.start()
        yield server
        server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
