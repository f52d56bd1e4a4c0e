"""Ten tables, three of them of three attributes, are a report of at most five printed pages and a small file."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dpbayes import ApproxDP, Curator, Release, Schema, Tables
from dpbayes.example import write_example
from dpbayes.report.page import report_html

TABLES = (
    "sex",
    "age",
    "region",
    "education",
    "income",
    "age,sex",
    "income|sex",
    "income|education",
    "age,sex,education",
    "income|sex,age",
)
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    rows, schema = write_example(tmp_path_factory.mktemp("survey") / "private")[:2]
    return Curator(rows, Schema.load(schema), seed=1).release(Tables(*TABLES), ApproxDP(epsilon=1, delta=1e-6))


def test_the_report_is_a_small_file(release: Release) -> None:
    assert len(report_html(release).encode()) < 100_000


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed to print the report")
def test_ten_tables_print_on_five_pages(release: Release, tmp_path: Path) -> None:
    page, pdf = tmp_path / "report.html", tmp_path / "report.pdf"
    page.write_text(report_html(release), encoding="utf-8")
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
    subprocess.run(
        [
            str(BROWSER),
            *("--headless", "--no-sandbox", "--disable-gpu", *quiet, f"--user-data-dir={tmp_path / 'profile'}"),
            *(f"--print-to-pdf={pdf}", "--no-pdf-header-footer", page.as_uri()),
        ],
        capture_output=True,
        timeout=120,
    )
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))
    assert 1 <= pages <= 5
