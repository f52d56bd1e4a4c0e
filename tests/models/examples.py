"""Small made-up tables that the tests of models share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dpbayes import Attribute, Curator, Release, Schema, Tables, Unit
from dpbayes.jobs import Fit
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.schema import Adjacency

REPLACE = Unit(adjacency=Adjacency.REPLACE_ONE)
ADD = Unit(adjacency=Adjacency.ADD_REMOVE)


def weather(rows: int = 2000, seed: int = 0) -> dict[str, np.ndarray]:
    """Rain makes wet streets and umbrellas; the day of the week says nothing."""
    rng = np.random.default_rng(seed)
    rain = rng.random(rows) < 0.3
    wet = np.where(rain, rng.random(rows) < 0.9, rng.random(rows) < 0.1)
    umbrella = np.where(rain, rng.choice(3, rows, p=[0.1, 0.2, 0.7]), rng.choice(3, rows, p=[0.8, 0.15, 0.05]))
    return {
        "rain": np.where(rain, "yes", "no"),
        "street": np.where(wet, "wet", "dry"),
        "umbrella": np.array(["none", "carried", "open"])[umbrella],
        "day": np.array([f"d{day}" for day in range(7)])[rng.integers(7, size=rows)],
    }


def weather_schema(unit: Unit = REPLACE) -> Schema:
    return Schema(
        id="weather",
        unit=unit,
        attributes=(
            Attribute(name="rain", categories=("no", "yes"), missing="other"),
            Attribute(name="street", categories=("dry", "wet"), missing="other"),
            Attribute(name="umbrella", categories=("none", "carried", "open", "lost"), missing="other"),
            Attribute(name="day", categories=tuple(f"d{day}" for day in range(7)), missing="other"),
        ),
    )


def fitted(spec, target: Guarantee, *, schema: Schema | None = None, rows: int = 2000, seed=7, ledger=None, **options):
    """A release of a model of the weather."""
    curator = Curator(pa.table(weather(rows)), schema or weather_schema(), ledger=ledger, seed=seed)
    return curator.release(Fit(model=spec, **options), target, estimates=False)


def tables(
    *asked: str, target: Guarantee, schema: Schema | None = None, rows: int = 2000, seed=7, **options
) -> Release:
    """A release of tables of the weather."""
    return Curator(pa.table(weather(rows)), schema or weather_schema(), seed=seed).release(
        Tables(*asked, **options), target
    )
