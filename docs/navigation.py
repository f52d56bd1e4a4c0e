"""A hook for mkdocs: the navigation by four doors, then what is looked up, from the pages that exist.

A page needs no entry here. One that is in no section follows in the section of its folder.
"""

from __future__ import annotations

from pathlib import Path

HOW, WHY, PROOF = "how-to", "explanation", "explanation/proofs"

SECTIONS: dict[str, tuple[str, ...]] = {
    "Publish": (
        "tutorials/first-release",
        "tutorials/first-release-in-the-browser",
        "tutorials/from-csv-to-report",
        f"{HOW}/write-a-schema",
        f"{HOW}/plan-a-release",
        f"{HOW}/publish-a-table",
        f"{HOW}/make-synthetic-records",
        f"{HOW}/hand-over-a-release",
        f"{HOW}/come-back-later",
        f"{HOW}/finish-a-release",
        f"{HOW}/scale-out",
        f"{WHY}/privacy-promise",
        f"{WHY}/sharp-edges",
        f"{WHY}/ledger",
    ),
    "Analyse": (
        f"{HOW}/read-a-release",
        f"{HOW}/train-a-classifier",
        f"{HOW}/publish-a-network",
        f"{HOW}/use-other-libraries",
        f"{WHY}/estimate",
        f"{WHY}/models",
    ),
    "Research": (
        "tutorials/from-the-papers",
        f"{HOW}/calibrate",
        f"{HOW}/release-a-posterior",
        f"{HOW}/posterior-sampling",
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
    "Contribute": (
        f"{WHY}/architecture",
        f"{HOW}/add-a-job",
        f"{HOW}/add-a-mechanism",
        f"{HOW}/add-a-model",
        f"{HOW}/add-an-engine",
        "decisions",
    ),
    "Reference": (
        "reference/cli",
        "reference/python",
        "reference/papers",
        "reference/schema",
        "reference/request",
        "reference/ledger",
        "reference/release-format",
        "reference/symbols",
        "reference/theorems",
        "reference/references",
    ),
    "Reproduction": ("reproduction/index", "reproduction/audit", "reproduction/benchmarks"),
}

OTHERS = {
    "tutorials": "Publish",
    "how-to": "Publish",
    "explanation": "Research",
    "explanation/proofs": "Proofs",
    "reference": "Reference",
    "reproduction": "Reproduction",
}


def on_config(config: dict[str, object]) -> dict[str, object]:
    """Set the navigation before mkdocs reads it."""
    root = Path(str(config["docs_dir"]))
    pages = {path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.md")}
    named = {page for section in SECTIONS.values() for page in section}
    nav: list[object] = ["index.md"]
    for title, first in SECTIONS.items():
        folders = [folder for folder, section in OTHERS.items() if section == title]
        others = sorted(page for page in pages - named if page.rpartition("/")[0] in folders)
        nav.append({title: [f"{page}.md" for page in [*first, *others] if page in pages]})
    config["nav"] = nav
    return config
