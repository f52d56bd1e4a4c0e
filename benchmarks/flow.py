"""How many source files of dpbayes one command enters: a call profile of a release, in a process of its own.

A file counts if a function in it is called while the command runs. What happens when a module is loaded does not count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dpbayes import ApproxDP, Ledger, Schema

SCRIPT = """
import json, sys, threading
from pathlib import Path
entered = set()
def imports(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>" and "/dpbayes/" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False
def look(frame, event, _):
    file = frame.f_code.co_filename
    if event == "call" and "/dpbayes/" in file and file not in entered and not imports(frame):
        entered.add(file)
from dpbayes.cli.main import run
sys.setprofile(look)
threading.setprofile(look)
try:
    run()
except SystemExit as stop:
    assert not stop.code, stop.code
finally:
    sys.setprofile(None)
    import dpbayes
    root = Path(dpbayes.__file__).parent
    inside = sorted(str(Path(each).relative_to(root)) for each in entered if Path(each).is_relative_to(root))
    Path(ENTERED).write_text(json.dumps(inside))
"""


def entered(*arguments: str, folder: Path) -> list[str]:
    """The files of dpbayes in which a function was called by a command that runs in ``folder``."""
    found = folder / "entered.json"
    script = SCRIPT.replace("ENTERED", repr(str(found)))
    subprocess.run(
        [sys.executable, "-c", script, *arguments], check=True, cwd=folder, capture_output=True, env=os.environ
    )
    listed: list[str] = json.loads(found.read_text())
    return listed


SCHEMA = """id = "people"
adjacency = "replace-one"
[[attribute]]
name = "sex"
categories = ["F", "M"]
[[attribute]]
name = "job"
categories = ["cook", "nurse"]
"""


def release(folder: Path) -> list[str]:
    """The files that a release of two tables enters, with a ledger and a folder to publish."""
    schema = Schema.from_toml(SCHEMA)
    (folder / "people.toml").write_text(SCHEMA)
    (folder / "people.csv").write_text("sex,job\n" + "F,cook\nM,nurse\n" * 50)
    Ledger(folder / "people.ledger").open(schema.id, ApproxDP(epsilon=2, delta=1e-6), schema.unit)
    goes = ["--epsilon", "1", "--set", "mechanism=gaussian", "--out", "published"]
    return entered("release", "people.csv", "sex", "job|sex", *goes, folder=folder)


def run() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        found = release(Path(name))
    return {"files entered by a release": len(found), "files": found}
