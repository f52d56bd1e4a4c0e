"""Private estimators for scikit-learn pipelines (extra ``sklearn``)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np

from dpbayes.curator import Curator
from dpbayes.domain.attribute import Attribute
from dpbayes.domain.coding import codes
from dpbayes.domain.schema import Schema
from dpbayes.domain.unit import Adjacency, PrivacyUnit
from dpbayes.domain.values import text_of
from dpbayes.errors import InvalidArgument, MissingExtra, SchemaError
from dpbayes.jobs.edges import Quantiles
from dpbayes.jobs.mechanisms import Wish
from dpbayes.jobs.model import Fit
from dpbayes.ledger.ledger import Ledger
from dpbayes.mechanisms.tuning import Accounting
from dpbayes.models.naive_bayes import Estimate, NaiveBayes, NaiveBayesModel
from dpbayes.privacy.guarantee import RDP, ApproxDP, Guarantee, PureDP
from dpbayes.release.format import Release
from dpbayes.tables.coded import CodedTable

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import assert_all_finite
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError:
    raise MissingExtra("dpbayes.sklearn: scikit-learn is not installed; install dpbayes[sklearn].") from None

DEFAULT_EDGES = (-np.inf, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, np.inf)
"""Bins of a numeric column that nobody declared: fixed, so that they tell nothing; made for standardised columns."""

CLASS = "class"


class AssumedPublic(UserWarning):
    """Something that was not declared was taken for public."""


class SecondRelease(UserWarning):
    """The same estimator was fitted again: both releases count."""


def _never(estimator: PrivateCategoricalNB) -> bool:
    raise AttributeError(
        f"{type(estimator).__name__}: partial_fit is refused. Every batch would be one more release of the same "
        "people; fit once on all records."
    )


class PrivateCategoricalNB(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Naive Bayes over declared categories, fitted under differential privacy.

    One exact calibration covers all tables. Every ``fit`` is a release of its own: fits of the same people add up, in
    cross-validation and grid search too. Charge them to a ``ledger``, or search on public data.

    Args:
        epsilon: ε of the guarantee.
        delta: δ; None, with no ``order``, asks for pure ε-DP.
        order: Rényi order, for an RDP guarantee instead of (ε, δ).
        categories: one entry for each column: a list of categories or an ``Attribute``; or a mapping
            from column names. None bins numeric columns at ``DEFAULT_EDGES`` and refuses texts.
        edges: bin edges of numeric columns, as a list or mapping like ``categories``; a ``Quantiles`` entry buys
            them with a tenth of the budget.
        classes: the declared classes; records of others are dropped. None takes them from ``y`` and warns: then the set
            of classes is not protected.
        schema: a ``Schema`` that declares all columns and the class ``target`` instead of the four arguments above.
        target: name of the class in ``schema``.
        adjacency: "replace-one" or "add-remove".
        missing: where missing values go: "category" gives them a level of their own, "other" the level of unknown ones.
        mechanism: "auto", "gaussian", "laplace" or "dirichlet".
        accounting: "exact", or "published" for the papers' parameters (Dirichlet).
        split: "optimal" by the sizes of the tables, or "equal".
        estimate: "posterior", or "draw" for the papers' single draw.
        tempered: spend a tenth of the budget on how far the model may trust itself (``dpbayes.temperature``).
        ledger: a ``Ledger`` or its path; every fit is charged to ``dataset`` before it reads a row.
        dataset: the data set's name in the ledger.
        random_state: a seed makes the fit repeatable and **not private**: ``guarantee_`` is then None.

    Source: [RDP] section 5.1; docs/explanation/models.md.

    >>> import numpy as np
    >>> X, y = np.array([["a"], ["b"]] * 500), np.array([0, 1] * 500)
    >>> nb = PrivateCategoricalNB(epsilon=1.0, delta=1e-6, categories=[["a", "b"]], classes=[0, 1])
    >>> nb.fit(X, y).predict([["a"], ["b"], ["never seen"]]).shape
    (3,)
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = 1e-6,
        order: float | None = None,
        categories: Sequence[Any] | Mapping[str, Any] | None = None,
        edges: Sequence[Any] | Mapping[str, Any] | None = None,
        classes: Sequence[Any] | None = None,
        schema: Schema | None = None,
        target: str = CLASS,
        adjacency: str = "replace-one",
        missing: str = "category",
        mechanism: Wish = "auto",
        accounting: Accounting = "exact",
        split: Literal["optimal", "equal"] = "optimal",
        estimate: Estimate = "posterior",
        tempered: bool = True,
        ledger: Ledger | str | None = None,
        dataset: str = "sklearn",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.order = order
        self.categories = categories
        self.edges = edges
        self.classes = classes
        self.schema = schema
        self.target = target
        self.adjacency = adjacency
        self.missing = missing
        self.mechanism = mechanism
        self.accounting = accounting
        self.split = split
        self.estimate = estimate
        self.tempered = tempered
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def fit(self, X: Any, y: Any, **refused: Any) -> PrivateCategoricalNB:
        """Release what the model needs from ``X`` and ``y``, once, and build it."""
        if refused:
            raise InvalidArgument(
                f"{type(self).__name__}: {', '.join(refused)} is refused: a weight would let one person count for "
                "many, which the guarantee does not cover. Repeat no rows and weigh none."
            )
        goal = self._goal()
        columns = self._columns(X, reset=True)
        y = self._one_column(y, rows=len(next(iter(columns.values()))))
        labels = self._labels(y)
        schema = self._schema(columns, labels, framed=hasattr(X, "columns"))
        again: list[Release] = list(getattr(self, "releases_", ()))
        if again:
            warnings.warn(
                f"{type(self).__name__}: fitted again, so {len(again) + 1} releases of this estimator count together.",
                SecondRelease,
                stacklevel=2,
            )
        spec = NaiveBayes(target=self._target_name(schema), features=tuple(columns), estimate=self.estimate)
        tempered = self.tempered and not spec.draws and self.mechanism != "dirichlet" and self.accounting == "exact"
        job = Fit(
            model=spec,
            mechanism=self.mechanism,
            accounting=self.accounting,
            split=self.split,
            expected_records=len(y) if schema.unit.fixed_size else None,
            tempered=tempered,
            edges=self._wishes(columns),
        )
        table = CodedTable({**columns, spec.target: lambda: self._positions(y, labels)})
        curator = Curator(table, schema, ledger=self.ledger, seed=_seed(self.random_state))
        release = curator.release(job, goal, estimates=False)  # a model needs the draw only
        self.classes_ = labels
        self.model_: NaiveBayesModel = spec.build(release)
        self.guarantee_ = None if release.seeded else goal
        self.releases_ = [*again, release]
        return self

    @available_if(_never)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any) -> None:
        """Refused: see the message."""

    @property
    def class_log_prior_(self) -> np.ndarray:
        """Log P(class)."""
        return np.asarray(self.model_.class_log_prior[: len(self.classes_)])

    @property
    def feature_log_prob_(self) -> list[np.ndarray]:
        """Log P(value | class), for each column an array of classes × levels."""
        return [table[: len(self.classes_)] for table in self.model_.feature_log_prob]

    @property
    def statement_(self) -> str:
        """What the fit promises, in one sentence."""
        return self.model_.published.statement()

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Log P(class | values); values that were not declared follow the rule of their column."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict_log_proba(self._columns(X, reset=False))[:, : len(self.classes_)])

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(class | values)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Any:
        """Texts, categories and missing values are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.classifier_tags.poor_score = True  # the tests have too few records for a private fit
        return tags

    def _goal(self) -> Guarantee:
        if self.order is not None:
            return RDP(order=self.order, epsilon=self.epsilon)
        return PureDP(epsilon=self.epsilon) if self.delta is None else ApproxDP(epsilon=self.epsilon, delta=self.delta)

    def _columns(self, X: Any, *, reset: bool) -> dict[str, np.ndarray]:
        checked = _checked(validate_data, self, X, reset=reset, dtype=None, ensure_all_finite=False)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return {f"x{position}": checked[:, position] for position in range(checked.shape[1])}
        if hasattr(X, "columns"):  # a frame keeps the type of every column
            return {str(name): np.asarray(X[name]) for name in names}
        return {str(name): checked[:, position] for position, name in enumerate(names)}

    def _one_column(self, y: Any, *, rows: int) -> np.ndarray:
        """The classes as one column, as long as X; its values are not looked at."""
        if y is None:
            raise InvalidArgument(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        column = np.asarray(_checked(column_or_1d, y, warn=True))
        if len(column) != rows:
            raise InvalidArgument(f"{type(self).__name__}: expected y to be as long as X.")
        return column

    def _labels(self, y: np.ndarray) -> np.ndarray:
        """The classes that are declared; only where none are, those in ``y``."""
        if self.schema is not None:
            attribute = self.schema[self.target]
            return np.array(attribute.levels[: len(attribute.levels) - attribute.drops])
        if self.classes is None:
            warnings.warn(
                f"{type(self).__name__}: the set of classes was taken from y and is not protected. Declare classes=.",
                AssumedPublic,
                stacklevel=3,
            )
            _check_classes(y)
        known = np.asarray(_checked(np.unique, y if self.classes is None else np.asarray(self.classes)))
        if len(known) < 2:
            raise InvalidArgument(f"{type(self).__name__}: expected two classes or more, got one class only.")
        return known

    def _positions(self, y: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The position of every class among those declared; others are dropped, and nobody is told."""
        _check_classes(y)
        if self.schema is not None:
            return codes(self.schema[self.target], y)
        place = {label: position for position, label in enumerate(labels.tolist())}

        def position(value: object) -> int:
            with suppress(Exception):  # a value that cannot be compared is none of the classes
                return place.get(value, len(labels))
            return len(labels)

        return np.fromiter(map(position, y.tolist()), dtype=np.int64, count=len(y))

    def _schema(self, columns: Mapping[str, np.ndarray], labels: np.ndarray, *, framed: bool) -> Schema:
        if self.schema is not None:
            return self.schema
        attributes = [
            self._attribute(position, name, column, framed=framed)
            for position, (name, column) in enumerate(columns.items())
        ]
        target = Attribute(
            name=_free_name(columns), categories=tuple(_distinct_texts(labels)), unknown="drop", missing="drop"
        )
        return Schema(
            id=self.dataset, unit=PrivacyUnit(adjacency=Adjacency(self.adjacency)), attributes=(*attributes, target)
        )

    def _wishes(self, columns: Mapping[str, np.ndarray]) -> dict[str, Quantiles]:
        """Columns whose edges are to be bought."""
        if self.schema is not None:
            return {}
        entries = {name: _entry(self.edges, position, name) for position, name in enumerate(columns)}
        return {name: entry for name, entry in entries.items() if isinstance(entry, Quantiles)}

    def _target_name(self, schema: Schema) -> str:
        return self.target if self.schema is not None else schema.names[-1]

    def _attribute(self, position: int, name: str, column: np.ndarray, *, framed: bool) -> Attribute:
        declared, cut = _entry(self.categories, position, name), _entry(self.edges, position, name)
        if isinstance(declared, Attribute):
            return Attribute(
                name=name,
                categories=declared.categories,
                edges=declared.edges,
                unknown=declared.unknown,
                missing=declared.missing,
            )
        if declared is not None:
            return Attribute(
                name=name,
                categories=tuple(text_of(value) for value in np.asarray(declared).tolist()),
                missing=self.missing,
            )
        if cut is not None:
            edges = (cut.lower, cut.upper) if isinstance(cut, Quantiles) else tuple(cut)
            return Attribute(name=name, edges=edges, missing=self.missing)
        # By type alone, never by values: a refusal that depended on one value would tell it.
        if column.dtype.kind in "US" or (column.dtype.kind == "O" and framed):
            raise SchemaError(
                f"{type(self).__name__}: column {name!r} holds texts and declares no categories. Reading them off the "
                "rows would publish them: pass categories=."
            )
        return Attribute(name=name, edges=DEFAULT_EDGES, missing=self.missing)


def _entry(declared: Sequence[Any] | Mapping[str, Any] | None, position: int, name: str) -> Any:
    if declared is None:
        return None
    if isinstance(declared, Mapping):
        return declared.get(name)
    if position >= len(declared):
        raise SchemaError(
            f"PrivateCategoricalNB: categories and edges need one entry for each column; {name!r} has none."
        )
    return declared[position]


_HARMLESS = re.compile(
    r"(The feature names should match|X has \d+ features|Found array with|Sparse data was passed).*"
    r"|Expected 2D array, got \w+ array instead|Complex data not supported"
    r"|Input y contains (NaN|infinity)|Unknown label type: [\w-]+",
    re.DOTALL,
)
"""What scikit-learn says without quoting a row; of messages that go on with rows, the beginning."""


def _checked(check: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The result of a check by scikit-learn or NumPy. Of what it says, only what quotes no row is passed on."""
    try:
        return check(*arguments, **options)
    except Exception as problem:
        said = _HARMLESS.match(str(problem))
    if said is None:
        raise InvalidArgument("PrivateCategoricalNB: expected X as a table of records, and y as one column of classes.")
    shape = " Reshape your data: one row for each record, one column for each value."
    raise InvalidArgument(said[0].rstrip(".") + "." + (shape if said[0].startswith("Expected") else ""))


def _check_classes(y: np.ndarray) -> None:
    """Refuse what is no set of classes, such as NaN and fractions."""
    _checked(assert_all_finite, y, input_name="y")
    _checked(check_classification_targets, y)


def _distinct_texts(labels: np.ndarray) -> list[str]:
    with suppress(SchemaError):  # where two have the same text, or one cannot be stored
        return list(Attribute(name=CLASS, categories=tuple(map(text_of, labels.tolist()))).categories)
    return [f"class {position}" for position in range(len(labels))]


def _free_name(columns: Mapping[str, object]) -> str:
    taken = {name.casefold() for name in columns}
    name = CLASS
    while name.casefold() in taken:
        name += "_"
    return name


def _seed(state: int | np.random.RandomState | None) -> int | None:
    if isinstance(state, np.random.RandomState):
        return int(state.randint(2**31))
    return None if state is None else int(state)
