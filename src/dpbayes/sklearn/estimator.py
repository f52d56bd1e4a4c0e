"""Naive Bayes as scikit-learn has it, fitted under differential privacy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.curator import Curator, opened
from dpbayes.design.noise import Wish
from dpbayes.jobs.base import LOOSEST
from dpbayes.jobs.model import Fit
from dpbayes.ledger.ledger import Ledger
from dpbayes.models.naive_bayes import NaiveBayes, NaiveBayesModel
from dpbayes.privacy.calibrate import guarantee_of, guarantee_of_text
from dpbayes.privacy.guarantee import Guarantee, PureDP
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.labels import codes, values_of
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit
from dpbayes.schema.values import plain, text_of
from dpbayes.sklearn.declared import (
    AssumedPublic,
    Declarations,
    checked,
    columns_of,
    equal_positions,
    labels_of,
    matrix,
    types,
)
from dpbayes.sklearn.session import learned_before, remember
from dpbayes.tables.engine import CodedTable

CLASS = "class"

PERSON = "person"
"""The column of ``groups`` where the unit is a text."""

ONE_ROW = "one row per person"
"""As ``unit``: nobody has two rows, and the number of rows is public (replace-one)."""

WITHOUT_NOISE = PureDP(epsilon=LOOSEST)
"""What a model that is not private asks for. With a thousand tables, a cell is off by one with a chance below e⁻⁴⁰⁰."""


GONE = {
    "order": "write guarantee='RDP(5, 1)'",
    "accounting": "the papers' parameters are in dpbayes.papers",
    "split": "the guarantee is split by the sizes of the tables",
    "estimate": "write single_draw=True for the papers' single draw",
    "adjacency": "write unit='replace-one' or 'add-remove'",
    "dataset": "it is the id of the schema, or the one data set of the ledger",
}
"""Arguments of 0.2.0, and what is written instead; this version only."""


def _current(init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def made(self: Any, **given: Any) -> None:
        for name in given.keys() & GONE.keys():
            raise InvalidArgument(f"PrivateCategoricalNB: {name} is gone since 0.2.0: {GONE[name]}.")
        init(self, **given)

    return made


def _never(estimator: PrivateCategoricalNB) -> bool:
    raise AttributeError(
        f"{type(estimator).__name__}: partial_fit is refused. Every batch would be one more release of the same "
        "people; fit once on all records."
    )


class PrivateCategoricalNB(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Naive Bayes over declared categories, fitted under differential privacy.

    One exact calibration covers all tables. Every ``fit`` is a release of its own: fits of the same people add up, in
    cross-validation and grid search too. Charge them to a ``ledger``, or search on public data. Without a ledger, the
    second fit and every later one warn with the total of this process.

    Args:
        epsilon: ε of the guarantee.
        delta: δ; None or 0 asks for pure ε-DP.
        guarantee: any other guarantee instead of ε and δ, or its text, such as "RDP(5, 1)".
        categories: one entry for each column: a list of categories or an ``Attribute``; or a mapping
            from column names. Columns of booleans, of polars enums and of pandas categoricals declare themselves.
        edges: bin edges of numeric columns, as a list or mapping like ``categories``; a ``Quantiles`` entry buys
            them with a tenth of the budget. "standardised" cuts all others at fixed edges between −2 and 2.
        classes: the declared classes; records of others are dropped. None takes them from ``y`` and warns: then the set
            of classes is not protected.
        schema: a ``Schema``, or its file, that declares all columns and the class ``target``, instead of the four
            arguments above.
        target: name of the class in ``schema``.
        unit: how many rows a person has, which nobody but you can know: "one row per person", a ``Unit``, or its text
            such as "add-remove:8". With ``fit(X, y, groups=ids)`` at most so many rows of each person are used. A
            ``schema`` declares it already.
        missing: where missing values go: "category" gives them a level of their own, "other" the level of unknown ones.
        mechanism: "auto", "gaussian", "laplace" or "dirichlet".
        single_draw: the papers' model, a single draw from the posterior.
        tempered: spend a tenth of the budget on a temperature, which corrects overconfident predictions. None does so
            where public numbers say that it helps.
        ledger: a ``Ledger`` or its path; every fit is charged before it reads a row, to the data set of the schema;
            without a schema to the one that the ledger has.
        private: False fits the same model without noise, to compare with. It is not private, charges nothing, and
            ``guarantee_`` is None.
        random_state: a seed makes the fit repeatable and not private: ``guarantee_`` is then None.

    Source: [RDP] section 5.1; docs/explanation/models.md.

    >>> import numpy as np
    >>> X, y = np.array([["a"], ["b"]] * 500), np.array([0, 1] * 500)
    >>> nb = PrivateCategoricalNB(categories=[["a", "b"]], classes=[0, 1], unit="one row per person")
    >>> nb.fit(X, y).predict([["a"], ["b"], ["never seen"]]).shape
    (3,)
    """

    @_current
    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = 1e-6,
        guarantee: Guarantee | str | None = None,
        categories: Sequence[Any] | Mapping[str, Any] | None = None,
        edges: Sequence[Any] | Mapping[str, Any] | str | None = None,
        classes: Sequence[Any] | None = None,
        schema: Schema | str | Path | None = None,
        target: str = CLASS,
        unit: Unit | str | None = None,
        missing: str = "category",
        mechanism: Wish = "auto",
        single_draw: bool = False,
        tempered: bool | None = None,
        ledger: Ledger | str | None = None,
        private: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.guarantee = guarantee
        self.categories = categories
        self.edges = edges
        self.classes = classes
        self.schema = schema
        self.target = target
        self.unit = unit
        self.missing = missing
        self.mechanism = mechanism
        self.single_draw = single_draw
        self.tempered = tempered
        self.ledger = ledger
        self.private = private
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None, **refused: Any) -> PrivateCategoricalNB:
        """Release what the model needs from ``X`` and ``y``, once, and build it; ``groups`` says whose each row is."""
        if refused:
            raise InvalidArgument(
                f"{type(self).__name__}: {', '.join(refused)} is refused: a weight would let one person count for "
                "many, which the guarantee does not cover. Do not repeat or weight rows."
            )
        goal = self._goal()
        declared = Schema.load(self.schema) if isinstance(self.schema, (str, Path)) else self.schema
        unit = self._declared_unit(declared, groups)
        columns = self._columns(X, reset=True, least=1 if unit.fixed_size else 0)
        rows = len(next(iter(columns.values())))
        people = self._people(groups, unit, rows)
        y = self._one_column(y, rows=rows, declared=self.classes is not None or declared is not None)
        labels, texts = self._labels(y, declared)
        wishes = {} if declared is not None else self._declarations.wishes(tuple(columns))
        ledger = opened(self.ledger) if self.private and self.ledger != "none" else None
        name = "sklearn" if ledger is None or declared is not None else ledger.only()
        schema = declared or self._schema(columns, texts, Schema(id=name, unit=unit, attributes=()), typed=types(X))
        if schema.unit.fixed_size and schema.records is None:
            schema = replace(schema, records_guess=len(y))
        target = self.target if declared is not None else schema.names[-1]
        spec = NaiveBayes(target=target, features=tuple(columns), single_draw=self.single_draw)
        job = Fit(
            model=spec,
            mechanism=self.mechanism if self.private else "auto",
            tempered=False if spec.draws or self.mechanism == "dirichlet" else self.tempered,
            edges=wishes,
        )
        table = CodedTable({**columns, **people, target: lambda: self._positions(y, labels, texts, declared)})
        seed = _seed(self.random_state) if self.private else 0
        release = Curator(table, schema, ledger=ledger, seed=seed).release(job, goal, estimates=False)
        self.classes_ = labels
        self.model_: NaiveBayesModel = spec.build(release)
        self.release_ = release
        self.guarantee_ = None if release.seeded or self._spoilt() else goal
        if ledger is None and not release.seeded:
            remember(schema.id, release.cost, goal, type(self).__name__)
        return self

    def _spoilt(self) -> bool:
        """Whether earlier steps of a pipeline learned from the same rows, which no guarantee of ours covers."""
        steps = learned_before()
        if steps:
            warnings.warn(
                f"{type(self).__name__}: {', '.join(steps)} read the rows before this fit, and what was learned there "
                "is not protected, so guarantee_ is None. Fit it on public data, or use fixed transformations.",
                AssumedPublic,
                stacklevel=3,
            )
        return bool(steps)

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
        """What the fit guarantees, in one sentence."""
        return self.model_.published.statement()

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Log P(class | values); values that were not declared follow the rule of their column."""
        return self._in_blocks(X, lambda rows: self.model_.predict_log_proba(rows)[:, : len(self.classes_)])

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(class | values)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class."""
        wide = len(getattr(self, "classes_", ()))
        best = self._in_blocks(X, lambda rows: self.model_.predict_joint_log_proba(rows)[:, :wide].argmax(axis=1))
        return np.asarray(self.classes_[best])

    def _in_blocks(self, X: Any, predict: Callable[[dict[str, np.ndarray]], np.ndarray]) -> np.ndarray:
        """Records a block at a time: columns of a matrix lie far apart, and a block of them fits into the cache."""
        check_is_fitted(self)
        columns, many = self._columns(X, reset=False), 2**16
        starts = range(0, len(next(iter(columns.values()))), many)
        blocks = ({name: column[at : at + many] for name, column in columns.items()} for at in starts)
        return np.concatenate([predict(block) for block in blocks])

    def __sklearn_tags__(self) -> Any:
        """Texts, categories and missing values are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.classifier_tags.poor_score = True  # the tests have too few records for a private fit
        return tags

    @property
    def _declarations(self) -> Declarations:
        return Declarations(categories=self.categories, edges=self.edges, missing=self.missing)

    def _goal(self) -> Guarantee:
        if not self.private:
            if self.single_draw or self.mechanism == "dirichlet":
                raise InvalidArgument(
                    f"{type(self).__name__}: the papers' draws have no form without noise. Leave single_draw and "
                    "mechanism out, or set private=True."
                )
            return WITHOUT_NOISE
        if self.guarantee is None:
            return guarantee_of(epsilon=self.epsilon, delta=self.delta or None)
        if (self.epsilon, self.delta) != (1.0, 1e-6):
            raise InvalidArgument(f"{type(self).__name__}: expected epsilon with delta, or guarantee; got both.")
        return guarantee_of_text(self.guarantee) if isinstance(self.guarantee, str) else self.guarantee

    def _declared_unit(self, schema: Schema | None, groups: Any) -> Unit:
        """Whom the guarantee protects. A wrong guess would break it in silence, so nothing is guessed."""
        if schema is not None and self.unit is None:
            return schema.unit
        if schema is None and isinstance(self.unit, Unit):
            return self.unit
        if schema is None and isinstance(self.unit, str):
            return Unit.of("replace-one" if self.unit == ONE_ROW else self.unit, None if groups is None else PERSON)
        came = "a schema, which declares it already" if schema is not None else repr(self.unit)
        raise InvalidArgument(
            f"{type(self).__name__}: expected unit= to say once how many rows a person has, got {came}. Write "
            f"unit={ONE_ROW!r}, or unit='add-remove:8' and fit(X, y, groups=ids)."
        )

    def _people(self, groups: Any, unit: Unit, rows: int) -> dict[str, Callable[[], np.ndarray]]:
        """The column that names people, where the unit has one."""
        if (groups is None) != (unit.person is None):
            raise InvalidArgument(
                f"{type(self).__name__}: expected fit(X, y, groups=…) exactly where the unit names a person column. "
                "Pass the person of every row, and name the column in Unit(person=…)."
            )
        if groups is None or unit.person is None:
            return {}
        people = values_of(groups)
        if len(people) != rows:
            raise InvalidArgument(f"{type(self).__name__}: expected groups to be as long as X.")
        return {unit.person: lambda: people}

    def _columns(self, X: Any, *, reset: bool, least: int = 1) -> dict[str, np.ndarray]:
        """The columns, each value as it is; ``least`` is how many rows there must be."""
        if hasattr(X, "columns"):  # a frame keeps the type of every column
            checked(validate_data, self, X, reset=reset, skip_check_array=True)
            columns = {name: values_of(column) for name, column in columns_of(X).items()}
            checked(check_array, np.broadcast_to(np.int8(0), X.shape), ensure_min_samples=least)
            return columns
        X = matrix(X, (self.categories, self.edges)) if isinstance(X, (list, tuple)) else X
        options = {"dtype": None, "ensure_all_finite": False, "ensure_min_samples": least}
        array = checked(validate_data, self, X, reset=reset, **options)
        names = getattr(self, "feature_names_in_", None)
        named = (f"x{position}" for position in range(array.shape[1])) if names is None else map(str, names)
        return {name: array[:, position] for position, name in enumerate(named)}

    def _one_column(self, y: Any, *, rows: int, declared: bool) -> np.ndarray:
        """The classes as one column, as long as X; where they are declared, no value decides how others are read."""
        if y is None:
            raise InvalidArgument(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        column = np.asarray(checked(column_or_1d, labels_of(y) if declared else y, warn=True))
        if len(column) != rows:
            raise InvalidArgument(f"{type(self).__name__}: expected y to be as long as X.")
        return column

    def _labels(self, y: np.ndarray, schema: Schema | None) -> tuple[np.ndarray, list[str]]:
        """The classes that are declared, and their texts; only where none are, those in ``y``."""
        if schema is not None:
            attribute = schema[self.target]
            levels = list(attribute.levels[: len(attribute.levels) - attribute.drops])
            return np.array(levels), levels
        if self.classes is None:
            warnings.warn(
                f"{type(self).__name__}: the set of classes was taken from y and is not protected. Declare classes=.",
                AssumedPublic,
                stacklevel=3,
            )
            checked(assert_all_finite, y, input_name="y")  # NaN and fractions are no classes
            checked(check_classification_targets, y)
        listed = list(y if self.classes is None else self.classes)
        known, first = checked(np.unique, np.asarray(listed), return_index=True)
        if len(known) < 2:
            raise InvalidArgument(f"{type(self).__name__}: expected two classes or more, got one class only.")
        return known, [text_of(plain(listed[place])) for place in first]

    def _positions(self, y: np.ndarray, labels: np.ndarray, texts: Sequence[str], schema: Schema | None) -> np.ndarray:
        """The position of every class among those declared; others are dropped, and nobody is told."""
        attribute = schema[self.target] if schema is not None else _class_attribute(CLASS, texts)
        return codes(attribute, y) if attribute is not None else equal_positions(y, labels)

    def _schema(
        self, columns: Mapping[str, np.ndarray], texts: Sequence[str], empty: Schema, *, typed: Mapping[str, Any]
    ) -> Schema:
        attributes = self._declarations.attributes(columns, typed)
        taken, name = {each.casefold() for each in (*columns, empty.person or "")}, CLASS
        while name in taken:
            name += "_"
        numbered = [f"class {place}" for place in range(len(texts))]
        target = _class_attribute(name, texts) or _class_attribute(name, numbered)
        assert target is not None
        return empty.with_attributes((*attributes, target))


def _class_attribute(name: str, texts: Iterable[str]) -> Attribute | None:
    """The classes as texts, so that 1 and "1" are one class; None where two have the same text, or one has none."""
    with suppress(SchemaError):
        return Attribute(name=name, categories=tuple(texts), unknown="drop", missing="drop")
    return None


def _seed(state: int | np.random.RandomState | None) -> int | None:
    if isinstance(state, np.random.RandomState):
        return int(state.randint(2**31))
    return None if state is None else int(state)
