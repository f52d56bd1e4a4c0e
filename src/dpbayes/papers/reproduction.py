"""The figures and tables of the papers, as they were computed again: read from the results in a checkout."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpbayes.errors import DpbayesError, InvalidArgument
from dpbayes.papers.result import statements

RESULTS = Path("experiments", "results")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """A figure or table computed again: the claims of the paper with what was measured, rows and picture.

    ``str()`` says how each claim came out.
    """

    name: str
    """Paper and figure."""
    results: tuple[dict[str, Any], ...]
    """What the experiments stored: settings, claims, digests."""
    folder: Path
    """The checkout."""

    @property
    def claims(self) -> list[dict[str, Any]]:
        """What the paper says, what was measured, and the verdict."""
        return [claim for result in self.results for claim in result["claims"]]

    @property
    def verdicts(self) -> Counter[str]:
        """How many claims of the paper agree, differ, or cannot be known."""
        return Counter(claim["verdict"] for claim in self.claims if not claim["ours"])

    @property
    def pictures(self) -> list[Path]:
        """The figures, as PNG files."""
        return [self.folder / "docs" / "reproduction" / f"{_slug(result)}.png" for result in self.results]

    @property
    def rows(self) -> list[Path]:
        """All that was measured, as Parquet files."""
        return [self.folder / RESULTS / f"{_slug(result)}.parquet" for result in self.results]

    def __str__(self) -> str:
        said = [f"{claim['verdict']}: {claim['says']} Measured: {claim['measured']}." for claim in self.claims]
        return "\n".join([f"{self.name}, {', '.join(result['title'] for result in self.results)}", *said])


def figure(paper: str, number: int) -> Reproduction:
    """A figure of a paper, computed again.

    Args:
        paper: rdp, tcdp, h-full, h-abstract or h-notes.
        number: Its number in print.
    """
    return _reproduction(paper, f"Figure {number}")


def table(paper: str, number: int) -> Reproduction:
    """A table of a paper, computed again.

    Args:
        paper: rdp; the others have none.
        number: Its number in print.
    """
    return _reproduction(paper, f"Table {number}")


def _reproduction(paper: str, name: str) -> Reproduction:
    rows = [row for row in statements(paper) if re.search(rf"{name}\b", row.place)]
    if not rows:
        raise InvalidArgument(f"papers: {paper} has no {name.lower()}.")
    root = checkout()
    if root is None:
        raise DpbayesError(
            f"papers: the reproduction of {name.lower()} belongs to a checkout of dpbayes, which this is not. "
            "Clone the repository, or read the page Reproduction of the papers."
        )
    experiments = dict.fromkeys(row.figure for row in rows)
    found = (root / RESULTS / f"{each.replace('.', '-').replace('_', '-')}.json" for each in experiments)
    results = tuple(json.loads(path.read_text(encoding="utf-8")) for path in found)
    return Reproduction(name=f"[{rows[0].paper}] {name}", results=results, folder=root)


def checkout() -> Path | None:
    """The folder with the results: above this file, or above the folder at work."""
    folders = (*Path(__file__).resolve().parents, Path.cwd(), *Path.cwd().parents)
    return next((folder for folder in folders if (folder / RESULTS).is_dir()), None)


def _slug(result: dict[str, Any]) -> str:
    return str(result["experiment"]).replace(".", "-").replace("_", "-")
