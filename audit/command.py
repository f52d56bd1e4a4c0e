"""The real command line, in this process: what it prints, and its exit code."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from dataclasses import dataclass
from unittest.mock import patch

from dpbayes.cli.main import run


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str


def dpbayes(*arguments: object) -> Done:
    """Run one command as a shell would."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    handler = signal.getsignal(signal.SIGTERM)
    argv = patch.object(sys, "argv", ["dpbayes", *map(str, arguments)])
    with argv, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
        finally:
            signal.signal(signal.SIGTERM, handler)
    return Done(code=code, out=out.getvalue(), err=err.getvalue())
