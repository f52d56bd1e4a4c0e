"""Many processes charge the same ledger at the same moment; prints one line for each: its hash, or ``refused``.

Usage: racer.py WHERE DATASET PROCESSES SIGMA
"""

from __future__ import annotations

import os
import sys

from dpbayes import Cost, Gaussian
from dpbayes.base.errors import BudgetExceeded
from dpbayes.ledger.ledger import Ledger


def one(where: str, dataset: str, cost: Cost, start: int) -> str:
    os.read(start, 1)  # returns when the parent closes its end
    try:
        receipt = Ledger(where).charge(dataset, cost)
    except BudgetExceeded:
        return "refused"
    return receipt.hash


def main(where: str, dataset: str, processes: str, sigma: str) -> None:
    account = Ledger(where).account(dataset)
    cost = Cost.of(Gaussian(sigma=float(sigma), unit=account.unit))
    account.budget.gap(cost * 2)  # loads what pricing needs, once for all
    wait, go = os.pipe()
    children = []
    for _ in range(int(processes)):
        child = os.fork()
        if child == 0:
            os.close(go)
            try:
                os.write(1, f"{one(where, dataset, cost, wait)}\n".encode())
            finally:
                os._exit(0)
        children.append(child)
    os.close(go)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
