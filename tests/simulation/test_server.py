"""The same on a PostgreSQL server that is stopped without warning and started again at every step that meets it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from tests import servers
from tests.simulation import writers
from tests.simulation.checker import Rows
from tests.simulation.histories import HEAD, History, Tally

from dpbayes import Ledger


class ServerHistory(History):
    """A history whose ledger is on a server, and whose drafts and draws are under the user's state folder."""

    def __init__(self, folder: Path, tally: Tally, url: str, seed: int) -> None:
        super().__init__(folder, "approximate", tally, seed=seed, ledger=url)
        self.witness.kept = Ledger(url).kept.folder

    def rows(self) -> tuple[Rows, dict[str, str]]:
        with psycopg.connect(str(self.ledger)) as connection:
            rows = connection.execute("SELECT dataset, serial, text, hash FROM dpbayes_entries ORDER BY serial")
            return rows.fetchall(), dict(connection.execute("SELECT dataset, head FROM dpbayes_datasets").fetchall())


@pytest.mark.slow
def test_a_server_that_restarts_at_any_of_its_steps_loses_nothing(
    server: servers.PostgreSQLServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally, folder = Tally(), tmp_path / "here"
    monkeypatch.setenv("DPBAYES_STATE", str(folder / "state"))

    def restart() -> None:
        server.stop("immediate")
        server.start()

    def written(number: int, step: int) -> list[str]:
        server.execute(f"CREATE DATABASE simulated{number}")
        history = ServerHistory(folder, tally, server.url(f"simulated{number}"), number)
        with writers.planned_once(history.world), history.world.real():
            history.write("tables, gaussian", "first", {step: "restart"}, restart)
            history.end()
        return history.trace[0]

    steps = [at for at, name in enumerate(written(0, 0), start=1) if name in ("connect", "commit", "curator", "draw")]
    for number, step in enumerate(steps, start=1):
        written(number, step)
    print(f"\n{HEAD}\n{tally.row('server restarts')}")
    assert tally.faults["restart"] == len(steps) > 6
    assert tally.charges
