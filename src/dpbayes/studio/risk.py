"""What a cost means for one person, in numbers that people can picture."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpbayes.design.plan import Plan
from dpbayes.jobs.request import Request
from dpbayes.privacy.risk import BLIND, Profile, Risk, membership, success
from dpbayes.studio.forecasts import Outlook, planned, with_epsilon

BUDGETS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The ε that a request is compared at."""

MANY = 40
"""Tables beyond which fewer budgets are compared: each has to be planned."""

POINTS, FARTHEST = 48, 12.0
"""Where the profile of a plan is computed; chords are drawn between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The same tables at one ε."""

    epsilon: float
    records: float
    """The largest ± of a cell."""
    verdict: str
    success: float
    """How often the best attacker is right where a coin is right half of the time."""
    fits: bool | None
    chosen: bool


def coin(plan: Plan) -> float:
    """How often the best attacker is right about a question that a coin would decide; it needs δ(0) alone."""
    first = float(plan.cost.delta(0.0))
    return membership(lambda _: first)


def risk(plan: Plan) -> Risk:
    """What the best attacker can do."""
    profile = sampled(plan.cost.delta)
    guesses = tuple((blind, success(profile, blind)) for blind in BLIND if blind != 0.5)  # a coin has its own number
    return Risk(membership=coin(plan), guesses=guesses)


def sampled(profile: Profile) -> Profile:
    """A profile that is quick to ask, and nowhere below the given one.

    δ is convex as a function of e^ε, a supremum of lines in it, so chords lie above it; beyond the last point it falls.
    """
    levels = np.linspace(0.0, FARTHEST, POINTS)
    known = np.array([profile(float(level)) for level in levels])
    return lambda epsilon: float(np.interp(math.exp(min(epsilon, FARTHEST)), np.exp(levels), known))


def alternatives(request: Request, outlook: Outlook) -> list[Alternative]:
    """The request at several budgets, its own among them."""
    plan, account = outlook.plan, outlook.account
    own = getattr(plan.target, "epsilon", None)
    if own is None or not outlook.expected:
        return []
    found = []
    budgets = BUDGETS if len(request.tables) <= MANY else (own / 2, own * 2)
    for epsilon in sorted({*budgets, float(own)}):
        asked = with_epsilon(request, epsilon)
        other = outlook if epsilon == own else planned(asked, plan.schema, account)
        order = ["good", "fair", "poor", ""]
        found.append(
            Alternative(
                epsilon=epsilon,
                records=other.worst,
                verdict=max((each.verdict for each in other.expected), key=order.index),
                success=coin(other.plan),
                fits=other.fits,
                chosen=epsilon == own,
            )
        )
    return found
