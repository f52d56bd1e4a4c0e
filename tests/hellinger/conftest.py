"""Pearson's test of draws against an exact law, shared by the sampler tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import chi2


@pytest.fixture
def p_value() -> Callable[[np.ndarray, np.ndarray, np.ndarray], float]:
    """The p-value of draws, given all candidates and their probabilities."""
    return pearson


def pearson(draws: np.ndarray, listed: np.ndarray, law: np.ndarray) -> float:
    """How likely draws are to lie as far from the law as these; candidates expected less than five times are joined."""
    shape = (int(listed.max()) + 1,) * listed.shape[1]
    names, found = np.ravel_multi_index(listed.T, shape), np.ravel_multi_index(draws.T, shape)
    order = np.argsort(names)
    observed = np.bincount(order[np.searchsorted(names[order], found)], minlength=len(names)).astype(float)
    expected = len(draws) * law
    often = expected >= 5.0
    seen, hoped = [observed[often]], [expected[often]]
    if not often.all() and expected[~often].sum() > 1.0:
        seen.append(np.array([observed[~often].sum()]))
        hoped.append(np.array([expected[~often].sum()]))
    o, e = np.concatenate(seen), np.concatenate(hoped)
    return float(chi2.sf(((o - e) ** 2 / e).sum(), max(len(e) - 1, 1)))
