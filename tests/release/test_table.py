"""A released posterior is a table like any other: a frame, a picture, a section of the report, a measurement."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dpbayes import Attribute, Curator, Posterior, PosteriorTable, PureDP, Release, Schema, Unit
from dpbayes import Tables as Asked
from dpbayes.base.errors import InvalidArgument, ReleaseError
from dpbayes.cli.output import show_release
from dpbayes.hellinger.baselines import ClosingNoise
from dpbayes.mechanisms.laplace import LaplaceNoise
from dpbayes.models import Histogram
from dpbayes.report.page import report_html

SCHEMA = Schema(
    id="survey",
    unit=Unit(adjacency="replace-one"),
    records=100,
    attributes=(
        Attribute(name="sex", categories=("1", "2"), closed="2", labels={"1": "male", "2": "female"}),
        Attribute(name="town", categories=("a", "b"), closed="b"),
    ),
)
ROWS = {"sex": ["1", "2", "2", "2"] * 25, "town": ["a", "b"] * 50}


def released(marginal: str, mechanism: str = "laplace", epsilon: float = 0.8) -> Release:
    job = PosteriorTable(marginal=marginal, mechanism=mechanism, even_if_noise=True)  # type: ignore[arg-type]
    return Curator(ROWS, SCHEMA, seed=0).release(job, PureDP(epsilon=epsilon))


def test_two_closed_levels_are_the_beta_binomial_case() -> None:
    """Two levels and no third: where the noise vanishes, the released posterior is the Beta law of the counts."""
    view = released("sex", epsilon=50)["sex"]
    frame = view.to_pandas()
    assert frame["sex"].tolist() == ["1", "2"]
    assert frame["released_parameter"].tolist() == [26.0, 76.0]
    assert frame["population"].tolist() == pytest.approx([26 / 102, 76 / 102])
    assert frame["counts"].tolist() == [25.0, 75.0]
    now, before = view.reading.density(0, np.array([0.25, 0.5]))
    assert before.tolist() == [1.0, 1.0]
    assert now[0] > 1000 * now[1]
    with pytest.raises(ReleaseError, match="It has sex"):
        view.release["town"]


def test_every_face_shows_labels_intervals_and_densities_and_calls_parameters_released() -> None:
    made = released("sex,town")
    page = report_html(made)
    for said in ("male", "female · b", "% intervals", "Dashed: the prior"):
        assert said in page
    assert "counts as “female”" in page
    assert "released parameter" in report_html(released("sex"))
    assert "share of male" in made["sex,town"].plot().svg
    assert re.search(r"2 · b \d+ ± \d+ \(95 %\)", repr(made["sex,town"]))
    assert "Dashed" in made["sex,town"]._repr_html_()
    counted = Curator(ROWS, SCHEMA, seed=0).release(Asked("sex"), PureDP(epsilon=1))["sex"]
    with pytest.raises(ReleaseError, match="no released posterior"):
        assert counted.reading


@pytest.mark.parametrize(
    ("marginal", "mechanism", "at_every_share"),
    [
        ("sex", "auto", True),
        ("sex,town", "auto", True),
        ("sex", "laplace", True),
        ("sex", "improved-laplace", True),
        ("sex,town", "improved-laplace", False),
        ("sex", "hellinger", False),
        ("sex,town", "hellinger", False),
    ],
)
def test_every_face_says_which_promise_an_interval_makes(
    marginal: str, mechanism: str, at_every_share: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the noise of a cell has a law of its own, at every share; else on average over the prior, and not there."""
    made = released(marginal, mechanism)
    show_release(made, None)
    for face in (report_html(made), made[marginal]._repr_html_(), capsys.readouterr().out):
        said = " ".join(face.split())
        assert said.count("95 %, whatever that is") == at_every_share
        assert ("on average over the declared prior" in said) != at_every_share
        assert ("wrong nearly always" in said) != at_every_share
        assert not (at_every_share and "on average over that prior" in said)


@pytest.mark.parametrize("mechanism", ["auto", "laplace", "improved-laplace", "hellinger"])
@pytest.mark.parametrize("marginal", ["sex", "sex,town"])
def test_a_question_about_a_printed_cell_is_answered_by_what_is_printed(marginal: str, mechanism: str) -> None:
    """The same number has the same interval wherever it is asked, in any order of the axes."""
    made = released(marginal, mechanism)
    posterior, parts = Posterior([made]), made[marginal].table.products
    cell = "sex='2'" if marginal == "sex" else "town='a', sex='2'"
    index, way = (1, [0, 1]) if marginal == "sex" else (2, [0, 2, 1, 3])
    turned = posterior.table(",".join(reversed(marginal.split(","))))
    for asked, target, part, held in (
        (f"count({cell})", "records", "counts", turned.counts),
        (f"share({cell})", "records", "empirical", turned.records),
        (f"share({cell})", "population", "population", turned.population),
    ):
        found = posterior.ask(asked, target=target)  # type: ignore[arg-type]
        printed = parts[part]
        assert printed.lower is not None
        assert printed.upper is not None
        assert (found.estimate, found.lower, found.upper) == (
            printed.values[index],
            printed.lower[index],
            printed.upper[index],
        )
        assert found.notes == (made[marginal].reading.promise(),)
        np.testing.assert_array_equal(held.lower.ravel(), np.asarray(printed.lower)[way])
    several = posterior.ask("count(sex in ('1', '2'))")
    assert several.lower <= 100 <= several.upper


@pytest.mark.parametrize("mechanism", ["laplace", "improved-laplace"])
def test_a_released_posterior_is_one_more_measurement(mechanism: str) -> None:
    """With a table of the same data it says more than either; margins, questions and models follow from it."""
    one = released("sex,town", mechanism)
    other = Curator(ROWS, SCHEMA, seed=1).release(Asked("sex,town", mechanism="laplace"), PureDP(epsilon=0.8))
    alone, both = (Posterior(each).joint.linear(("sex", "town"))[1] for each in (one, [one, other]))
    assert (both < 0.75 * alone).all()
    posterior = Posterior(one)
    assert posterior.table("sex").counts.values.sum() == pytest.approx(100)
    found = posterior.ask("share(town='a' | sex='1')")
    assert 0 <= found.lower <= found.upper <= 1
    assert Histogram(attributes=("sex", "town")).build(one).synthesise(10).num_rows == 10


@pytest.mark.parametrize("marginal", ["sex", "sex,town"])
def test_a_posterior_drawn_among_candidates_is_weighed_with_tables_of_the_same_data(marginal: str) -> None:
    """Its law has two modes, so nothing is made of its moments, and models leave it out."""
    drawn = released(marginal, "hellinger", epsilon=4)
    table = Curator(ROWS, SCHEMA, seed=1).release(Asked("sex,town", mechanism="laplace"), PureDP(epsilon=1))
    assert drawn[marginal].to_pandas()["counts"].sum() == pytest.approx(100)
    widths = [
        (found := Posterior(each).table("sex").counts).upper - found.lower for each in (drawn, table, [drawn, table])
    ]
    assert (widths[2] <= np.minimum(widths[0], widths[1]) + 1).all()
    posterior = Posterior([drawn, table])
    assert posterior.ask("share(sex='1') - share(sex='2')").method == "draws"
    assert posterior.ask("share(town='a') - share(town='b')").method == ("draws" if "town" in marginal else "normal")
    assert posterior.draws([marginal], 5, np.random.default_rng(0))[0].shape[0] == 5
    with pytest.raises(ReleaseError, match="two modes"):
        Histogram(attributes=tuple(marginal.split(","))).build(drawn)


def test_what_has_no_law_of_its_noise_shows_its_parameters_and_no_estimates() -> None:
    job = PosteriorTable(marginal="sex", mechanism="exponential", score="kl")
    made = Curator(ROWS, SCHEMA, seed=0).release(job, PureDP(epsilon=1))
    assert made["sex"].table.products == {}
    assert "Released parameter. This table carries no estimate." in report_html(made)
    with pytest.raises(InvalidArgument, match="no estimates"):
        Posterior(made).table("sex")


def test_a_closed_sum_has_the_covariance_of_independent_noise_with_one_noisier_cell() -> None:
    """d − 1 noisy cells and the rest of the total: every contrast has the variance that the law states."""
    law = Posterior(released("sex,town")).joint
    _, found = law.functional(*({("sex", "town"): cell.reshape(2, 2)} for cell in np.eye(4)))
    variance = found[0, 0]
    own, closing = np.eye(3) * variance, -np.full(3, variance)
    expected = np.block([[own, closing[:, None]], [closing, np.array([3 * variance])]])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    noise = ClosingNoise(scale=released("sex,town").paid[0].mechanism.scale, shape=(2, 2))  # type: ignore[attr-defined]
    own = LaplaceNoise(scale=noise.scale).variance(np.zeros(1))[0]
    np.testing.assert_allclose(noise.variance(np.zeros((2, 2))), own * np.array([[1, 1], [1, 5]]))
    assert variance == pytest.approx(own)
