"""The entry point of the command line: the one place where errors become text."""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import NoReturn

REFUSED, USAGE, BUDGET, UNFINISHED, FAULT, INTERRUPTED = 1, 2, 3, 4, 70, 130
KINDS = {1: "refused", 2: "usage", 3: "budget", 4: "unfinished", 70: "fault", 130: "interrupted"}
"""What the exit codes are called in JSON."""

TRACEBACK = "DPBAYES_TRACEBACK"
"""Environment variable that asks for the traceback of an unexpected failure."""


def run() -> None:
    """Entry point: every failure is one sentence. An unexpected one is not quoted: it may hold private values."""
    if sys.argv[1:] == ["--version"]:
        from importlib.metadata import version

        sys.stdout.write(f"dpbayes {version('dpbayes')}\n")
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))  # others only wait
    gc.set_threshold(200_000, 50, 50)  # a command lives shortly: collecting garbage during import only costs time
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # tidy up as after Ctrl-C
    from dpbayes.base.errors import BudgetExceeded, DpbayesError, InvalidArgument, Unfinished, UnitMismatch
    from dpbayes.cli.command import Run, application, prepare

    now = Run(json="--json" in sys.argv)
    prepare()
    try:
        sys.exit(application(now))
    except DpbayesError as problem:
        codes = {BudgetExceeded: BUDGET, Unfinished: UNFINISHED, UnitMismatch: REFUSED, InvalidArgument: USAGE}
        _stop(now, str(problem), next((code for kind, code in codes.items() if isinstance(problem, kind)), REFUSED))
    except KeyboardInterrupt:
        _stop(now, f"interrupted.{now.aftermath()}", INTERRUPTED)
    except BrokenPipeError:
        sys.exit(REFUSED)
    except OSError as problem:
        code = UNFINISHED if now.charged else REFUSED
        _stop(now, f"the system refused: {os.strerror(problem.errno or 0)}.{now.aftermath()}", code)
    except MemoryError:
        code = UNFINISHED if now.charged else REFUSED
        _stop(now, f"memory ran out. Ask for fewer cells, or free some memory.{now.aftermath()}", code)
    except Exception as problem:
        if TRACEBACK in os.environ:
            raise
        _stop(
            now,
            f"an unexpected {type(problem).__name__}, a fault of dpbayes. Its text stays hidden, since it may quote "
            f"private values; set {TRACEBACK}=1 to see where it happened, and report it.{now.aftermath()}",
            FAULT,
        )


def _stop(now: object, sentence: str, code: int) -> NoReturn:
    from dpbayes.cli.output import tell_failure

    sentence = sentence.removeprefix("dpbayes: ")
    record = {"error": {"kind": KINDS[code], "sentence": sentence, "code": code}}
    tell_failure(record if getattr(now, "json", False) else f"dpbayes: {sentence}")
    sys.exit(code)
