"""``dpbayes export``: what a release needs to leave the building."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dpbayes.cli import options
from dpbayes.cli.output import tell
from dpbayes.errors import InvalidArgument
from dpbayes.release.format import Release


def export_command(
    release: options.ReleaseFile,
    out: Annotated[Path, typer.Argument(help="New folder to write.")],
    also: Annotated[
        list[str] | None,
        typer.Option("--with", help="xlsx (a workbook), sheet (a privacy sheet) or registry (an entry); repeatable."),
    ] = None,
    numbers: Annotated[Literal["csv", "parquet"], typer.Option(help="Format of the numbers files.")] = "csv",
    curator: Annotated[str | None, typer.Option(help="Registry: who publishes, as an office or a company.")] = None,
    curator_type: Annotated[
        Literal["Government", "Industry", "Nonprofit"] | None, typer.Option(help="Registry: what kind of publisher.")
    ] = None,
    region: Annotated[str | None, typer.Option(help="Registry: which region the data describe.")] = None,
    sector: Annotated[
        Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"] | None,
        typer.Option(help="Registry: which sector the data describe."),
    ] = None,
) -> None:
    """Write a release once more, with everything that its readers need. It costs nothing.

    Example: dpbayes export published public --with xlsx --with sheet
    """
    from dpbayes.report.folder import save
    from dpbayes.report.registry import Deployment

    deployment = None
    if "registry" in (also or ()):
        if curator is None or curator_type is None or region is None:
            raise InvalidArgument("export: expected --curator, --curator-type and --region with --with registry.")
        deployment = Deployment(curator=curator, curator_type=curator_type, region=region, sector=sector)
    paths = save(Release.load(release), out, numbers=numbers, also=also or (), deployment=deployment)  # type: ignore[arg-type]
    tell(f"Written to {out}: {', '.join(path.name for path in paths)}.")
