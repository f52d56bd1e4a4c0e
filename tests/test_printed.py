"""Every command that is printed, runs: in README, on every page, and in the help of every command.

The blocks of a page run in order, in an empty folder. A block that needs more than the page gives says so in its first
line, ``# needs …``, for the reader and for this test. A block of TOML that begins with the name of a file is that file.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import Done, dpbayes
from tests.test_docs import PAGES, _name

BLOCK = re.compile(
    r"^(<!-- run on the example survey -->\n)? *```(sh|bash|console|toml|python)\n(.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
NEEDS = "# needs "
FOREIGN = ("make", "pip", "uv", "python", "git", "docker", "gh", "hatch", "source", "brew")
"""Programs that are tested elsewhere, or need a network."""

YOURS = {
    "codes.csv": "variable,code,label,level\nsex,F,female,F\nsex,M,male,M\n",
    "hours.csv": "sex,hours\nF,30\nM,38\n",
    "series.json": '[{"kind": "gaussian-1"}]',
    "request.toml": 'title = "Income"\ntables = ["sex", "income|sex"]\nepsilon = 0.1\ndelta = 1e-8\n',
}
"""Files that readers bring, where an example shows what to do with theirs."""


def steps(text: str) -> list[str]:
    """The commands of a page, in order, its scripts for the example survey, and the files that it names."""
    found = []
    for marked, kind, block in BLOCK.findall(text):
        if kind == "python":
            found += [f"python\n{block}"] if marked else []
        elif kind == "toml":
            found += [f"file\n{block}"] if re.match(r"# [\w.-]+\n", block) else []
        elif not block.lstrip().startswith(NEEDS):
            lines = [line.strip() for line in re.sub(r"\\\n\s*", " ", block).splitlines()]
            if kind == "console":
                lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
            found += [line for line in lines if shlex.split(line, comments=True)]
    return found


def run(step: str) -> Done:
    """A step as its reader would take it; dpbayes alone runs in this process."""
    kind, _, block = step.partition("\n")
    if kind == "file":
        Path(block.split()[1]).write_text(block, encoding="utf-8")
        return Done(code=0, out="", err="")
    words = shlex.split(kind, comments=True)
    if not block and (words[0] in FOREIGN or words[:2] == ["dpbayes", "studio"]):  # a studio runs until it is stopped
        return Done(code=0, out="", err="")
    if block or words[0] != "dpbayes" or ">" in words:
        command = [sys.executable, "-c", block] if block else ["sh", "-c", kind]
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        done = subprocess.run(
            command, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=240, check=False
        )
        return Done(code=done.returncode, out=done.stdout, err=done.stderr)
    return dpbayes(*words[1:])


PRINTED = [page for page in PAGES if page.name not in ("CHANGELOG.md", "cli.md") and steps(page.read_text("utf-8"))]
LONG = ("docs/how-to/make-synthetic-records.md", "docs/tutorials/first-plan.md", "docs/how-to/publish-a-network.md")


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=_name(page), marks=[pytest.mark.slow] * (_name(page) in LONG)) for page in PRINTED]
)
def test_the_steps_of_a_page_can_be_taken_in_order_in_an_empty_folder(page, tmp_path):
    wrong = []
    with contextlib.chdir(tmp_path):
        for step in steps(page.read_text(encoding="utf-8")):
            done = run(step)
            refused = page.name == "ledger.md" and "absent" in step  # it shows a refusal
            if (done.code != 0) != refused:
                wrong.append(f"$ {step}\n{done.err.strip()[-400:]}")
    assert not wrong, "\n".join(wrong)
