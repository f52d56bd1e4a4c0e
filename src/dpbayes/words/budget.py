"""What is said of a limit: what is spent of it, what still fits, and how it is kept."""

from __future__ import annotations

from dpbayes.base.display import rounded_down, rounded_up
from dpbayes.ledger.account import Account, Spending
from dpbayes.privacy.calibrate import guarantee_from_record
from dpbayes.privacy.guarantee import Guarantee, Limit


def costs(amount: float, budget: Guarantee) -> str:
    """A cost in the notion of a limit, in short."""
    return f"{budget.letter} = {rounded_up(amount, 3)}"


def fits(left: float, budget: Guarantee) -> str:
    """What still fits, in short."""
    return f"{budget.letter} = {rounded_down(left, 3)} still fits" if left > 0 else "nothing more fits"


def spent(amount: float, budget: Guarantee) -> str:
    """How much of a limit is used up."""
    return f"{rounded_up(amount, 4)} of {budget.size:g} is spent"


def room(left: float, budget: Guarantee) -> str:
    """What one more release may cost, in a sentence.

    >>> from dpbayes.privacy.adaptive import AdaptiveDP
    >>> room(0.5, AdaptiveDP(epsilon=2, delta=1e-6))
    'One more release of up to ε=0.5 at δ=1e-06 fits; (ε, δ) costs do not simply add.'
    """
    if left <= 0:
        return "Nothing more fits, unless the data owner raises the limit."
    most = budget.quantity.replace(budget.letter, f"{budget.letter}={rounded_down(left, 4)}", 1)
    return f"One more release of up to {most} fits{'; (ε, δ) costs do not simply add' if budget.exception else ''}."


REMEDY = "Lower the ε of this release, or ask the data owner to raise the limit."


def standing(spending: Spending) -> str:
    """Where a release stands in its ledger."""
    budget = guarantee_from_record(spending.budget)
    return f"{spent(spending.spent, budget)}. {room(spending.left, budget)}"


def rule(budget: Limit) -> str:
    """How a limit is kept."""
    if budget.rule is None:
        return "kept by adding up"
    return f"kept by the rule {budget.rule!r}, which holds for adaptive releases too"


def balance(account: Account) -> list[str]:
    """What a data owner wants to know."""
    said = [room(account.left(), account.budget), f"{100 * account.used:.4g} % of the limit is used up."]
    if account.budget.rule is not None:
        delta = account.budget.exception
        said.append(
            f"The limit is {rule(account.budget)}. Had all charges been planned together, they would cost "
            f"ε={rounded_up(account.cost.epsilon(delta), 4)} at δ={delta:g}."
        )
    return said
