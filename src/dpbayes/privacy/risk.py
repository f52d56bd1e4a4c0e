"""What a guarantee means to a person: the best success of any attacker who guesses something about them.

The attacker may know everything but this one person's data, have any power, and attack in any way. All bounds come from
one curve, the privacy profile δ(ε); an upper bound of it gives an upper bound of the success.

Cautions are guard rails, from public numbers only: what a careful colleague would say before anything is charged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.display import rounded_up
from dpbayes.base.errors import InvalidArgument
from dpbayes.base.normal import quantile
from dpbayes.privacy.convert import ROUND_UP, gaussian_delta, gaussian_mu, least
from dpbayes.privacy.cost import Cost
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.schema.unit import Unit

Profile = Callable[[float], float]
"""δ(ε) for ε ≥ 0: at least that of every pair of neighbours."""

LARGEST = 60.0
"""Beyond this ε a profile is not asked: e^−60 is far below every probability of interest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GDP:
    """μ-Gaussian differential privacy, as other tools state it."""

    mu: float

    def __post_init__(self) -> None:
        checks.positive("GDP", mu=self.mu)

    def __str__(self) -> str:
        return f"GDP μ={self.mu:g}"


def profile_of(promise: Guarantee | Cost | GDP) -> Profile:
    """The privacy profile of a cost, exactly, or of a guarantee: that of the worst mechanism that keeps it."""
    if isinstance(promise, Cost):
        return promise.delta
    if isinstance(promise, GDP):
        mu = promise.mu
        return lambda epsilon: gaussian_delta(mu, epsilon)
    if isinstance(promise, Guarantee):
        return promise.profile
    raise InvalidArgument(f"risk: expected a guarantee or a cost, got {type(promise).__name__}.")


def chords(epsilons: Floats, profile: Profile) -> Profile:
    """A profile that is quick to ask, from its values at these ε from 0 on, and nowhere below the given one.

    δ is convex as a function of e^ε, a supremum of lines in it, so chords lie above it; beyond the last ε it falls.
    """
    factors, deltas = np.exp(epsilons), np.array([float(profile(float(epsilon))) for epsilon in epsilons])
    return lambda epsilon: float(np.interp(math.exp(min(epsilon, float(epsilons[-1]))), factors, deltas))


def success(profile: Profile, blind: float) -> float:
    """s(p) = min over ε of δ(ε) + e^ε·p: the most often that a guess is right after a release.

    Symbols: p how often the best guess without the release is right; δ(−ε) = 1 − e^−ε + e^−ε·δ(ε).
    Source: docs/explanation/proofs/risk.md, theorem 1; [KulynychEtAl25] for all three kinds of attack.
    Adjacency: both; the guess is about one person's data, all else may be known.

    The guess may be anything about the person: whether they took part, which record is theirs, the value of an
    attribute. It is also the power of the best test at a false-positive rate of p, 1 − f(p).

    >>> from dpbayes import PureDP
    >>> round(success(profile_of(PureDP(epsilon=math.log(3))), 0.2), 6)
    0.6
    """
    checks.probability("risk", blind=blind)

    def bound(epsilon: float) -> float:
        if epsilon >= 0:
            return profile(epsilon) + math.exp(epsilon) * blind
        decay = math.exp(epsilon)
        return 1.0 - decay * (1.0 - min(profile(-epsilon), 1.0)) + decay * blind

    # convex in e^ε, hence it falls and then rises; every ε gives a valid bound
    # each step shrinks the search by 0.618: the last bracket is below 10⁻¹¹ of the first
    found, _ = least(bound, -LARGEST, LARGEST, steps=60)
    return min(min(found, bound(0.0)) * ROUND_UP, 1.0)


def membership(profile: Profile, prior: float = 0.5) -> float:
    """1 − p + p·δ(ln((1−p)/p)): how often the best attacker tells whether a person took part, or which of two it is.

    Symbols: p prior probability that the person took part.
    Source: docs/explanation/proofs/risk.md, theorem 2.
    Adjacency: add/remove for taking part; replace-one for telling two possible records apart.

    >>> from dpbayes import PureDP
    >>> round(membership(profile_of(PureDP(epsilon=math.log(3)))), 6)
    0.75
    """
    checks.probability("risk", prior=prior)
    rarer = min(prior, 1.0 - prior)  # the answer is the same when the two cases change places
    two_cases = (1.0 - rarer + rarer * profile(math.log((1.0 - rarer) / rarer))) * ROUND_UP
    return min(two_cases, success(profile, 1.0 - rarer))  # the second where the profile is itself a loose bound


def odds(profile: Profile, beyond: float) -> float:
    """e^ε′ for the least ε′ with min over ε < ε′ of δ(ε)/(1 − e^(ε−ε′)) ≤ η: the factor by which odds can rise.

    Symbols: η beyond, the probability with which the release may raise them more; infinite if no ε′ will do.
    Source: docs/explanation/proofs/risk.md, lemma 3.
    Adjacency: that of the profile; the odds are those of two neighbouring possibilities.
    """
    checks.probability("risk", beyond=beyond)

    def tail(at: float) -> float:
        """The probability of a larger loss is at most this."""
        return least(lambda epsilon: profile(epsilon) / -math.expm1(min(epsilon - at, -1e-12)), 0.0, at)[0]

    def first(holds: Callable[[float], bool], precision: float) -> float:
        """From where on it holds; infinite if nowhere."""
        if not holds(LARGEST):
            return math.inf
        low, high = 0.0, LARGEST
        while high - low > precision * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high

    if profile(0.0) == 0.0:
        return 1.0
    bounded = first(lambda at: profile(at) == 0.0, 1e-9)  # beyond a bounded loss nothing lies
    return math.exp(min(first(lambda at: tail(at) <= beyond, 1e-6), bounded))


BLIND = (0.001, 0.01, 0.1, 0.5, 0.9)
"""How often a blind guess may be right: one person in a thousand, a rare attribute, …, a common one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """What the best attacker can do, as upper bounds."""

    membership: float
    """How often they tell whether a person took part, or which of two records is theirs; blind it is a half."""
    guesses: tuple[tuple[float, float], ...]
    """How often a blind guess is right, and the same guess at best after the release."""

    @classmethod
    def of(cls, promise: Guarantee | Cost | GDP, *, blind: tuple[float, ...] = BLIND) -> Risk:
        """The risk under a guarantee, or of a composed cost.

        >>> from dpbayes import PureDP
        >>> blind, after = Risk.of(PureDP(epsilon=1.0)).guesses[1]
        >>> blind, round(after, 6)
        (0.01, 0.027183)
        """
        profile = profile_of(promise)
        return cls(membership=membership(profile), guesses=tuple((each, success(profile, each)) for each in blind))

    def sentences(self, *, taking_part: bool = True) -> tuple[str, ...]:
        """The risk in words. ``taking_part``: whether the promise hides that a person took part (add/remove)."""
        question = "whether a given person is in the data" if taking_part else "which of two records is a person's own"
        said = [
            f"Anyone who guesses {question} by tossing a coin is right in 50 % of cases. "
            f"With the release, the best attacker is right in at most {percent(self.membership)}."
        ]
        for blind, at_best in self.guesses:
            said.append(
                f"A fact about a person that is guessed right {percent(blind)} of the time without the release "
                f"is guessed right at most {percent(at_best)} of the time with it."
            )
        return tuple(said)


def percent(share: float) -> str:
    """A share in percent, never too small: three digits, and no more than 100.

    >>> percent(0.73106), percent(0.0027182), percent(1.0), percent(0.99999)
    ('73.2 %', '0.272 %', '100 %', '100 %')
    """
    return f"{rounded_up(100.0 * share, digits=3)} %"


def cautions(promise: Guarantee, unit: Unit, *, records: int | None = None) -> tuple[str, ...]:
    """Sentences about a guarantee that promises too little, or leaves too little; none where all is well.

    >>> from dpbayes import ApproxDP, Unit
    >>> unit = Unit(adjacency="replace-one")
    >>> cautions(ApproxDP(epsilon=1, delta=1e-6), unit, records=50_000)
    ()
    >>> print(cautions(ApproxDP(epsilon=1, delta=1e-3), unit, records=5_000)[0][:58])
    δ=0.001 is not below one in the number of records (5,000):
    """
    said = []
    epsilon, delta = promise.epsilon_delta or (0.0, 0.0)
    if records and delta * records >= 1.0:
        said.append(
            f"δ={rounded_up(delta)} is not below one in the number of records ({records:,}): such a guarantee would "
            f"even allow publishing a few records in full. Choose δ below {0.1 / records:.1g}, a tenth of it."
        )
    if epsilon > 10.0:  # membership is guessed right with certainty but for one in ten thousand
        right = percent(membership(promise.profile))
        said.append(
            f"ε={rounded_up(epsilon)} protects hardly anyone: an attacker may tell whether a person is in the data in "
            f"{right} of cases. About 1 is usual for a release, up to 10 for all of them together."
        )
    least = least_error(promise, unit)
    if records and least is not None and least > 0.1 * records:
        about = f"{least:,.0f}" if least >= 10 else f"{least:.2g}"
        said.append(
            f"With {records:,} records this guarantee leaves little to see: a single count, published alone, is "
            f"uncertain by ± {about} records. Ask for fewer tables, a larger ε, or more records."
        )
    return tuple(said)


def least_error(promise: Guarantee, unit: Unit) -> float | None:
    """± of one count that has the whole guarantee, in records (95 %): of Laplace or Gaussian noise, the smaller one.

    None for guarantees that are neither (ε, δ) nor pure.
    """
    if promise.epsilon_delta is None:
        return None
    (epsilon, delta), moved = promise.epsilon_delta, unit.sensitivity
    laplace = -math.log(0.05) * moved.l1 / epsilon
    if promise.pure:
        return laplace
    return min(laplace, quantile(0.975) * math.sqrt(moved.l2_squared) / gaussian_mu(epsilon, delta))
