"""Posterior draws as labelled arrays, for xarray and ArviZ (extra ``arviz``)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpbayes.base.errors import InvalidArgument, MissingExtra
from dpbayes.release.estimates import Posterior
from dpbayes.schema.marginal import Marginal

DRAWS = 1000


def to_xarray(
    posterior: Posterior, marginals: Iterable[str | Marginal], *, draws: int = DRAWS, seed: int | None = None
) -> Any:
    """Draws of whole tables of counts as an ``xarray.Dataset`` with the dimensions chain, draw and the attributes.

    Its variables are named ``count(region)``, ``count(sex, income)`` and so on.
    Draws are independent, so there is one chain. Shared margins agree in each draw. A conditional table is drawn as the
    joint table of all its attributes. It is made of what is published: it costs nothing, and a seed harms nobody.
    """
    try:
        import xarray
    except ImportError:
        raise MissingExtra("to_xarray: xarray is not installed; install dpbayes[arviz].") from None
    asked = [Marginal.of_text(each) for each in marginals]
    if any(name in ("chain", "draw") for marginal in asked for name in marginal.names):
        raise InvalidArgument("to_xarray: chain and draw are dimensions of the draws. Rename the attribute first.")
    found = posterior.draws(asked, draws, np.random.default_rng(seed))
    tables = {
        f"count({', '.join(marginal.names)})": (("chain", "draw", *marginal.names), values[None])
        for marginal, values in zip(asked, found, strict=True)
    }
    levels = {name: list(posterior.schema[name].levels) for marginal in asked for name in marginal.names}
    return xarray.Dataset(tables, coords={"chain": [0], "draw": np.arange(draws), **levels})


def to_arviz(
    posterior: Posterior, marginals: Iterable[str | Marginal], *, draws: int = DRAWS, seed: int | None = None
) -> Any:
    """The same for ArviZ: its ``InferenceData`` up to 0.2x, an ``xarray.DataTree`` from 1.0 on."""
    data = to_xarray(posterior, marginals, draws=draws, seed=seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about its own future, when it is imported
            from arviz import InferenceData
    except ImportError:
        from xarray import DataTree

        return DataTree.from_dict({"posterior": data})
    return InferenceData(posterior=data)
