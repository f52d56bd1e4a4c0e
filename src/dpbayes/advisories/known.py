"""The advisories: what was wrong in which version, and what to do about a release that it touches."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Status = Literal["affected", "check", "unknown"]
"""``affected``: proven from the file. ``check``: only the owner can tell. ``unknown``: the file does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advisory:
    """One fault of released software."""

    title: str
    versions: str
    remedy: str


ADVISORIES = {
    "discovery-delta": Advisory(
        title="The δ of discovered categories was stated too small",
        versions="0.1.0",
        remedy="Count with the true δ. Where it is near 1, texts of single people may be among the "
        "categories: look for them before the list is used any further.",
    ),
    "float-gammas": Advisory(
        title="Dirichlet gammas of large tables show in their digits which counts made them",
        versions="0.1.0",
        remedy="Where the true δ is only a little above the stated one, count with the true one. Otherwise treat the "
        "release as not private: withdraw it, and publish the table again with Gaussian noise.",
    ),
    "adaptive-budget": Advisory(
        title="An (ε, δ) limit does not hold when releases are chosen after seeing earlier ones",
        versions="0.1.0",
        remedy="If every release, with its noise, was settled before the first was drawn, nothing is wrong. Otherwise "
        "carry the ledger on under a rule that lasts, and state the larger figure.",
    ),
    "biased-noise": Advisory(
        title="OpenDP 0.14.0 and 0.14.1 draw biased integer noise",
        versions="0.1.0 with opendp 0.14.0 or 0.14.1",
        remedy="The files do not say which OpenDP drew the noise. Ask whoever ran dpbayes (pip show opendp, or the "
        "lock file). With one of the two, a Laplace release of scale 5 had a loss of 0.35 where 0.2 was stated: "
        "count such releases at twice their ε, and publish again what matters.",
    ),
    "person-column": Advisory(
        title="Releases per person and releases per row were charged as if they protected the same",
        versions="0.1.0",
        remedy="A release without the person column protects single rows. Say so where it was published, or count it "
        "once for each row that a person can have.",
    ),
    "certificate": Advisory(
        title="The certificate of a posterior was believed without being derived again",
        versions="0.1.0",
        remedy="Use the ε that enumeration gives, and find out who wrote the certificate.",
    ),
    "count-oracle": Advisory(
        title="A refusal after counting took its charge back, so guesses at totals cost nothing",
        versions="0.1.0",
        remedy="Ask who ran these releases, and with which schemas. If the schema declared records or margins that "
        "were not public knowledge, each refusal told whether a declared total was right.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One release or charge that an advisory touches."""

    advisory: str
    status: Status
    where: str
    what: str
    stated: str
    true: str

    @property
    def remedy(self) -> str:
        """What to do, in plain words."""
        return ADVISORIES[self.advisory].remedy

    def record(self) -> dict[str, str]:
        """JSON form."""
        return {**asdict(self), "title": ADVISORIES[self.advisory].title, "remedy": self.remedy}
