from __future__ import annotations

import datetime as dt
import pickle
from dataclasses import replace
from decimal import Decimal
from types import FunctionType, ModuleType

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpbayes import RDP, ApproxDP, PureDP, Unit
from dpbayes.base.errors import InvalidArgument, LedgerError, SchemaError
from dpbayes.jobs import Quantiles
from dpbayes.jobs.model import CANDIDATES
from dpbayes.ledger.ledger import Ledger
from dpbayes.mechanisms.selection import Selection
from dpbayes.schema import Adjacency
from dpbayes.sklearn import ONE_ROW, STANDARDISED, AssumedPublic, PrivateCategoricalNB, SecondRelease, forget
from dpbayes.tables.engine import CodedTable

from .models.examples import weather, weather_schema

CATEGORIES = {"street": ["dry", "wet"], "umbrella": ["none", "carried", "open"], "day": [f"d{i}" for i in range(7)]}


def estimator(**options) -> PrivateCategoricalNB:
    made = {"categories": CATEGORIES, "classes": ["no", "yes"], "unit": ONE_ROW, "random_state": 3}
    return PrivateCategoricalNB(**{**made, **options})


def frame(rows: int = 3000, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    data = weather(rows, seed)
    return pd.DataFrame(data).drop(columns="rain"), data["rain"]


@pytest.mark.filterwarnings("ignore::dpbayes.sklearn.AssumedPublic")
@pytest.mark.filterwarnings("ignore::dpbayes.sklearn.SecondRelease")
@pytest.mark.filterwarnings("ignore::dpbayes.base.errors.MeaninglessBudget")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([PrivateCategoricalNB(edges=STANDARDISED, unit=ONE_ROW)])
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


reads_polars = pytest.mark.skipif(
    not hasattr(pl.DataFrame, "__dataframe__") and tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9),
    reason="scikit-learn before 1.9 cannot read the column names of this polars",
)


@pytest.mark.parametrize("library", ["pandas", pytest.param("polars", marks=reads_polars), "numpy"])
def test_frames_of_texts_are_learned(library):
    X, y = frame()
    options = {"epsilon": 5.0}
    if library == "polars":
        X = pl.from_pandas(X)
    if library == "numpy":
        X, options["categories"] = X.to_numpy(), list(CATEGORIES.values())
    nb = estimator(**options).fit(X, y)
    assert nb.score(X, y) > 0.9
    assert nb.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    assert list(nb.classes_) == ["no", "yes"]


def test_integer_codes_and_declared_edges_are_learned():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=3000)
    X = np.column_stack([y * 2 + rng.integers(2, size=3000), rng.normal(3.0 * y, 1.0)])
    nb = PrivateCategoricalNB(
        categories=[range(4), None], edges=[None, (-5, 0, 1, 2, 3, 10)], classes=[0, 1], unit=ONE_ROW, random_state=0
    )
    assert nb.fit(X, y).score(X, y) > 0.95


def test_missing_and_unseen_values_have_their_levels():
    X, y = frame()
    X.loc[:99, "street"] = None
    nb = estimator().fit(X, y)
    odd = X.head(3).assign(street=[None, "flooded", np.nan], umbrella="stolen")
    assert nb.predict_proba(odd).shape == (3, 2)
    assert np.isfinite(nb.predict_log_proba(odd)).all()


def test_attributes_have_the_shapes_of_scikit_learn():
    X, y = frame()
    nb = estimator().fit(X, y)
    assert nb.class_log_prior_.shape == (2,)
    assert [table.shape for table in nb.feature_log_prob_] == [(2, 4), (2, 5), (2, 9)]
    assert nb.release_.seeded
    assert nb.n_features_in_ == 3


def test_a_seed_takes_the_guarantee_away_and_no_seed_gives_it():
    X, y = frame(500)
    assert estimator().fit(X, y).guarantee_ is None
    private = estimator(random_state=None).fit(X, y)
    assert private.guarantee_ == ApproxDP(epsilon=1.0, delta=1e-6)
    assert "one person" in private.statement_


def test_fits_without_a_ledger_say_what_they_cost_together():
    X, y = frame(500)
    nb = estimator(random_state=None, tempered=False).fit(X, y)
    with pytest.warns(SecondRelease, match=r"2 fits .* ε=1\.4\d* at δ=1e-06") as caught:
        clone(nb).fit(X, y)
    assert caught[0].filename == __file__
    with pytest.warns(SecondRelease, match="3 fits"):
        nb.fit(X, y)
    forget()
    nb.fit(X, y)  # of other people: no warning, which would be an error here
    estimator().fit(X, y)  # seeded: promises nothing, and costs nothing


def test_a_cross_validation_announces_its_total():
    X, y = frame(500)
    with pytest.warns(SecondRelease) as caught:
        cross_val_score(estimator(random_state=None, tempered=False), X, y, cv=3)
    assert [str(each.message).split(": ")[1].split(" fits")[0] for each in caught] == ["2", "3"]


def test_weights_and_partial_fits_are_refused_with_a_reason():
    X, y = frame(500)
    with pytest.raises(InvalidArgument, match="count for many"):
        estimator().fit(X, y, sample_weight=np.ones(500))
    with pytest.raises(AttributeError, match=r"(?s)partial_fit"):
        estimator().partial_fit(X, y)
    assert not hasattr(estimator(), "partial_fit")


def test_texts_without_declared_categories_are_refused_and_none_is_named():
    X, y = frame(500)
    with pytest.raises(SchemaError, match="pass categories=") as caught:
        estimator(categories={"street": ["dry", "wet"]}).fit(X, y)
    assert "carried" not in str(caught.value)


def test_classes_from_y_are_used_with_a_warning():
    X, y = frame(500)
    with pytest.warns(AssumedPublic, match="Declare classes="):
        estimator(classes=None).fit(X, y)


def test_records_of_undeclared_classes_are_dropped_and_nobody_is_told():
    X, y = frame(1500)
    y = np.where(np.arange(1500) % 10 == 0, "secret", y)
    nb = estimator(epsilon=5.0).fit(X, y)
    assert list(nb.classes_) == ["no", "yes"]
    assert "secret" not in nb.release_.to_json()
    assert nb.score(X[y != "secret"], y[y != "secret"]) > 0.9


def test_grid_search_and_pickle_work_and_every_fit_is_charged(tmp_path):
    X, y = frame(600)
    path = str(tmp_path / "weather.ledger")
    Ledger(path).open("weather", ApproxDP(epsilon=50, delta=1e-5), Unit(adjacency=Adjacency.REPLACE_ONE))
    nb = estimator(ledger=path, random_state=None)
    search = GridSearchCV(make_pipeline(nb), {"privatecategoricalnb__epsilon": [0.5, 1.0]}, cv=2).fit(X, y)
    assert len(Ledger(path).account("weather").charges) == 2 * 2 + 1
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert (again.predict(X) == search.predict(X)).all()


def reachable(start: object) -> list[object]:
    """Everything that hangs on an object, as pickle and the garbage collector would find it."""
    import gc

    seen: dict[int, object] = {}
    left = [start]
    while left:
        each = left.pop()
        if id(each) not in seen and not isinstance(each, (type, ModuleType, FunctionType)):
            seen[id(each)] = each
            left += gc.get_referents(each)
    return list(seen.values())


def test_a_fitted_estimator_and_its_pickle_hold_no_rows(tmp_path):
    X, y = frame(500)
    X["umbrella"] = [f"canary-{row}" for row in range(500)]
    path = str(tmp_path / "weather.ledger")
    Ledger(path).open("weather", ApproxDP(epsilon=50, delta=1e-5), Unit(adjacency=Adjacency.REPLACE_ONE))
    for options in ({"random_state": None, "ledger": path}, {}):
        nb = estimator(**options).fit(X, y)
        held = reachable(nb)
        assert any(each is nb.model_ for each in held)  # or else nothing was searched
        assert not [each for each in held if isinstance(each, (CodedTable, pd.DataFrame))]
        assert not [each for each in held if isinstance(each, np.ndarray) and each.shape[:1] == (500,)]
        assert b"canary" not in pickle.dumps(nb)


def test_a_schema_can_declare_everything():
    data = weather(2000)
    nb = PrivateCategoricalNB(schema=weather_schema(), target="rain", epsilon=4.0, random_state=1)
    X = pd.DataFrame(data).drop(columns="rain")
    nb.fit(X, data["rain"])
    assert list(nb.classes_) == ["no", "yes", "other"]
    assert nb.score(X, data["rain"]) > 0.9


def test_constant_columns_and_empty_classes_do_no_harm():
    X, y = frame(1500)
    X["street"] = "wet"
    nb = estimator(classes=["maybe", "no", "yes"], epsilon=5.0).fit(X, y)
    assert nb.score(X, y) > 0.8
    assert np.isfinite(nb.class_log_prior_).all()


def test_the_temperature_is_paid_from_the_same_budget():
    X, y = frame(500)
    nb = estimator(tempered=True).fit(X, y)
    assert nb.model_.temperature in CANDIDATES
    release = nb.release_
    [choice] = [paid.mechanism for paid in release.paid if isinstance(paid.mechanism, Selection)]
    assert 0 < choice.epsilon(1e-7) <= 0.1 + 1e-6
    assert -1e-6 < ApproxDP(epsilon=1.0, delta=1e-6).gap(release.cost) <= 0
    assert estimator(tempered=False).fit(X, y).model_.temperature > 0.9  # only noise lowers it


def test_repeated_evidence_is_trusted_less():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=4000)
    one = np.where(rng.random(4000) < 0.75, y, 1 - y)
    X = np.repeat(one[:, None], 12, axis=1)
    options = {"categories": [range(2)] * 12, "classes": [0, 1], "unit": ONE_ROW, "epsilon": 10.0, "random_state": 0}
    sure = PrivateCategoricalNB(tempered=False, **options).fit(X, y)
    calm = PrivateCategoricalNB(**options).fit(X, y)
    assert calm.model_.temperature <= 0.125
    loss = [-nb.predict_log_proba(X)[np.arange(4000), y].mean() for nb in (calm, sure)]
    assert loss[0] < 0.6 * loss[1]


def test_private_quantiles_are_bought_from_the_same_budget(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=4000)
    X = np.column_stack([rng.normal(20.0 * y, 8.0), rng.integers(3, size=4000)])
    path = str(tmp_path / "x.ledger")
    goal = ApproxDP(epsilon=2.0, delta=1e-6)
    Ledger(path).open("x", goal, Unit(adjacency=Adjacency.REPLACE_ONE))
    nb = PrivateCategoricalNB(
        epsilon=2.0, delta=1e-6, categories=[None, range(3)], classes=[0, 1], unit=ONE_ROW,
        edges=[Quantiles(lower=-40, upper=60, bins=6), None], ledger=path,
    )  # fmt: skip
    nb.fit(X, y)
    edges = nb.model_.published.schema["x0"].edges
    assert edges[0] == -np.inf
    assert 3 <= len(edges) <= 7
    assert all(-40 <= edge <= 60 for edge in edges[1:-1])
    assert nb.score(X, y) > 0.8
    account = Ledger(path).account("x")
    assert len(account.charges) == 1
    assert 0 <= account.left() < 0.02


@pytest.mark.parametrize(
    "odd",
    [b"canary", "canary", dt.date(1987, 6, 5), dt.datetime(1987, 6, 5), 10**400, object(), Decimal("sNaN"), 1j, True],
    ids=lambda odd: type(odd).__name__,
)
def test_values_that_are_no_numbers_count_nowhere_and_are_not_repeated(odd):
    X = pd.DataFrame({"x": np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, None, odd] * 25, dtype=object)})
    options = {
        "edges": {"x": Quantiles(lower=0, upper=10, bins=3)},
        "classes": [0, 1],
        "tempered": False,
        "unit": ONE_ROW,
    }
    nb = PrivateCategoricalNB(epsilon=2.0, **options).fit(X, np.tile([0, 1], 100))
    edges = nb.model_.published.schema["x"].edges
    assert edges[-1] == np.inf
    assert all(0 <= edge <= 10 for edge in edges[1:-1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"lower": 1, "upper": 1},
        {"lower": 0, "upper": np.inf},
        {"lower": 0, "upper": 1, "bins": 50, "candidates": 20},
        {"lower": 0, "upper": 1, "bins": 1},
    ],
)
def test_impossible_quantiles_are_refused(wrong):
    with pytest.raises(InvalidArgument, match="Quantiles"):
        Quantiles(**wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"categories": {**CATEGORIES, "umbrela": ["none"]}}, "names 'umbrela', and there is no such column"),
        ({"edges": {"strete": (0, 1, 2)}}, "names 'strete'"),
        ({"categories": [["dry", "wet"], ["none"]]}, "one entry for each of the 3 columns, got 2"),
        ({"edges": "standardized"}, "got the text 'standardized'"),
    ],
)
def test_misspelt_declarations_are_refused(wrong, words):
    X, y = frame(100)
    with pytest.raises(SchemaError, match=words):
        estimator(**wrong).fit(X, y)


def test_numbers_without_edges_are_refused_by_type():
    X, y = np.zeros((50, 2)), np.tile([0, 1], 25)
    with pytest.raises(SchemaError, match="holds numbers and declares neither"):
        PrivateCategoricalNB(classes=[0, 1], unit=ONE_ROW).fit(X, y)
    nb = PrivateCategoricalNB(classes=[0, 1], edges=STANDARDISED, epsilon=8.0, unit=ONE_ROW).fit(X, y)
    assert nb.model_.published.schema["x1"].edges[1] == -2.0


def test_dates_are_refused_in_a_sentence():
    X = pd.DataFrame({"born": pd.to_datetime(["1990-01-01", "1985-05-05"] * 25)})
    with pytest.raises(SchemaError, match="holds dates"):
        PrivateCategoricalNB(classes=[0, 1], edges={"born": (0, 1)}, unit=ONE_ROW).fit(X, np.tile([0, 1], 25))


@reads_polars
def test_enums_declare_their_categories():
    X, y = frame(2000)
    enums = pl.from_pandas(X).with_columns(
        pl.col("street").cast(pl.Enum(["dry", "wet"])), pl.col("umbrella").cast(pl.Enum(["none", "carried", "open"]))
    )
    nb = estimator(categories={"day": CATEGORIES["day"]}, epsilon=8.0).fit(enums, y)
    assert nb.model_.published.schema["umbrella"].categories == ("none", "carried", "open")
    assert nb.score(enums, y) > 0.9


def test_types_that_name_their_categories_declare_them():
    X, y = frame(2000)
    options = {"categories": {"day": CATEGORIES["day"]}, "epsilon": 8.0}
    typed = X.astype(
        {"street": pd.CategoricalDtype(["wet", "dry"]), "umbrella": pd.CategoricalDtype(["none", "carried", "open"])}
    )
    with pytest.warns(AssumedPublic, match="astype"):
        nb = estimator(**options).fit(typed, y)
    assert nb.model_.published.schema["street"].categories == ("wet", "dry")
    assert nb.score(typed, y) > 0.9
    truths = X.assign(street=X["street"] == "wet")
    nb = estimator(categories={name: CATEGORIES[name] for name in ("umbrella", "day")}, epsilon=8.0).fit(truths, y)
    assert nb.model_.published.schema["street"].categories == ("false", "true")
    assert nb.score(truths, y) > 0.9


def test_labels_match_the_classes_by_their_text():
    X, y = frame(2000)
    written = np.where(y == "yes", "1", "0")
    nb = estimator(classes=[0, 1], epsilon=8.0).fit(X, written)
    assert nb.classes_.tolist() == [0, 1]
    assert (nb.predict(X) == written.astype(int)).mean() > 0.9


def test_a_schema_with_another_number_of_records_than_the_rows_is_refused_and_not_charged(tmp_path):
    schema, book = replace(weather_schema(), records=3001), Ledger(tmp_path / "weather.ledger")
    book.open(schema, ApproxDP(epsilon=9, delta=1e-4))
    with pytest.raises(SchemaError, match="records = 3,001, and the table has 3,000 rows"):
        PrivateCategoricalNB(schema=schema, target="rain", epsilon=1.0, delta=1e-6, ledger=book).fit(*frame())
    assert not book.account(schema.id).charges


def test_a_schema_may_be_a_path(tmp_path):
    X, y = frame(500)
    path = tmp_path / "weather.toml"
    path.write_text(weather_schema().to_toml(), encoding="utf-8")
    nb = PrivateCategoricalNB(schema=str(path), target="rain", random_state=1).fit(X, y)
    assert nb.model_.published.schema == weather_schema()


def test_the_comparison_without_noise_is_the_model_of_the_counts_and_is_not_private(tmp_path):
    X, y = frame(4000)
    path = tmp_path / "weather.ledger"
    Ledger(path).open("sklearn", ApproxDP(epsilon=1, delta=1e-6), Unit(adjacency=Adjacency.REPLACE_ONE))
    nb = estimator(private=False, tempered=False, random_state=None, ledger=path).fit(X, y)
    assert nb.guarantee_ is None
    assert "no privacy at all" in nb.statement_
    assert not Ledger(path).account("sklearn").charges
    truth = np.array(
        [[((X["street"] == street) & (y == rain)).mean() for street in ("dry", "wet")] for rain in ("no", "yes")]
    )
    truth /= truth.sum(axis=1, keepdims=True)
    assert np.exp(nb.feature_log_prob_[0][:, :2]) == pytest.approx(truth, abs=2e-3)
    with pytest.raises(InvalidArgument, match="no form without noise"):
        estimator(private=False, single_draw=True).fit(X, y)


@pytest.mark.parametrize(
    "options", [{"private": False}, {"epsilon": 1e4, "delta": 1e-6}, {"epsilon": 1e6, "delta": None}]
)
def test_without_noise_the_model_is_that_of_scikit_learn(options):
    """CategoricalNB adds a record to each level; ours differs from the counts by less, and predicts alike."""
    X, y = frame(1000)
    unseen, classes = frame(4000, seed=1)
    nb = estimator(tempered=False, **options).fit(X, y)
    codes = [[CATEGORIES[name].index(value) for name, value in zip(X, row, strict=True)] for row in X.to_numpy()]
    sizes = [len(CATEGORIES[name]) for name in X]
    peer = CategoricalNB(min_categories=sizes).fit(codes, y)
    for own, counts in zip(nb.feature_log_prob_, peer.category_count_, strict=True):
        seen, records = np.exp(own[:, : counts.shape[1]]), counts.sum(axis=1, keepdims=True)
        assert (np.abs(seen * records - counts) < 3 * np.sqrt(counts) ** 0.5 + 1).all()
        assert (seen[counts == 0] < 1 / records.min()).all()
    asked = [[CATEGORIES[name].index(value) for name, value in zip(X, row, strict=True)] for row in unseen.to_numpy()]
    assert (nb.predict(unseen) == peer.predict(asked)).mean() > 0.98
    assert nb.score(unseen, classes) > peer.score(asked, classes) - 0.005
    assert nb.model_.temperature == pytest.approx(1.0, abs=1e-6)


def repeating(rows, seed):
    """Five attributes that say the same thing of the class: naive Bayes counts it five times."""
    rng = np.random.default_rng(seed)
    y = rng.random(rows) < 0.3
    said = np.where(rng.random(rows) < 0.4, y, rng.random(rows) < 0.4)
    noisy = {f"x{place}": np.where(rng.random(rows) < 0.9, said, rng.random(rows) < 0.5) for place in range(5)}
    return pd.DataFrame({name: np.where(column, "b", "a") for name, column in noisy.items()}), np.where(y, "yes", "no")


def test_more_budget_leads_to_scikit_learns_classifier_and_no_further():
    """Also where that one is too sure of itself: its own loss is what the loss rises to, not a fault of the noise."""
    budgets, asked = (1, 10, 1e2, 1e4, 1e6), {"categories": {f"x{place}": ["a", "b"] for place in range(5)}}
    unseen, classes = repeating(4000, seed=99)
    apart, lost, hits = (np.zeros((3, len(budgets))) for _ in range(3))
    for seed in range(3):
        X, y = repeating(1000, seed)
        peer = CategoricalNB(min_categories=2).fit(X == "b", y)
        theirs, score = peer.predict_proba(unseen == "b"), peer.score(unseen == "b", classes)
        for place, epsilon in enumerate(budgets):
            nb = estimator(tempered=False, epsilon=epsilon, delta=1e-6, random_state=seed, **asked).fit(X, y)
            ours = nb.predict_proba(unseen)
            apart[seed, place] = np.abs(ours - theirs).mean()
            lost[seed, place] = log_loss(classes, ours) - log_loss(classes, theirs)
            hits[seed, place] = nb.score(unseen, classes) - score
    assert (np.diff(apart.mean(axis=0)) < 1e-3).all()
    assert (np.abs(lost[:, 2:]) < 0.02).all()
    assert (np.abs(hits[:, 2:]) < 0.01).all()
    halved = np.sqrt(theirs) / np.sqrt(theirs).sum(axis=1, keepdims=True)
    assert log_loss(classes, halved) < log_loss(classes, theirs) - 0.02  # it is too sure of itself


def test_steps_that_read_the_rows_take_the_guarantee_away():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2000)
    X = np.column_stack([rng.normal(y, 1.0), rng.normal(0.0, 1.0, 2000)])
    nb = PrivateCategoricalNB(classes=[0, 1], edges=STANDARDISED, tempered=False, unit=ONE_ROW)
    with pytest.warns(AssumedPublic, match="StandardScaler read the rows"):
        pipeline = make_pipeline(StandardScaler(), clone(nb)).fit(X, y)
    assert pipeline[-1].guarantee_ is None
    forget()
    fixed = ColumnTransformer([("clip", FunctionTransformer(np.tanh), [0, 1])])
    assert make_pipeline(fixed, clone(nb)).fit(X, y)[-1].guarantee_ is not None
    forget()
    scaled = ColumnTransformer([("scale", StandardScaler(), [0, 1])])
    with pytest.warns(AssumedPublic, match="ColumnTransformer read the rows"):
        make_pipeline(scaled, clone(nb)).fit(X, y)


def test_metadata_routing_and_frames_as_output_work_as_elsewhere():
    X, y = frame(600)
    with sklearn.config_context(enable_metadata_routing=True, transform_output="pandas"):
        pipeline = make_pipeline(FunctionTransformer(), estimator(epsilon=8.0)).fit(X, y)
        assert pipeline.score(X, y) > 0.8
        with pytest.raises(Exception, match="sample_weight"):
            pipeline.fit(X, y, sample_weight=np.ones(600))


def test_a_fit_without_a_unit_is_refused_before_anything_is_charged(tmp_path):
    X, y = frame(200)
    path = str(tmp_path / "weather.ledger")
    Ledger(path).open("weather", ApproxDP(epsilon=50, delta=1e-5), Unit(adjacency=Adjacency.REPLACE_ONE))
    wrong = [{"unit": None}, {"unit": 1}]
    wrong += [{"schema": weather_schema(), "target": "rain", "unit": ONE_ROW, "categories": None, "classes": None}]
    for options in wrong:
        with pytest.raises(InvalidArgument, match="how many rows a person has"):
            estimator(random_state=None, ledger=path, **options).fit(X, y)
    assert not Ledger(path).account("weather").charges


def test_of_a_person_no_more_rows_are_used_than_declared():
    unit = Unit(adjacency="add-remove", max_rows=2, person="id")
    X, y = [["a"]] * 6 + [["b"]] * 3, [0] * 9
    people = ["p"] * 6 + ["q", "r", None]
    options = {"categories": [["a", "b"]], "classes": [0, 1], "private": False, "tempered": False}
    nb = PrivateCategoricalNB(unit=unit, **options).fit(X, y, groups=people)
    assert sum(np.rint(np.asarray(nb.release_.tables[0].values)).ravel()) == 2 + 1 + 1
    clone(nb).fit(pd.DataFrame(X, columns=["x0"]), y, groups=pd.Series(people))
    for groups, declared in ((None, unit), (people, Unit(adjacency="add-remove", max_rows=2))):
        with pytest.raises(InvalidArgument, match="exactly where the unit names a person"):
            PrivateCategoricalNB(unit=declared, **options).fit(X, y, groups=groups)
    with pytest.raises(InvalidArgument, match="as long as X"):
        PrivateCategoricalNB(unit=unit, **options).fit(X, y, groups=people[1:])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"order": 5}, r"order is gone since 0\.2\.0: write guarantee='RDP\(5, 1\)'\."),
        ({"accounting": "exact"}, "dpbayes.papers"),
        ({"split": "equal"}, "split by the sizes of the tables"),
        ({"estimate": "draw"}, "write single_draw=True"),
        ({"adjacency": "replace-one"}, "write unit='replace-one'"),
        ({"dataset": "weather"}, "the id of the schema, or the one data set of the ledger"),
    ],
)
def test_an_old_argument_is_answered_with_what_took_its_place(options, said):
    with pytest.raises(InvalidArgument, match=said):
        PrivateCategoricalNB(**options)
    with pytest.raises(TypeError, match="unexpected keyword argument 'magic'"):
        PrivateCategoricalNB(magic=1)


def test_any_guarantee_may_be_named_instead_of_epsilon_and_delta():
    X, y = frame(300)
    for given in (RDP(5, 1), "RDP(5, 1)"):
        nb = estimator(guarantee=given, random_state=None).fit(X, y)
        assert nb.guarantee_ == nb.release_.promise == RDP(order=5, epsilon=1)
        assert -1e-6 < RDP(5, 1).gap(nb.release_.cost) <= 0
        forget()
    assert estimator(delta=0, random_state=None).fit(X, y).guarantee_ == PureDP(1)
    forget()
    with pytest.raises(InvalidArgument, match="expected epsilon with delta, or guarantee; got both"):
        estimator(guarantee="RDP(5, 1)", epsilon=2.0).fit(X, y)


def test_the_model_of_the_papers_is_a_single_draw():
    X, y = frame(1000)
    nb = estimator(single_draw=True).fit(X, y)
    assert {type(paid.mechanism).__name__ for paid in nb.release_.paid} == {"Dirichlet"}
    assert nb.model_.spec.estimate == "draw"


def test_without_a_schema_the_ledger_says_which_data_set_it_is(tmp_path):
    X, y = frame(300)
    book = Ledger(tmp_path / "two.ledger")
    book.open("weather", ApproxDP(epsilon=50, delta=1e-5), "replace-one")
    estimator(ledger=book, random_state=None).fit(X, y)
    assert len(book.account("weather").charges) == 1
    book.open("other", ApproxDP(epsilon=50, delta=1e-5), "replace-one")
    with pytest.raises(LedgerError, match=r"expected one data set in it, and it has .*other"):
        estimator(ledger=book, random_state=None).fit(X, y)
    assert len(book.account("weather").charges) == 1
    assert not book.account("other").charges


def test_a_unit_may_be_its_text_and_groups_say_whose_each_row_is():
    X, y = [["a"]] * 6 + [["b"]] * 3, [0] * 9
    options = {"categories": [["a", "b"]], "classes": [0, 1], "private": False, "tempered": False}
    nb = PrivateCategoricalNB(unit="add-remove:2", **options).fit(X, y, groups=["p"] * 6 + ["q", "r", None])
    assert nb.release_.unit == Unit("add-remove", 2, person="person")
    assert sum(np.rint(np.asarray(nb.release_.tables[0].values)).ravel()) == 2 + 1 + 1
    with pytest.raises(InvalidArgument, match="Unit: expected"):
        PrivateCategoricalNB(unit="two rows", **options).fit(X, y)
