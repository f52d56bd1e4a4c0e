"""Pictures: drawn from public objects, in four formats, true to their numbers, and readable without seeing them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.releases import ADD, PEOPLE, REPLACE, a_release, people

from dpbayes import ApproxDP, BayesNet, Cost, Curator, Gaussian, Laplace
from dpbayes.base.errors import InvalidArgument
from dpbayes.design.ranking import Ranking, ranking
from dpbayes.jobs import Fit
from dpbayes.models.fidelity import Scores
from dpbayes.plot.canvas import FORMATS, Picture, stacked
from dpbayes.plot.pictures import calibration_picture, errors_picture

COST = Cost.of(Gaussian(sigma=9, unit=REPLACE), 2) + Cost.of(Laplace(scale=40, unit=REPLACE))


@pytest.fixture(scope="module")
def ranked() -> Ranking:
    return ranking(cells=4, records=500, target=ApproxDP(epsilon=1, delta=1e-6), unit=REPLACE)


@pytest.fixture(scope="module")
def model() -> object:
    edges = (("sex", "age"), ("sex", "income"), ("age", "income"))
    made = Curator(people(), PEOPLE, seed=1).release(Fit(model=BayesNet(edges=edges)), ApproxDP(epsilon=3, delta=1e-6))
    return made.model()


@pytest.fixture(scope="module")
def pictures(ranked: Ranking, model: object) -> dict[str, Picture]:
    return {
        "shares": a_release("joint")["sex,income"].plot(),
        "groups": a_release("conditional")["income|region"].plot(),
        "hostile": a_release("hostile")['"<b>bold</b>"'].plot(),
        "profile": COST.plot(),
        "trade-off": COST.plot("tradeoff"),
        "plan": errors_picture(
            [(each.label, each.mean, each.quantile) for each in ranked.predictions],
            ranked.choice.label,
            failure=0.05,
            measure="KL divergence",
            title="Predicted error",
            why=ranked.why,
        ),
        "network": model.plot(),  # type: ignore[attr-defined]
        "table": model.plot(node="income"),  # type: ignore[attr-defined]
    }


NAMES = ("shares", "groups", "hostile", "profile", "trade-off", "plan", "network", "table")


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_sound_svg_that_says_in_words_what_it_shows(name: str, pictures: dict[str, Picture]) -> None:
    picture = pictures[name]
    root = ElementTree.fromstring(picture.svg)
    assert root.attrib["role"] == "img"
    assert len(root.attrib["aria-label"]) > 20
    inside = [float(number) for shape in root.iter("text") for number in (shape.attrib["x"], shape.attrib["y"])]
    assert all(-1 <= number <= max(picture.width, picture.height) for number in inside)
    assert "style=" not in picture.svg
    assert "<script" not in picture._repr_html_()


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_is_written_and_the_same_picture_has_the_same_bytes(
    suffix: str, pictures: dict[str, Picture], tmp_path: Path
) -> None:
    starts = {".svg": b"<svg xmlns=", ".html": b"<!doctype html>", ".png": b"\x89PNG", ".pdf": b"%PDF"}
    for name, picture in pictures.items():
        written = picture.save(tmp_path / f"{name}{suffix}").read_bytes()
        assert written.startswith(starts[suffix])
    if suffix in (".svg", ".html"):
        ElementTree.fromstring(pictures["hostile"].save(tmp_path / "h.svg").read_text())
        assert (
            pictures["plan"].save(tmp_path / f"again{suffix}").read_bytes() == (tmp_path / f"plan{suffix}").read_bytes()
        )


def test_other_formats_are_refused(pictures: dict[str, Picture], tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"\.svg, \.html, \.png, \.pdf"):
        pictures["plan"].save(tmp_path / "c.gif")
    with pytest.raises(InvalidArgument, match="profile, tradeoff"):
        COST.plot("price")  # type: ignore[arg-type]


def dots(picture: Picture) -> list[tuple[float, float]]:
    return [shape.points[0] for shape in picture.shapes if shape.what == "dot"]


def test_a_plan_marks_means_on_a_logarithmic_axis_and_draws_no_bars(
    ranked: Ranking, pictures: dict[str, Picture]
) -> None:
    picture = pictures["plan"]
    assert not [shape for shape in picture.shapes if shape.what == "box"]
    at = np.array([x for x, _ in dots(picture)])
    means = np.log10([row.mean for row in ranked.predictions])
    slope = np.polyfit(means, at, 1)
    assert at == pytest.approx(np.polyval(slope, means), abs=0.5)
    assert slope[0] > 0
    chosen = [shape for shape in picture.shapes if shape.kind == "chosen"]
    assert len(chosen) == 1
    assert any("the dot is the mean" in shape.text for shape in picture.shapes)


def test_the_profile_passes_through_the_epsilon_of_the_cost(pictures: dict[str, Picture]) -> None:
    (marked,) = (shape for shape in pictures["profile"].shapes if shape.kind == "text")
    assert marked.text == f"ε = {COST.epsilon(1e-6):.3g} at δ = 1e-06"
    (curve,) = (shape for shape in pictures["profile"].shapes if shape.kind == "line")
    heights = [y for _, y in curve.points]
    assert heights == sorted(heights)


POINTS = np.arange(-400, 401)


def best_tests(weights: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """How often the best test of a law on the integers against itself moved by one misses, by Neyman and Pearson."""
    p = weights / weights.sum()
    q = np.roll(p, 1)
    order = np.argsort(-(q / np.maximum(p, 1e-300)), kind="stable")
    alarms, found = (np.concatenate([[0.0], np.cumsum(law[order])]) for law in (p, q))
    return np.interp(alphas, alarms, 1.0 - found)


@pytest.mark.parametrize(
    ("mechanism", "weights"),
    [
        (Gaussian(sigma=1.0, unit=ADD), np.exp(-(POINTS**2) / 2)),
        (Gaussian(sigma=7.0, unit=ADD), np.exp(-(POINTS**2) / 98)),
        (Laplace(scale=2.0, unit=ADD), np.exp(-np.abs(POINTS) / 2)),
    ],
    ids=["gaussian 1", "gaussian 7", "laplace 2"],
)
def test_no_test_lies_below_the_trade_off_curve_and_the_best_lie_on_it(
    mechanism: Gaussian, weights: np.ndarray
) -> None:
    (curve,) = (shape for shape in Cost.of(mechanism).plot("tradeoff").shapes if shape.kind == "line")
    alphas = np.array([(x - 64) / 320 for x, _ in curve.points])
    drawn = np.array([(350 - y) / 320 for _, y in curve.points])
    truth = best_tests(weights, alphas)
    assert (drawn <= truth + 1e-9)[1:].all()
    assert (truth - drawn).max() < 1e-2


def test_bars_are_as_long_as_their_shares(pictures: dict[str, Picture]) -> None:
    product = a_release("joint").tables[0].products["empirical"]
    boxes = [shape.size[0] for shape in pictures["shares"].shapes if shape.kind == "bar"]
    told = np.array(boxes) > 0
    shares = product.values[: len(boxes)]
    assert np.array(boxes)[told] / shares[told] == pytest.approx(boxes[0] / shares[0], rel=1e-6)


def test_a_network_has_its_nodes_and_a_table_its_rows(pictures: dict[str, Picture]) -> None:
    texts = {shape.text for shape in pictures["network"].shapes}
    assert {"sex", "age", "income"} <= texts
    assert "sex to income" in pictures["network"].words
    rows = {shape.text for shape in pictures["table"].shapes}
    assert "F, 0 to under 30" in rows
    assert "not stated" in rows


def test_an_unknown_node_is_refused_by_name(model: object) -> None:
    with pytest.raises(InvalidArgument, match="no node 'town'"):
        model.plot(node="town")  # type: ignore[attr-defined]


def test_pictures_can_be_stacked_and_keep_their_shapes(pictures: dict[str, Picture]) -> None:
    both = stacked([pictures["network"], pictures["table"]], "model")
    assert len(both.shapes) == 2 + len(pictures["network"].shapes) + len(pictures["table"].shapes)
    bins = {"confidence": (0.2, 0.8), "correct": (0.3, 0.7), "shares": (0.5, 0.5)}
    scored = Scores(records=10, accuracy=0.5, cross_entropy=1.0, **bins)
    assert len(dots(calibration_picture(scored))) == 2


def test_a_table_without_estimates_says_so() -> None:
    with pytest.raises(InvalidArgument, match="carries no estimate"):
        a_release("joint").drawn()["sex,income"].plot()


def test_notebooks_get_the_style_of_the_report() -> None:
    for thing in (a_release("joint"), a_release("joint")["sex,income"], COST, PEOPLE):
        html = thing._repr_html_()
        assert html.startswith('<div class="dpbayes"><style>@scope (.dpbayes)')
        assert "@page" not in html
        assert not re.search(r"url\(|@import|https?:", html)
