"""A hook for mkdocs: the navigation by four doors, then what is looked up, from the pages that exist.

A page needs no entry here. One that is in no section follows in the section of its folder.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

LONG = 30
"""Characters of a cell from which on a table is not shown side by side on a phone."""

HOW, WHY, PROOF = "how-to", "explanation", "explanation/proofs"

SECTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "Publish": {
        "Tutorials": (
            "tutorials/first-release",
            "tutorials/first-release-in-the-browser",
            "tutorials/from-csv-to-report",
        ),
        "Before": (f"{HOW}/write-a-schema", f"{HOW}/plan-a-release"),
        "Release": (f"{HOW}/publish-a-table", f"{HOW}/make-synthetic-records", f"{HOW}/scale-out"),
        "After": (f"{HOW}/hand-over-a-release", f"{HOW}/come-back-later", f"{HOW}/finish-a-release"),
        "Understand": (f"{WHY}/privacy-promise", f"{WHY}/sharp-edges", f"{WHY}/ledger"),
    },
    "Analyse": {
        "Tutorials": ("tutorials/a-classifier", "tutorials/synthetic-records"),
        "Read": (f"{HOW}/read-a-release", "reference/questions"),
        "Models": (f"{HOW}/train-a-classifier", f"{HOW}/publish-a-network", f"{HOW}/use-other-libraries"),
        "Understand": (f"{WHY}/estimate", f"{WHY}/models"),
    },
    "Research": {
        "Tutorials": ("tutorials/from-the-papers",),
        "Do": (f"{HOW}/calibrate", f"{HOW}/release-a-posterior", f"{HOW}/posterior-sampling"),
        "Understand": (
            f"{WHY}/choosing-parameters",
            f"{WHY}/synthetic",
            f"{WHY}/wide",
            f"{WHY}/numerics",
            f"{WHY}/audit",
            f"{WHY}/errata",
        ),
        "Proofs": (
            f"{PROOF}/dominating-pair",
            f"{PROOF}/exact-renyi",
            f"{PROOF}/exact-profile",
            f"{PROOF}/conditional-tables",
            f"{PROOF}/pseudo-records",
            f"{PROOF}/composition",
            f"{PROOF}/adaptive",
            f"{PROOF}/numerics",
            f"{PROOF}/integer-noise",
            f"{PROOF}/floating-point",
        ),
    },
    "Contribute": {
        "Start": (f"{WHY}/architecture", "decisions"),
        "Add": (f"{HOW}/add-a-job", f"{HOW}/add-a-mechanism", f"{HOW}/add-a-model", f"{HOW}/add-an-engine"),
    },
    "Reference": {
        "Use": ("reference/cli", "reference/python", "reference/request", "reference/schema", "reference/ledger"),
        "Look up": (
            "reference/release-format",
            "reference/symbols",
            "reference/papers",
            "reference/theorems",
            "reference/references",
            "reference/comparison",
        ),
    },
    "Reproduction": {
        "Papers": ("reproduction/index", "reproduction/rdp", "reproduction/tcdp", "reproduction/hellinger"),
        "Measured": ("reproduction/audit", "reproduction/benchmarks"),
    },
}

OTHERS = {
    "tutorials": ("Publish", "Tutorials"),
    "how-to": ("Publish", "Release"),
    "explanation": ("Research", "Understand"),
    "explanation/proofs": ("Research", "Proofs"),
    "reference": ("Reference", "Look up"),
    "reproduction": ("Reproduction", "Measured"),
}


def on_config(config: dict[str, object]) -> dict[str, object]:
    """Set the navigation before mkdocs reads it."""
    root = Path(str(config["docs_dir"]))
    pages = {path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.md")}
    named = {page for groups in SECTIONS.values() for section in groups.values() for page in section}
    nav: list[object] = ["index.md"]
    for title, groups in SECTIONS.items():
        made: list[object] = []
        for group, first in groups.items():
            folders = [folder for folder, place in OTHERS.items() if place == (title, group)]
            others = sorted(page for page in pages - named if page.rpartition("/")[0] in folders)
            made.append({group: [f"{page}.md" for page in [*first, *others] if page in pages]})
        nav.append({title: made})
    config["nav"] = nav
    return config


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Lists of figures and lemmas stay out of the index of the search, which every page loads."""
    if page.file.src_uri.startswith(("reproduction/", "reference/theorems")):
        page.meta["search"] = {"exclude": True}
    return markdown


def on_page_content(html: str, **_: object) -> str:
    """Tables with long cells are marked, and their cells carry their headings: on a phone each row becomes a card.

    A bar in the code of a cell is written with a backslash, which Markdown leaves there.
    """
    return re.sub(r"<table>.*?</table>", lambda found: _labelled(found[0]), html, flags=re.DOTALL)


def _labelled(table: str) -> str:
    table = table.replace("\\|", "|")
    heads = [re.sub(r"<[^>]+>", "", head) for head in re.findall(r"<th[^>]*>(.*?)</th>", table, re.DOTALL)]
    texts = [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", table, re.DOTALL)]
    if len(heads) < 3 or max(map(len, texts), default=0) < LONG:
        return table
    named = iter(heads * (len(texts) // len(heads)))
    table = re.sub(r"<td", lambda _: f'<td data-label="{next(named, "")}"', table)
    return table.replace("<table>", "<table data-stack>", 1)
