"""What fits without a ledger cost together, and which steps of a pipeline read the rows before a fit did."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from dpbayes.base.display import rounded_up
from dpbayes.privacy.adaptive import AdaptiveDP
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.schema.unit import Unit

_fits: dict[tuple[str, Unit], list[Cost]] = {}


class SecondRelease(UserWarning):
    """A data set was fitted again without a ledger: all fits count together."""


def forget() -> None:
    """Start a new session: the next fits are of other people than all fits so far."""
    _fits.clear()


def remember(dataset: str, cost: Cost, goal: Guarantee, owner: str) -> None:
    """Count a private fit without a ledger, and say what all of them cost together if it was not the first.

    Which fits are of the same people cannot be known without comparing rows, so all fits of one name count.
    """
    costs = _fits.setdefault((dataset, cost.unit), [])
    costs.append(cost)
    if len(costs) < 2:
        return
    price = f"{goal.name} {rounded_up(sum(goal.amount(cost) for cost in costs), 3)}"
    if goal.exception:
        limit = AdaptiveDP(epsilon=goal.size * len(costs), delta=goal.exception)
        price = f"ε={rounded_up(limit.spent(costs), 3)} at δ={goal.exception:g}"
    warnings.warn(
        f"{owner}: {len(costs)} fits of {dataset!r} without a ledger. If they are of the same people, they cost "
        f"{price} together. Folds of a cross-validation and points of a grid search count. Charge "
        "them to a ledger=, search on public data, or call dpbayes.sklearn.forget() before fitting other people.",
        SecondRelease,
        stacklevel=3,
    )


def learned_before() -> list[str]:
    """The fitted steps before the last, in the pipelines whose ``fit`` is under way."""
    found: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, Pipeline) and frame.f_code.co_name == "fit":
            found += [type(step).__name__ for _, step in owner.steps[:-1] if _learns(step)]
        frame = frame.f_back
    return list(dict.fromkeys(found))


def _learns(step: Any) -> bool:
    """Whether a step reads the rows when it is fitted."""
    if step is None or isinstance(step, str):
        return False
    if isinstance(step, ColumnTransformer):
        return any(_learns(inner) for _, inner, _ in step.transformers)
    if isinstance(step, FeatureUnion):
        return any(_learns(inner) for _, inner in step.transformer_list)
    return bool(get_tags(step).requires_fit)
