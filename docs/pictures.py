"""Draw the picture of README and the running cost of forty draws: ``python docs/pictures.py`` after a cost changes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from dpbayes import ApproxDP, Cost, Curator, Dirichlet, PureDP, Tables, Unit
from dpbayes.example import write_example
from dpbayes.mechanisms.tuning import ConcentrationCurve
from dpbayes.papers.tcdp import theorem_2
from dpbayes.plot.canvas import Picture, Shape, box, label, line, text
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


def _bars(x: float, y: float, name: str, share: float, said: str, kind: str = "bar") -> list[Shape]:
    """A bar of at most 200 pixels with its name before and its number behind it."""
    return [
        text(name, x - 8, y + 12, anchor="end"),
        box(kind, x, y, 200 * share, 14),
        text(said, x + 200 * share + 6, y + 12),
    ]


def front() -> Picture:
    """What a Dirichlet draw costs, by the theorem and exactly, beside a table as it is released."""
    shapes = [label("ε of one Dirichlet draw at δ = 10⁻⁵, by the theorem and exact", 4, 18, "start")]
    shapes.append(label("A released table: % of 20,000 records, with 95 % intervals", 440, 18, "start"))
    said = []
    for row, alpha in enumerate((2, 10, 50)):
        printed = theorem_2(alpha=alpha, delta=1e-5).printed
        exact = Dirichlet(1, alpha, "replace-one").epsilon(1e-5)
        shapes += _bars(70, 36 + 48 * row, f"α = {alpha}", printed / 16, f"{printed:.2f}", "grid")
        shapes += _bars(70, 53 + 48 * row, "", exact / 16, f"{exact:.2f}")
        said.append(f"{printed:.2f} and {exact:.2f} for α = {alpha}")
    with TemporaryDirectory() as folder:
        table, _ = write_example(folder)
        release = Curator(table, ledger="none", seed=1).release(Tables("region"), PureDP(0.02))
    frame = release["region"].to_arrow().to_pydict()
    for row, region in enumerate(frame["region"]):
        share, low, high = (frame[f"empirical{end}"][row] for end in ("", "_lower", "_upper"))
        y = 36 + 24 * row
        shapes += _bars(520, y, region, share / 0.4, "")
        shapes.append(line("whisker", (520 + 500 * low, y + 7), (520 + 500 * high, y + 7)))
        shapes.append(text(f"{100 * share:.1f} ± {50 * (high - low):.1f}", 740, y + 12))
    words = f"ε of one Dirichlet draw by the theorem and exact: {', '.join(said)}. Beside it a released table."
    return Picture(title="Exact cost, and a released table", words=words, width=840, height=190, shapes=tuple(shapes))


if __name__ == "__main__":
    front().save(DOCS / "readme.svg")
    running_cost(40, 2.0).save(DOCS / "how-to" / "posterior-sampling.svg")
