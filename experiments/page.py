"""The pages of claims, one for each paper, and their index; written from the stored results alone."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from experiments.lab import FIGURES, RESULTS

MARKS = {"agrees": "✓ agrees", "differs": "≠ differs", "cannot be known": "? cannot be known"}
INTRODUCTION = (
    "Every figure and table of the three papers (five documents), computed again with the public interface of "
    "dpbayes, and beside each the same budget used well: exact accounting, tuned parameters, noise-aware estimates, "
    "and baselines that get the same care. Claims are in our words. Written by `python -m experiments` from the files "
    "in `experiments/results`."
)
PAPERS = {"rdp": "[RDP]", "tcdp": "[tCDP]", "hellinger": "[H-full], [H-abstract] and [H-notes]"}
"""The pages, by the first part of the names of their experiments."""


def stored(results: Path = RESULTS) -> list[dict[str, Any]]:
    """All results, in the order of the papers and their figures."""
    from experiments.__main__ import EXPERIMENTS

    order = {name: position for position, name in enumerate(EXPERIMENTS)}
    found = [json.loads(path.read_text(encoding="utf-8")) for path in results.glob("*.json")]
    return sorted(found, key=lambda result: order[result["experiment"]])


def digest(results: Path = RESULTS) -> str:
    """What the page stands on: a hash over settings, verdicts and the rounded values of all rows."""
    return digest_of(stored(results))


def digest_of(found: list[dict[str, Any]]) -> str:
    """The same of results that are loaded."""
    total = hashlib.sha256()
    for result in found:
        told = [result["settings"], [(claim["says"], claim["verdict"]) for claim in result["claims"]]]
        total.update((json.dumps([*told, result["rows"]["sha256"]], sort_keys=True) + "\0").encode())
    return total.hexdigest()


def _slug(result: dict[str, Any]) -> str:
    return str(result["experiment"]).replace(".", "-").replace("_", "-")


def _command(result: dict[str, Any]) -> str:
    return f"python -m experiments {result['experiment']}"


def _paper(result: dict[str, Any]) -> str:
    return _slug(result).split("-")[0]


def pages(results: Path = RESULTS) -> dict[str, str]:
    """Every page of the documentation by the name of its file; figures are linked."""
    found = stored(results)
    made = {f"{name}.md": _of_paper([each for each in found if _paper(each) == name]) for name in PAPERS}
    return {"index.md": _index(found)} | {name: text for name, text in made.items() if text}


def _index(found: list[dict[str, Any]]) -> str:
    lines = ["# Reproduction of the papers", "", INTRODUCTION, "", _tally(found), ""]
    lines += [f"| Figure or table | Paper | {' | '.join(MARKS.values())} |", "| --- | --- | ---: | ---: | ---: |"]
    for result in found:
        verdicts = Counter(claim["verdict"] for claim in result["claims"])
        link = f"[{result['title']}]({_paper(result)}.md#{_slug(result)})"
        counts = " | ".join(str(verdicts[verdict]) for verdict in MARKS)
        lines.append(f"| {link} | {result['paper'].strip('[]')} | {counts} |")
    return "\n".join([*lines, "", f"Results: `{digest_of(found)}`."]) + "\n"


def _of_paper(found: list[dict[str, Any]]) -> str:
    """The claims of one paper, then its figures; nothing if there are none."""
    if not found:
        return ""
    lines = [f"# Reproduction: {PAPERS[_paper(found[0])]}", "", _tally(found), ""]
    lines += ["[All papers](index.md), and how this was measured.", ""]
    lines += ["| Where | Claim | Measured | Verdict |", "| --- | --- | --- | --- |"]
    for result in found:
        for claim in result["claims"]:
            cells = (
                f"[{claim['where']}](#{_slug(result)})",
                claim["says"],
                claim["measured"],
                " ".join(filter(None, (f"**{MARKS[claim['verdict']]}**.", claim["why"]))),
            )
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    for result in found:
        slug = _slug(result)
        lines += ["", f"## {result['paper']} {result['title']} {{#{slug}}}", "", result["about"], ""]
        lines += [f"![{result['title']}]({slug}.png){{ loading=lazy }}", ""]
        lines += [f"`{_command(result)}`, seed {result['settings']['seed']}, {result['seconds']:.0f} s on one core;"]
        lines += [f"[SVG]({slug}.svg); rows in `experiments/results/{slug}.parquet`."]
    return "\n".join(lines) + "\n"


def _tally(found: list[dict[str, Any]]) -> str:
    claims = [claim for result in found for claim in result["claims"]]
    ours = [claim for claim in claims if claim.get("ours")]
    verdicts = Counter(claim["verdict"] for claim in claims if not claim.get("ours"))
    agree, differ, unknown = (verdicts[verdict] for verdict in MARKS)
    held = sum(claim["verdict"] == "agrees" for claim in ours)
    return (
        f"{verdicts.total()} claims of the papers: {agree} agree, {differ} differ, {unknown} cannot be known. Beside "
        f"them, {len(ours)} of ours, of which {held} hold."
    )


def write(results: Path = RESULTS, figures: Path = FIGURES) -> None:
    """The pages, beside the figures."""
    for name, text in pages(results).items():
        (figures / name).write_text(text, encoding="utf-8")
