"""Run ``dpbayes`` in this process, through the entry point that turns failures into sentences and exit codes."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import sys
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from dpbayes import Release
from dpbayes.cli.main import run


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def result(self) -> Any:
        """What a command with ``--json`` found."""
        assert self.err == "", self.err
        return json.loads(self.out)["result"]

    @property
    def release(self) -> Release:
        """The release that a command with ``--json`` made."""
        return Release.from_json(json.dumps(self.result["release"]))

    @property
    def sentence(self) -> str:
        """The one sentence of a failed command; anything else on its way out is a fault."""
        assert self.code != 0, self.out
        assert "Traceback" not in self.err
        [line] = self.err.splitlines()
        assert line.startswith("dpbayes: ")
        return line.removeprefix("dpbayes: ")


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
