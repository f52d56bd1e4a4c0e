"""Real servers for tests, started from what is installed, on loopback and in temporary folders."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

SERVER_USER = "postgres"
PASSWORD = "correct-horse"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@dataclass
class PostgreSQLServer:
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

    def url(self, database: str = "postgres", *, user: str = "owner", password: str = PASSWORD) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)


def postgresql_programs() -> Path | None:
    """Where initdb and pg_ctl are, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(shutil.which("initdb") or "absent")]
    return found[-1].parent if found[-1].exists() else None


@contextmanager
def running_postgresql(programs: Path) -> Iterator[PostgreSQLServer]:
    folder = Path(tempfile.mkdtemp(prefix="dpbayes-pg-"))
    server = PostgreSQLServer(programs=programs, folder=folder, port=free_port())
    secret = folder / "password"
    secret.write_text(PASSWORD)
    if os.geteuid() == 0:
        shutil.chown(folder, SERVER_USER)
        shutil.chown(secret, SERVER_USER)
    data = ("-D", str(folder / "data"), "--no-sync", "--wal-segsize=1")
    try:
        server.run("initdb", *data, "-U", "owner", "-A", "scram-sha-256", f"--pwfile={secret}")
        server.start()
        yield server
        server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


TALKATIVE = """rootLogger.level = info
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n%ex
"""
"""The log of a cluster whose owner wants to see everything."""


@dataclass
class SparkCluster:
    """A master and two workers of Spark's standalone mode, each a process of its own."""

    folder: Path
    port: int
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def options(self) -> str:
        """Options that keep a driver on loopback and small, as they stand in an address."""
        pairs = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.cores.max": "2",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
        }
        return "&".join(f"{name}={value}" for name, value in pairs.items())

    def address(self, path: object) -> str:
        return f"spark://127.0.0.1:{self.port}?path={path}&{self.options}"

    def start(self, name: str) -> None:
        """Start ``master``, or a worker called otherwise."""
        import pyspark

        home = Path(pyspark.__file__).parent
        role = (
            ("master.Master", "--port", str(self.port))
            if name == "master"
            else ("worker.Worker", "--work-dir", str(self.folder / name), "-c", "2", "-m", "2g", self._master)
        )
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [
                    str(home / "bin" / "spark-class"),
                    f"org.apache.spark.deploy.{role[0]}",
                    "--host",
                    "127.0.0.1",
                    "--webui-port",
                    str(free_port()),
                    *role[1:],
                ],
                env={
                    **os.environ,
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_HOME": str(home),
                    "SPARK_DAEMON_MEMORY": "256m",
                    "SPARK_CONF_DIR": str(self.folder),
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self, name: str) -> None:
        """End a process with all its executors, without warning."""
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)

    def wait_for_log(self, name: str, words: str, times: int = 1) -> None:
        deadline = time.monotonic() + 120
        while (self.folder / f"{name}.log").read_text(errors="replace").count(words) < times:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the {name} of Spark does not say {words!r}")
            time.sleep(0.2)

    @property
    def _master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"


@contextmanager
def running_spark() -> Iterator[SparkCluster]:
    folder = Path(tempfile.mkdtemp(prefix="dpbayes-spark-"))
    cluster = SparkCluster(folder=folder, port=free_port())
    (folder / "log4j2.properties").write_text(TALKATIVE)
    try:
        cluster.start("master")
        cluster.wait_for_log("master", "New state: ALIVE")
        for worker in ("worker one", "worker two"):
            cluster.start(worker)
        cluster.wait_for_log("master", "Registering worker", times=2)
        yield cluster
    finally:
        for name in list(cluster.processes):
            cluster.kill(name)
        shutil.rmtree(folder, ignore_errors=True)


def java() -> str | None:
    """The Java that Spark would start, or None."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin" if home else None)
