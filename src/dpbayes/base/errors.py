"""Every error that dpbayes raises on purpose.

    DpbayesError
    ├── InvalidArgument      a parameter outside its domain
    │   └── UnitMismatch     two costs that protect different things
    ├── TargetUnreachable    no parameters meet the guarantee asked for
    ├── BudgetExceeded       a charge that the ledger refuses
    ├── LedgerError          a ledger that is locked, damaged or too new
    ├── SchemaError          a schema that cannot be used
    ├── TableError           a table that cannot be read
    ├── Unfinished           a release that is paid for and can be completed
    ├── ReleaseError         a release file that cannot be read or does not verify
    ├── NoiseError           the samplers of noise fail their self-test
    └── MissingExtra         an optional library is not installed

Messages name the owner, what was expected, what came and what to do. They never contain counts,
rows or categories of a private table.
"""

from __future__ import annotations


class DpbayesError(Exception):
    """Root of all errors raised on purpose."""

    parts: tuple[tuple[str, tuple[str | int, ...]], ...] = ()
    """Of an error that says several things, each with the part of the file that it is about."""


class InvalidArgument(DpbayesError, ValueError):  # noqa: N818 - reads as a sentence: "invalid argument"
    """A parameter lies outside its domain."""


class UnitMismatch(InvalidArgument):
    """Two costs that protect different privacy units cannot be added."""


class TargetUnreachable(DpbayesError):  # noqa: N818 - see InvalidArgument
    """No parameters meet the guarantee asked for."""


class BudgetExceeded(DpbayesError):  # noqa: N818 - see InvalidArgument
    """A charge was refused; ``asked``, ``spent``, ``limit`` and ``fits`` hold the numbers."""

    def __init__(
        self,
        message: str,
        *,
        asked: float | None = None,
        spent: float | None = None,
        limit: float | None = None,
        fits: float | None = None,
    ) -> None:
        super().__init__(message)
        self.asked = asked
        self.spent = spent
        self.limit = limit
        self.fits = fits


class LedgerError(DpbayesError):
    """The ledger is locked, damaged, read-only or of a newer version."""


class SchemaError(DpbayesError):
    """The schema is malformed or does not fit the table."""


class TableError(DpbayesError):
    """The table cannot be read."""


class ReleaseError(DpbayesError):
    """A release file cannot be read, or its claims do not verify."""


class Unfinished(DpbayesError):  # noqa: N818 - see InvalidArgument
    """A release was paid for, could not be completed now, and is not lost: `dpbayes ledger finish` goes on with it."""

    finished: tuple[object, ...] = ()
    """The releases that could be completed, where several were to be."""


class NoiseError(DpbayesError):
    """The samplers of noise fail their self-test: nothing drawn with them may be published."""


class MissingExtra(DpbayesError):  # noqa: N818 - see InvalidArgument
    """An optional library is needed; the message says what to install."""


class MeaninglessBudget(UserWarning):
    """So little budget is left for each table that noise hides all records."""
