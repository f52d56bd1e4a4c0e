"""One charge after another, each in a process that is stopped one step later than the one before.

Usage: crasher.py WHERE DATASET statement|write|full. Prints a line of JSON for each process: how far it came
(``charged`` as soon as ``charge`` has returned, which is when a draw may follow) and what the ledger then holds.

    statement   killed with SIGKILL at the k-th event of the database connection
    write       killed by the system when it writes beyond byte k of a file
    full        writing beyond byte k fails, as on a full disk
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from itertools import count

from dpbayes import Cost, Laplace
from dpbayes.base.errors import LedgerError
from dpbayes.ledger.connection import Connection
from dpbayes.ledger.history import lines, read
from dpbayes.ledger.ledger import Ledger

STRIDE = 512


def die_at(step: int) -> None:
    seen = count()

    def tick() -> None:
        if next(seen) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    for name in ("execute", "commit", "close"):  # the last after the commit, before ``charge`` returns
        setattr(Connection, name, _ticking(tick, getattr(Connection, name), afterwards=name == "execute"))


def _ticking(tick: Callable[[], None], call: Callable[..., object], *, afterwards: bool) -> Callable[..., object]:
    def ticking(*arguments: object) -> object:
        tick()
        done = call(*arguments)
        if afterwards:
            tick()
        return done

    return ticking


def limit_files(step: int, *, deadly: bool) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if deadly else signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (step * STRIDE, step * STRIDE))


def charge(where: str, dataset: str, cost: Cost, mode: str, step: int, report: int) -> None:
    match mode:
        case "statement":
            die_at(step)
        case "write" | "full":
            limit_files(step, deadly=mode == "write")
    try:
        Ledger(where).charge(dataset, cost)
        os.write(report, b"charged")
    except LedgerError as problem:
        os.write(report, str(problem).encode())


def main(where: str, dataset: str, mode: str) -> None:
    account = Ledger(where).account(dataset)
    cost = Cost.of(Laplace(scale=1000.0, unit=account.unit))
    for step in count():
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                charge(where, dataset, cost, mode, step, writer)
            finally:
                os._exit(0)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        said = os.read(reader, 1000).decode()
        os.close(reader)
        after = Ledger(where).account(dataset)
        assert read(lines(after))[dataset] == after
        print(json.dumps({"killed": os.WIFSIGNALED(status), "said": said, "charges": len(after.charges)}))
        if said == "charged":
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
