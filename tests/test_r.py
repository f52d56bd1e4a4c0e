"""The R of the documentation runs in R, with reticulate and jsonlite, against this library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import dpbayes

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "use-other-libraries.md"


def has_r() -> bool:
    wanted = "library(reticulate); library(jsonlite)"
    return (
        bool(shutil.which("Rscript")) and not subprocess.run(["Rscript", "-e", wanted], capture_output=True).returncode
    )


@pytest.mark.skipif(not has_r(), reason="needs R with reticulate and jsonlite (Debian: r-cran-reticulate)")
def test_the_script_of_the_page_releases_asks_and_draws(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert dpbayes("example", ".").code == 0
    assert dpbayes("ledger", "init", "survey.csv", "--epsilon", "2", "--delta", "1e-6").code == 0
    text = PAGE.read_text(encoding="utf-8")
    [script] = re.findall(r"^```r\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    [without] = re.findall(r"`(jsonlite::.*?)`", text)
    Path("page.R").write_text(f"{script}\nasked <- {without}\ncat(asked$result$tables$table)\n", encoding="utf-8")
    python = {
        "RETICULATE_PYTHON": sys.executable,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    done = subprocess.run(["Rscript", "page.R"], env=os.environ | python, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "95 % interval" in done.stdout
    assert done.stdout.endswith("region")
    assert Path("region.png").read_bytes().startswith(b"\x89PNG")
    assert dpbayes("verify", "from-r", "--ledger", "survey.ledger").code == 0
