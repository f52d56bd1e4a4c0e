"""The page of claims, in Markdown and as one self-contained HTML file, written from the stored results alone."""

from __future__ import annotations

import base64
import hashlib
import html
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
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;width:100%;font-size:.9em}td,th{border:1px solid #ddd;padding:.4em .6em;"
    "text-align:left;vertical-align:top}th{background:#f5f5f5}img{max-width:100%}"
    "code{background:#f3f3f3;padding:.1em .3em}"
    ".agrees{color:#00664b;font-weight:600;white-space:nowrap}.differs{color:#a33e00;font-weight:600;white-space:nowrap}"
    ".cannot{color:#555;font-weight:600}"
)


def stored(results: Path = RESULTS) -> list[dict[str, Any]]:
    """All results, in the order of the papers and their figures."""
    from experiments.__main__ import EXPERIMENTS

    order = {name: position for position, name in enumerate(EXPERIMENTS)}
    found = [json.loads(path.read_text(encoding="utf-8")) for path in results.glob("*.json")]
    return sorted(found, key=lambda result: order[result["experiment"]])


def digest(results: Path = RESULTS) -> str:
    """What the page stands on: a hash over settings, verdicts and the rounded values of all rows."""
    total = hashlib.sha256()
    for result in stored(results):
        told = [result["settings"], [(claim["says"], claim["verdict"]) for claim in result["claims"]]]
        total.update((json.dumps([*told, result["rows"]["sha256"]], sort_keys=True) + "\0").encode())
    return total.hexdigest()


def _slug(result: dict[str, Any]) -> str:
    return str(result["experiment"]).replace(".", "-").replace("_", "-")


def _command(result: dict[str, Any]) -> str:
    return f"python -m experiments {result['experiment']}"


def markdown(results: Path = RESULTS) -> str:
    """The page for the documentation; figures are linked."""
    found = stored(results)
    lines = ["# Reproduction of the papers", "", INTRODUCTION, "", _tally(found), ""]
    lines += ["| Paper | Where | Claim | Measured | Verdict |", "| --- | --- | --- | --- | --- |"]
    for result in found:
        for claim in result["claims"]:
            cells = (
                f"[{result['paper'].strip('[]')}](#{_slug(result)})",
                claim["where"],
                claim["says"],
                claim["measured"],
                " ".join(filter(None, (f"**{MARKS[claim['verdict']]}**.", claim["why"]))),
            )
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    for result in found:
        slug = _slug(result)
        lines += ["", f"## {result['paper']} {result['title']} {{#{slug}}}", "", result["about"], ""]
        lines += [f"![{result['title']}]({slug}.png)", ""]
        lines += [f"`{_command(result)}`, seed {result['settings']['seed']}, {result['seconds']:.0f} s on one core;"]
        lines += [f"[SVG]({slug}.svg); rows in `experiments/results/{slug}.parquet`."]
    lines += ["", f"Results: `{digest(results)}`."]
    return "\n".join(lines) + "\n"


def page(results: Path = RESULTS, figures: Path = FIGURES) -> str:
    """The same as one HTML file that needs nothing else."""
    found = stored(results)
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>dpbayes: reproduction of the papers</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        f"<h1>Reproduction of the papers</h1><p>{_code(INTRODUCTION)}</p><p>{_code(_tally(found))}</p>"
        "<table><tr><th>Paper<th>Where<th>Claim<th>Measured<th>Verdict</tr>"
    ]
    for result in found:
        for claim in result["claims"]:
            mark = claim["verdict"].split()[0]
            parts.append(
                f'<tr><td><a href="#{_slug(result)}">{html.escape(result["paper"])}</a><td>{_code(claim["where"])}'
                f"<td>{_code(claim['says'])}<td>{_code(claim['measured'])}"
                f'<td><span class="{mark}">{MARKS[claim["verdict"]]}</span> {_code(claim["why"])}</tr>'
            )
    parts.append("</table>")
    for result in found:
        slug = _slug(result)
        image = base64.b64encode((figures / f"{slug}.png").read_bytes()).decode()
        paragraphs = "".join(f"<p>{_code(text)}</p>" for text in result["about"].split("\n\n"))
        title = html.escape(f"{result['paper']} {result['title']}")
        parts.append(
            f'<h2 id="{slug}">{title}</h2>{paragraphs}<img alt="{title}" src="data:image/png;base64,{image}">'
            f"<p><code>{_command(result)}</code>, seed {result['settings']['seed']}, "
            f"{result['seconds']:.0f} s on one core.</p>"
        )
    parts.append(f"<p>Results: <code>{digest(results)}</code></p></body></html>\n")
    return "\n".join(parts)


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


def _code(text: str) -> str:
    """Escaped text; what stands between backticks is code."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{part}</code>" if odd % 2 else part for odd, part in enumerate(parts))


def write(results: Path = RESULTS, figures: Path = FIGURES) -> None:
    """Both pages, beside the figures."""
    (figures / "index.md").write_text(markdown(results), encoding="utf-8")
    (figures / "claims.html").write_text(page(results, figures), encoding="utf-8")
