"""``dpbayes affected``: which ledgers and files of earlier versions promise more than they keep?"""

from __future__ import annotations

from typing import Annotated

import typer

from dpbayes.cli import options
from dpbayes.cli.output import print_json, tell


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("affected")(affected_command)


def affected_command(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH…", help="Ledgers, exports, published files, schemas, or folders of them."),
    ],
    as_json: options.AsJson = False,
) -> None:
    """List charges and releases of earlier versions whose guarantee was stated too small, and what to do.

    Exit code 1 if anything is affected or needs a check. Nothing is changed.

    Example: dpbayes affected survey.ledger published/
    """
    from dpbayes.advisories import search
    from dpbayes.advisories.known import ADVISORIES

    report = search(paths)
    if as_json:
        findings = [finding.record() for finding in report.findings]
        print_json({"files": report.files, "damaged": report.damaged, "findings": findings})
    else:
        for name, advisory in ADVISORIES.items():
            touched = [finding for finding in report.findings if finding.advisory == name]
            if touched:
                tell(f"{advisory.title} ({name})")
                for finding in touched:
                    tell(f"  {finding.where}: {finding.what}")
                    tell(f"    stated: {finding.stated}")
                    tell(f"    true:   {finding.true}")
                tell(f"  What to do: {advisory.remedy}\n")
        for path in report.damaged:
            tell(f"{path} is damaged, so nothing can be said of it. Check it with verify or ledger verify.")
        counted = sum(finding.status != "unknown" for finding in report.findings)
        tell(f"{report.files} files looked at, {counted or 'no'} findings.")
    if not report.clean:
        raise typer.Exit(1)
