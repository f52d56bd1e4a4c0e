"""A hook for mkdocs: the navigation in reading order, from the pages that exist.

A page needs no entry anywhere. Named pages come first in their section, the others follow by name.
"""

from __future__ import annotations

from pathlib import Path

SECTIONS = {
    "Tutorials": ("tutorials", ("first-release", "first-release-in-the-browser", "first-plan")),
    "How to": ("how-to", ("publish-a-table", "write-a-schema", "plan-a-release", "finish-a-release", "calibrate")),
    "Explanation": (
        "explanation",
        (
            "privacy-promise",
            "sharp-edges",
            "architecture",
            "ledger",
            "choosing-parameters",
            "estimate",
            "numerics",
            "errata",
        ),
    ),
    "Proofs": (
        "explanation/proofs",
        (
            "dominating-pair",
            "exact-renyi",
            "exact-profile",
            "conditional-tables",
            "pseudo-records",
            "composition",
            "numerics",
            "integer-noise",
            "floating-point",
            "utility",
            "hellinger",
            "hellinger-ties",
        ),
    ),
    "Reference": (
        "reference",
        ("cli", "python", "papers", "schema", "release-format", "ledger", "symbols", "theorems"),
    ),
    "Reproduction": (
        "reproduction",
        ("index", "audit", "benchmarks", "synthetic", "models", "estimates", "posteriors", "scale"),
    ),
}


def on_config(config: dict[str, object]) -> dict[str, object]:
    """Set the navigation before mkdocs reads it."""
    root = Path(str(config["docs_dir"]))
    nav: list[object] = ["index.md"]
    for title, (folder, first) in SECTIONS.items():
        pages = {path.stem: f"{folder}/{path.name}" for path in sorted((root / folder).glob("*.md"))}
        ordered = [pages.pop(name) for name in first if name in pages]
        if entries := ordered + list(pages.values()):
            nav.append({title: entries})
    nav += ["decisions.md", "references.md"]
    config["nav"] = nav
    return config
