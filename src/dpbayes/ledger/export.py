"""A ledger as a public file: the texts of the entries, one a line, so that anyone can check and price them again."""

from __future__ import annotations

from collections.abc import Iterable

from dpbayes.domain.codec import canonical
from dpbayes.errors import LedgerError
from dpbayes.ledger.account import Account, replay
from dpbayes.ledger.entry import broken, parsed


def lines(account: Account) -> list[str]:
    """The entries of one data set, and a last line with the hash of the last entry: it shows when a file is cut."""
    head = {"dataset": account.dataset, "kind": "head", "serial": account.head.serial, "hash": account.head.hash}
    return [*(entry.text for entry in account.entries), canonical(head)]


def read(texts: Iterable[str]) -> dict[str, Account]:
    """The accounts of all data sets in an export, with every chain checked."""
    chains: dict[str, list[str]] = {}
    heads: dict[str, str] = {}
    for number, line in enumerate(texts, start=1):
        text = line.rstrip("\r\n")
        body = parsed(text)
        if body is None or not isinstance(body.get("dataset"), str):
            raise LedgerError(f"Ledger: line {number} of the export is not an entry. Ask for the file again.")
        dataset = str(body["dataset"])
        if body.get("kind") == "head":
            heads[dataset] = text
        else:
            chains.setdefault(dataset, []).append(text)
    accounts = {dataset: replay(dataset, chain) for dataset, chain in chains.items()}
    for dataset in sorted({*accounts, *heads}):
        found = accounts.get(dataset)
        if found is None or lines(found)[-1] != heads.get(dataset):
            raise broken(dataset, 0 if found is None else found.head.serial + 1, "and perhaps later ones are missing")
    if not accounts:
        raise LedgerError("Ledger: the export is empty. Ask for the file again.")
    return accounts
