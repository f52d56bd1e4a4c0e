"""A series: draws that are fixed and charged as one entry, and made one by one as data come in."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base.checks import Floats
from dpbayes.base.codec import canonical, digest
from dpbayes.base.errors import BudgetExceeded, InvalidArgument
from dpbayes.privacy.cost import Cost, Priced

if TYPE_CHECKING:
    from dpbayes.ledger.ledger import Ledger, Receipt


class Series:
    """Draws whose mechanisms and order were fixed before the first, paid for together; ``Ledger.series`` makes one.

    Counts may depend on earlier draws, and draws may stop early. Each counts a person in no more rows than the unit
    says. Equal mechanisms are drawn one after another: the order is that of ``cost.entries``. The series lives in one
    process: what is not drawn when it ends is paid for and lost. As a context it tells the ledger what was drawn. The
    charge stays even if nothing was: whether to draw may have been decided by what the rows hold.

    Source: docs/explanation/proofs/adaptive.md, theorem 3 (a list fixed beforehand is one step).

    >>> import tempfile
    >>> from dpbayes import ApproxDP, Dirichlet, Ledger, PrivacyUnit
    >>> unit = PrivacyUnit(adjacency="add-remove")
    >>> ledger = Ledger(tempfile.mkdtemp() + "/trial.ledger")
    >>> ledger.open("trial", ApproxDP(epsilon=4, delta=1e-6), unit)
    >>> mechanism = Dirichlet(weight=1, concentration=40, unit=unit)
    >>> with ledger.series("trial", Cost.of(mechanism, 10), about="ten draws") as series:
    ...     for step in range(3):
    ...         drawn = series.draw([3 * step, 5])
    ...     (series.left, round(series.epsilon(1e-6), 2), round(series.cost.epsilon(1e-6), 2))
    (7, 1.26, 2.35)
    """

    def __init__(self, ledger: Ledger, receipt: Receipt, cost: Cost) -> None:
        self._ledger, self._receipt, self.cost = ledger, receipt, cost
        self._digests: list[str] = []
        self._over, self._lock, self._process = False, threading.Lock(), os.getpid()

    @property
    def drawn(self) -> int:
        """How many draws were made."""
        return len(self._digests)

    @property
    def left(self) -> int:
        """How many draws are left."""
        return 0 if self._over else self.cost.releases - self.drawn

    @property
    def so_far(self) -> Cost:
        """The cost of the draws that were made, exactly: at most ``cost``, which is what the ledger has charged."""
        left, entries = self.drawn, []
        for mechanism, times in self.cost.entries:
            entries.append((mechanism, min(times, left)))
            left -= min(times, left)
        return Cost(unit=self.cost.unit, entries=tuple(each for each in entries if each[1]))

    def epsilon(self, delta: float) -> float:
        """The running price: ε at this δ of the draws that were made."""
        return self.so_far.epsilon(delta)

    def draw(self, counts: ArrayLike) -> Floats:
        """The next draw. A refusal of the counts uses it up, as it tells something about them."""
        return self._next("draw", counts)

    def gammas(self, counts: ArrayLike) -> Floats:
        """The next draw of a Dirichlet mechanism before it is normalised, at the same cost."""
        return self._next("gammas", counts)

    def _next(self, kind: str, counts: ArrayLike) -> Floats:
        if os.getpid() != self._process:
            raise InvalidArgument("Series: it belongs to the process that opened it. Draw there.")
        with self._lock:
            if not self.left:
                raise BudgetExceeded(
                    f"Series: {'it is closed' if self._over else 'all its draws are made'}. Charge another one."
                )
            draw: Callable[[ArrayLike], Floats] | None = getattr(mechanism := self._at(self.drawn), kind, None)
            if draw is None:
                raise InvalidArgument(f"Series: {type(mechanism).__name__} has no {kind}. Use draw.")
            self._digests.append("")  # used up from here on, whatever happens
            made = draw(counts)
            self._digests[-1] = digest(np.ascontiguousarray(made).tobytes())
        return made

    def _at(self, number: int) -> Priced:
        for mechanism, times in self.cost.entries:
            if number < times:
                return mechanism
            number -= times
        raise AssertionError

    def close(self) -> None:
        """Note in the ledger what was drawn. Nothing is drawn afterwards."""
        with self._lock:
            if self._over or os.getpid() != self._process:
                return
            self._over = True
            self._ledger.confirm(self._receipt, digest=digest(canonical(self._digests)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise InvalidArgument("Series: it cannot be copied or kept, as its draws could then be made twice.")

    def __repr__(self) -> str:
        return f"Series({self._receipt.dataset!r}: {self.drawn} of {self.cost.releases} draws)"
