"""Ways to other libraries, each with its own extra: mechanisms for OpenDP, posterior draws for xarray and ArviZ."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpbayes.base.errors import InvalidArgument, MissingExtra
from dpbayes.privacy.cost import Priced
from dpbayes.release.estimates import Posterior
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.unit import Adjacency

__all__ = ["to_arviz", "to_opendp", "to_xarray"]


class Drawing(Priced, Protocol):
    """A mechanism that can be drawn from counts."""

    def draw(self, counts: ArrayLike) -> NDArray[Any]:
        """One release."""


def to_opendp(mechanism: Drawing) -> Any:
    """An OpenDP measurement of a vector of counts, whose map gives the privacy profile δ(ε) of the mechanism.

    The distance between two vectors is the number of rows by which they differ: their ℓ₁ distance where rows are added
    or removed, and a distance of its own name where they are replaced. The map refuses more rows than the unit allows.
    OpenDP asks you to enable its features ``contrib`` and ``honest-but-curious`` first, since it cannot check a
    mechanism that is not its own.

    >>> import opendp.prelude as dp
    >>> from dpbayes import Gaussian, Unit
    >>> from dpbayes.schema import Adjacency
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> noise = Gaussian(sigma=5.0, unit=Unit(adjacency=Adjacency.ADD_REMOVE))
    >>> measurement = to_opendp(noise)
    >>> len(measurement([10, 20, 30]))
    3
    >>> round(measurement.map(d_in=1).epsilon(1e-6), 3)
    0.835
    """
    if not hasattr(mechanism, "draw"):
        raise InvalidArgument(f"to_opendp: expected a mechanism that draws, got {type(mechanism).__name__}.")
    try:
        import opendp.prelude as dp
        from opendp.measures import new_privacy_profile, smoothed_max_divergence
    except ImportError:
        raise MissingExtra("to_opendp: OpenDP is not installed; install dpbayes[opendp].") from None
    rows = mechanism.unit.max_rows
    added = mechanism.unit.adjacency is Adjacency.ADD_REMOVE
    metric = dp.l1_distance(T=int) if added else dp.user_distance("rows replaced")

    def profile(d_in: int) -> Any:
        if d_in > rows:
            raise InvalidArgument(f"to_opendp: the mechanism protects {rows} rows, not {d_in}.")
        return new_privacy_profile(mechanism.delta).curve

    return dp.m.make_user_measurement(
        dp.vector_domain(dp.atom_domain(T=int)) if added else dp.user_domain("counts", _is_counts),
        metric,
        smoothed_max_divergence(),
        lambda counts: mechanism.draw(counts).tolist(),
        profile,
    )


def _is_counts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, int) and value >= 0 for value in values)


def to_xarray(
    posterior: Posterior, marginals: Iterable[str | Marginal], *, draws: int = 1000, seed: int | None = None
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
    posterior: Posterior, marginals: Iterable[str | Marginal], *, draws: int = 1000, seed: int | None = None
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
