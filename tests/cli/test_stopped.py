"""Long commands as processes of their own: Ctrl-C ends them at once, with one sentence, and leaves nothing behind."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.commands import dpbayes

ENTRY = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\nfrom dpbayes.cli.main import run; run()"
)
"""A shell's background jobs ignore Ctrl-C, and so would what they start."""

WANTED = [f"a{one}|a{two} ± 1 point" for one, two in itertools.combinations(range(12), 2)]
SCHEMA = "\n".join(
    [
        'id = "many"',
        'unit = "replace-one"',
        "records = 20000",
        "[attributes]",
        *(f'a{at} = ["a", "b", "c", "d"]' for at in range(12)),
    ]
)


def processor(pid: int) -> float:
    """Seconds of processor time that a process took so far."""
    told = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def stopped(words: list[str], at: float) -> tuple[int, float, str]:
    """Exit code, processor time from Ctrl-C to the end, and what was said."""
    with subprocess.Popen(
        [sys.executable, "-c", ENTRY, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        while (taken := processor(process.pid)) < at:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        taken = processor(process.pid) - taken
        assert process.stderr is not None
        return process.wait(), taken, process.stderr.read()


slow = pytest.mark.slow


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processor time of another process is read from /proc")
@pytest.mark.parametrize(
    ("words", "at"),
    [
        pytest.param(["predict", "model", "rows.csv", "--out", "made.csv"], 1.5, marks=slow),
        (["plan", "many.toml", *WANTED, "--delta", "1e-6", "--ledger", "none"], 1.0),
        pytest.param(["predict", "model", "rows.csv", "--out", "made.parquet"], 1.6, marks=slow),
        pytest.param(["predict", "model", "rows.csv", "--out", "made.csv"], 1.8, marks=slow),
        pytest.param(["synth", "model", "--rows", "3000000", "--out", "made.csv"], 1.0, marks=slow),
        pytest.param(["synth", "model", "--rows", "3000000", "--out", "made.parquet"], 1.6, marks=slow),
    ],
)
def test_ctrl_c_ends_a_long_command_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], at: float
) -> None:
    monkeypatch.chdir(tmp_path)
    dpbayes("example")
    Path("many.toml").write_text(SCHEMA, encoding="utf-8")
    if "model" in words:
        limits = ("--epsilon", 1, "--delta", "1e-6", "--ledger", "none")
        made = dpbayes("release", "survey.csv", "income", "--as", "naive-bayes", *limits, "--out", "model")
        assert made.code == 0, made.err
    if "rows.csv" in words:
        head, rest = Path("survey.csv").read_bytes().split(b"\n", 1)
        Path("rows.csv").write_bytes(head + b"\n" + 150 * rest)
    before = sorted(Path().rglob("*"))
    code, taken, said = stopped(words, at)
    assert (code, said) == (130, "dpbayes: interrupted.\n")
    assert taken < 0.8  # half a second where nothing else runs
    assert sorted(Path().rglob("*")) == before
