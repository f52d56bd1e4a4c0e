"""Write the golden releases: one of every kind, charged to one ledger, with the folders of some.

    python -m tests.golden.write_releases

They were written once, before the house was reshaped, so that what was published then can be read for ever. A new kind
is added by writing it beside them; an old one is never written again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from tests.releases import ASKED, PEOPLE, VERIFYING, a_release, people

from dpbayes import ApproxDP, Curator, Ledger, Release
from dpbayes.jobs import WideDistribution

HERE = Path(__file__).parent / "releases"
SEED = 20261118
AGAIN = [kind for kind in ASKED if kind != "wide"]
"""Kinds that the same seed makes again; the key of a wide distribution is never seeded."""


def folder_of(kind: str) -> Path:
    """Where the release of a kind stands."""
    return HERE / kind.replace(", ", "-").replace(" ", "-")


def seeded(kind: str, beside: Path) -> Release:
    """A release that can be made again: the same draws from the same seed."""
    asked = ASKED[kind]
    return Curator(people(), PEOPLE, seed=SEED).release(asked.job(beside), asked.target)


def drawn(release: Release) -> dict[str, list[float]]:
    """What the mechanisms drew, by table."""
    return {str(table.marginal): [float(each) for each in np.ravel(table.values)] for table in release.tables}


def main() -> None:
    """Add what is missing."""
    HERE.mkdir(exist_ok=True)
    path = HERE / "people.ledger"
    if not path.exists():
        Ledger(path).open("people", ApproxDP(epsilon=100, delta=1e-3), PEOPLE.unit, schema=PEOPLE.digest)
    for kind, asked in ASKED.items():
        where = folder_of(kind)
        if where.exists():
            continue
        with tempfile.TemporaryDirectory() as beside:
            release = Curator(people(), PEOPLE, ledger=path).release(asked.job(Path(beside)), asked.target)
            if kind == "wide":
                release = WideDistribution.load(Path(beside) / "people.wide").answer(["sex"])
            release.save(where)
            if kind in AGAIN:
                seeded(kind, Path(beside) / "again").save(HERE / "seeded" / where.name)
    for kind in VERIFYING:
        if not (file := HERE / f"{kind}.json").exists():
            file.write_text(a_release(kind).to_json(), encoding="utf-8")


if __name__ == "__main__":
    main()
