"""One run of one peer, in an interpreter that has that peer and need not have dpbayes: coded records in, records out.

``python _peer.py PEER IN.npz OUT.npz``. IN holds ``coded`` (positions of levels), ``sizes`` (levels of each column,
which are public), ``epsilon``, ``delta`` and ``draw``. OUT gets ``sample`` (as many records as went in), ``many`` (10⁶
records, which distances are computed from) and the seconds of fitting alone: imports, sampling and files are not
counted. Settings are the peers' defaults, but for what is said below.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

MANY = 1_000_000
SAMPLER = os.environ.get("DPBAYES_SAMPLER", "sample")
"""Of OpenDP: ``sample``, or its default, ``round``."""

Fitted = Callable[[int], np.ndarray]
"""Draws this many records."""


def opendp(algorithm: str, coded: np.ndarray, sizes: list[int], epsilon: float, delta: float) -> Callable[[], Fitted]:
    """AIM or MST of ``opendp.extras.mbi``: ρ-zCDP, with the largest ρ that OpenDP's own conversion finds within (ε, δ).

    One row is one person, and adding or removing it is protected. Levels are given as cuts, so that each is one cell
    and none is kept for nulls. MST of OpenDP 0.16.0 leaves one unit in the last place for the rounding of the sum of
    its selections, too little: with 17 or 21 columns it always refuses its own budget. So it leaves 10⁻¹² here.
    Records are drawn independently: ``round``, the default, of mbi 1.1.0 does not shuffle the rows of a group before it
    deals out values, so that two children of one parent depend on each other (Adult, ε = 1: pairs are 0.118 off instead
    of 0.040).
    """
    import opendp.extras.mbi._mst as mst
    import opendp.prelude as dp
    import polars as pl

    mst.prior = lambda share: share * (1.0 - 1e-12)

    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)

    def within(rho: float) -> bool:
        noise = dp.m.make_gaussian(*space, scale=(2 * rho) ** -0.5)
        return dp.c.make_zCDP_to_approxDP(noise).map(1.0).epsilon(delta) <= epsilon

    rho = dp.binary_search(within, bounds=(1e-8, epsilon + 1.0), T=float)
    names = [f"x{place}" for place in range(len(sizes))]
    frame = pl.DataFrame({name: coded[:, place].astype(np.int64) for place, name in enumerate(names)}).lazy()
    cuts = {name: list(range(size - 1)) for name, size in zip(names, sizes, strict=True)}

    def fit() -> Fitted:
        context = dp.Context.compositor(
            data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho)
        )
        asked = context.query(rho=rho).select(*names)
        table = asked.contingency_table(cuts=cuts, algorithm=getattr(dp.mbi, algorithm)()).release()
        return lambda rows: table.synthesize(rows, SAMPLER).select(names).to_numpy()

    return fit


def dpmm(
    model: str, coded: np.ndarray, sizes: list[int], epsilon: float, delta: float, draw: int
) -> Callable[[], Fitted]:
    """AIM, MST or PrivBayes of dpmm, which converts (ε, δ) to zCDP itself; the levels are its ``domain``."""
    import dpmm.models
    import pandas as pd

    names = [f"x{place}" for place in range(len(sizes))]
    frame = pd.DataFrame(coded, columns=names)
    made = getattr(dpmm.models, model)(epsilon=epsilon, delta=delta, domain=dict(zip(names, sizes, strict=True)))
    made.set_random_state(np.random.RandomState(draw))

    def fit() -> Fitted:
        made.fit(frame)
        return lambda rows: made.generate(n_records=rows)[names].to_numpy()

    return fit


def main(peer: str, read: Path, write: Path) -> None:
    given = np.load(read)
    coded, sizes = given["coded"], given["sizes"].tolist()
    epsilon, delta, draw = float(given["epsilon"]), float(given["delta"]), int(given["draw"])
    library, _, which = peer.partition(" ")
    if library == "opendp":
        fit = opendp(which, coded, sizes, epsilon, delta)
    else:
        fit = dpmm({"PrivBayes": "PrivBayesGM"}.get(which, f"{which}GM"), coded, sizes, epsilon, delta, draw)
    started, began = time.process_time(), time.perf_counter()
    drawn = fit()
    seconds, wall = time.process_time() - started, time.perf_counter() - began
    np.savez(write, sample=drawn(len(coded)), many=drawn(MANY), seconds=seconds, wall=wall)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
