"""Make the picture of README and the running cost of forty draws: ``python docs/pictures.py`` after one changes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from dpbayes import ApproxDP, Cost, Curator, Ledger, Tables, Unit
from dpbayes.example import write_example
from dpbayes.mechanisms.tuning import ConcentrationCurve
from dpbayes.plot.canvas import Picture, line, text
from dpbayes.plot.pictures import Frame

DOCS = Path(__file__).resolve().parent
DELTA = 1e-6


def running_cost(draws: int, epsilon: float) -> Picture:
    """ε of the draws made so far, exactly and by the papers' bound."""
    target = ApproxDP(epsilon=epsilon, delta=DELTA)
    curve = ConcentrationCurve(target=target, unit=Unit("add-remove"), releases=draws)
    mechanism = curve.best(purpose="draw", cells=6, records=5000)
    at = sorted({1, *(round(draws * share / 6) for share in range(1, 7))})
    exact, papers = ([Cost.of(each, k).epsilon(DELTA) for k in at] for each in (mechanism, mechanism.published()))
    top = float(int(papers[-1]) + 1)
    frame = Frame(64, 30, 484, 270, (0.0, float(draws)), (0.0, top))
    shapes = frame.axes([0.0, draws / 2, float(draws)], [0.0, epsilon, top], "draws", "ε at δ = 10⁻⁶")
    for kind, values, said in (("line", exact, "exact"), ("guess", papers, "by the papers' bound")):
        points = [frame.at(float(k), value) for k, value in zip(at, values, strict=True)]
        shapes.append(line(kind, *points))
        shapes.append(text(said, points[-1][0] - 6, points[-1][1] + 22, anchor="end"))
    words = f"{draws} draws cost ε = {exact[-1]:.2f} together, and the first {exact[0]:.2f}."
    return Picture(title="Running cost", words=words, width=520, height=316, shapes=tuple(shapes))


def report(saved: Path) -> None:
    """The report of a real release of the example, as a browser shows it; needs chromium."""
    with TemporaryDirectory() as folder:
        table, schema = write_example(folder)
        Ledger(f"{folder}/survey.ledger").open(schema, ApproxDP(4, DELTA))
        about = {"title": "Income and region, 2026", "author": "Office of Statistics"}
        out, picture = Path(folder, "published"), Path(folder, "report.png")
        Curator(table).release(Tables("region", "income|sex"), ApproxDP(1, DELTA), about=about, out=out)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=820,760"]
        command = ["chromium", *options, f"--screenshot={picture}", (out / "report.html").as_uri()]
        subprocess.run(command, check=True, capture_output=True)
        Image.open(picture).convert("RGB").quantize(64).save(saved, optimize=True)


if __name__ == "__main__":
    report(DOCS / "report.png")
    running_cost(40, 2.0).save(DOCS / "how-to" / "posterior-sampling.svg")
