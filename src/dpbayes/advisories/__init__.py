"""Which ledgers and files of earlier versions promise more than they keep, by how much, and what to do."""

from dpbayes.advisories.known import ADVISORIES, Finding
from dpbayes.advisories.search import Report, search

__all__ = ["ADVISORIES", "Finding", "Report", "search"]
