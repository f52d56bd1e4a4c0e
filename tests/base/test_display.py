"""Every public object shows itself on one screen, and shows nothing private."""

from __future__ import annotations

import inspect
from functools import lru_cache
from tempfile import TemporaryDirectory

import pytest

import dpbayes as dp
from dpbayes.base import display

UNIT = dp.Unit(adjacency="replace-one")
TARGET = dp.ApproxDP(epsilon=1.0, delta=1e-6)
MANY = tuple(f"occupation number {number}" for number in range(80))
ROWS = {"job": [MANY[7]] * 7331 + [MANY[8]] * 23, "sex": ["F"] * 7354}
SECRET = ("7331", "7,331", "7354", "7,354")


@lru_cache(maxsize=1)
def examples() -> dict[str, object]:
    """One object of every kind, of a table whose counts nobody may see."""
    schema = dp.Schema(
        id="survey",
        unit=dp.Unit(adjacency="add-remove"),
        attributes=(
            dp.Attribute(name="job", categories=MANY, missing="other"),
            dp.Attribute(name="sex", categories=("F", "M"), missing="other"),
        ),
    )
    curator = dp.Curator(ROWS, schema)
    tables = dp.Tables("sex", "job|sex", mechanism="gaussian")
    release = curator.release(tables, TARGET)
    quantiles = dp.jobs.Quantiles(lower=0, upper=120)
    gaussian = dp.Gaussian(sigma=10, unit=UNIT)
    specs = (
        dp.NaiveBayes(target="job"),
        dp.BayesNet(edges=[("sex", "job")]),
        dp.models.Histogram(attributes=("sex", "job")),
    )
    posterior = dp.hellinger.Hellinger(
        prior=(1.0, 1.0), total=98, sharpness=0.8, smoothing=0.0, calibration="proved", unit=UNIT
    )
    with TemporaryDirectory() as folder:
        wide = dp.jobs.Wide(marginal=dp.schema.Marginal.parse("sex,job"), state=f"{folder}/people.wide")
        curator.release(wide, TARGET)
        opened = dp.jobs.WideDistribution.load(f"{folder}/people.wide")
    made: tuple[object, ...] = (
        *(dp.RDP(order=5, epsilon=1), dp.TCDP(rho=0.1, omega=10), dp.ZCDP(rho=0.1), dp.PureDP(epsilon=1), TARGET),
        *(
            dp.privacy.AdaptiveDP(epsilon=1, delta=1e-6),
            dp.schema.Adjacency.ADD_REMOVE,
            schema.attributes[0],
            schema,
            UNIT,
        ),
        *(UNIT.sensitivity, dp.schema.Marginal.parse("job|sex"), dp.schema.Prior(of=("sex",), shares=(1.0, 1.0, 1.0))),
        *(gaussian, dp.Laplace(scale=3, unit=UNIT), dp.Dirichlet(weight=1, concentration=10, unit=UNIT)),
        *(dp.mechanisms.PseudoRecords(weight=1.0, concentration=10.0, records=5, unit=UNIT), posterior),
        dp.mechanisms.Stated(epsilon_stated=1.0, delta_stated=1e-6, unit=UNIT, what="a histogram"),
        dp.mechanisms.ConcentrationCurve(target=TARGET, unit=UNIT),
        dp.privacy.Family(name="noise", make=lambda sigma: dp.Gaussian(sigma=sigma, unit=UNIT)),
        *(dp.Cost.of(gaussian, 3), dp.Ledger("survey.ledger"), curator, curator.plan(tables, TARGET), release),
        *(
            tables,
            dp.jobs.Fit(model=specs[0]),
            *specs,
            wide,
            opened,
            quantiles,
            dp.Edges(column="age", quantiles=quantiles),
        ),
        *(dp.models.Latent(target="sex"), dp.Synthetic(target="sex"), dp.Request(tables=("sex",), target=TARGET)),
        dp.jobs.Vector(marginal="sex", entries=("young", "old"), scores=((1.0, 0.0), (0.0, 1.0), (0.5, 0.5))),
        *(dp.Categories(column="job"), dp.PosteriorTable(marginal="sex"), release["sex"], release.posterior()),
        dp.models.Histogram(attributes=("sex",)).build(release),
        curator.release(dp.NaiveBayes(target="sex"), TARGET).model(),
        curator.release(dp.BayesNet(edges=[("sex", "job")]), TARGET).model(),
    )
    found = {type(example).__name__: example for example in made}
    return found | {"Unit": UNIT, "PosteriorTable": dp.PosteriorTable("sex")}


CLASSES = [name for name in dp.__all__ if inspect.isclass(getattr(dp, name))]
RICH = ["Schema", "Attribute", "Ledger", "Plan", "Cost", "Curator", "Release", "TableView"]
MODELS = ["NaiveBayesModel", "BayesNetModel", "HistogramModel"]


@pytest.mark.parametrize("name", [*CLASSES, *MODELS, "TableView"])
def test_an_object_fits_one_screen_and_shows_no_counts(name: str) -> None:
    text = repr(examples()[name])
    assert 0 < len(text) < 2000
    assert len(text.splitlines()) < 25
    assert not [secret for secret in SECRET if secret in text]


@pytest.mark.parametrize("name", [*RICH, *MODELS])
def test_notebooks_show_a_table_in_which_everything_is_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dp.Ledger, "datasets", lambda _: ["survey"])
    page = examples()[name]._repr_html_()  # type: ignore[attr-defined]
    assert page.startswith("<")
    assert "survey" in page or name in ("Attribute", "Cost", "TableView")
    published = name in ("Release", "TableView")  # noisy counts may happen to be right
    assert published or not [secret for secret in SECRET if secret in page]


def test_names_are_escaped_in_notebooks() -> None:
    attribute = dp.Attribute(name="<script>", categories=("<b>", "x"), missing="other")
    assert "<script>" not in attribute._repr_html_()
    assert "&lt;b&gt;" in attribute._repr_html_()


def test_long_lists_are_cut() -> None:
    assert display.listed(MANY, most=2) == "occupation number 0, occupation number 1, … and 78 more"
    assert len(display.as_text("t", [("name", "x" * 999)] * 99)) < 2000
