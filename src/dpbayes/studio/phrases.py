"""Numbers and promises in words, for all pages."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from markupsafe import Markup

from dpbayes.domain.marginal import Marginal
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.ledger.account import Account
from dpbayes.privacy.guarantee import Guarantee, rounded_down, rounded_up
from dpbayes.privacy.risk import percent  # noqa: F401 - for templates
from dpbayes.report.figures import gauge


def unit(protects: PrivacyUnit) -> str:
    """Whom a promise protects, in a sentence.

    >>> unit(PrivacyUnit(adjacency="add-remove", max_rows=3, person="pid"))
    'Protects each person, with up to 3 rows, told apart by the column pid. The number of records stays private.'
    """
    rows = "one row" if protects.max_rows == 1 else f"up to {protects.max_rows} rows"
    who = "" if protects.person is None else f", told apart by the column {protects.person}"
    size = "is public" if protects.fixed_size else "stays private"
    return f"Protects each person, with {rows}{who}. The number of records {size}."


def notion(budget: Guarantee) -> str:
    """What the numbers of a budget are."""
    return f"ε at δ = {budget.exception:g}" if budget.exception else budget.letter


def up(number: float) -> str:
    """A cost, rounded up."""
    return rounded_up(number, 3)


def down(number: float) -> str:
    """What is left, rounded down."""
    return rounded_down(number, 3)


def left(account: Account) -> str:
    """What still fits."""
    name = account.budget.letter
    if account.left() <= 0:
        return "nothing more fits"
    return f"{name} = {down(account.left())} still fits"


def bar(account: Account) -> Markup:
    """One bar of what is used up."""
    said = f"{account.budget.letter} = {up(account.spent)} of {account.limit:g} spent; {left(account)}"
    return Markup(gauge(account.used, said))  # noqa: S704 - made by our own markup, which escapes


def rule(account: Account) -> str:
    """How the limit is kept."""
    if account.budget.rule is not None:
        return f"kept by the rule {account.budget.rule}, whatever later releases are adapted to"
    return "kept by adding up"


def command(*words: str) -> str:
    """A command line that a shell reads as meant.

    >>> command("dpbayes", "release", "my table.csv", "--marginal", "income|sex")
    "dpbayes release 'my table.csv' --marginal 'income|sex'"
    """
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    """A word in double quotes where that reads better, as in a question with single ones."""
    return f'"{word}"' if "'" in word and not set(word) & set('"$`\\\\!') else shlex.quote(word)


def many(number: int, one: str, more: str = "") -> str:
    """A number with its noun.

    >>> many(1, "table"), many(2, "table"), many(3, "category", "categories")
    ('1 table', '2 tables', '3 categories')
    """
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def listed(items: Iterable[str], most: int = 6) -> str:
    """The first few of them."""
    from dpbayes.domain.display import listed as few

    return few(items, most)


def marginals(texts: Iterable[str]) -> list[Marginal]:
    """The tables of a request."""
    return [Marginal.parse(text) for text in texts]


def table(marginal: Marginal) -> str:
    """A table in words.

    >>> table(Marginal.parse("income|sex")), table(Marginal.parse("sex,age"))
    ('income, for each sex', 'sex × age')
    """
    of = " × ".join(marginal.of)
    return of if not marginal.given else f"{of}, for each {' and '.join(marginal.given)}"


def forms(marginal: Marginal) -> list[tuple[str, str]]:
    """The three forms of a table of two attributes."""
    one, other = sorted(marginal.names)
    ordered = (one, other) if set(marginal.of) != {one, other} else marginal.of
    made = [Marginal(tuple(ordered)), Marginal((one,), (other,)), Marginal((other,), (one,))]
    return [(str(each), table(each)) for each in made]


def plus(number: float) -> str:
    """A half width with two digits.

    >>> plus(12.34), plus(0.0734), plus(1234.0)
    ('± 12', '± 0.073', '± 1,234')
    """
    if number >= 100:
        return f"± {number:,.0f}"
    return f"± {number:.2g}"


def numbers(listed: Iterable[float]) -> str:
    """Numbers for a form."""
    return ", ".join(f"{each:g}" for each in listed)
