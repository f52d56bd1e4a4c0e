"""A privacy sheet: what NIST SP 800-226 asks readers to look for in a claim of differential privacy, on one page.

Source: NIST Special Publication 800-226, Guidelines for Evaluating Differential Privacy Guarantees (2025): the
parameters and the unit, the mechanisms and their correctness, accuracy and bias, the trust model and side channels, and
the security and collection of the data below them.
"""

from __future__ import annotations

from dpbayes.domain.markup import Html, joined, table, tag
from dpbayes.release.format import Release
from dpbayes.report import statements as say
from dpbayes.report import words
from dpbayes.report.page import about, page, title

FILE = "privacy-sheet.html"

Facts = list[tuple[str, str]]


def facts(release: Release) -> dict[str, Facts]:
    """The sheet as data: for each heading, what is stated."""
    letters = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    numbers = ", ".join(f"{letters[key]} = {value:g}" for key, value in say.parameters(release.promise).items())
    said = about(release)
    return {
        "The guarantee": [
            ("Notion", say.variant(release.promise)),
            ("Parameters", numbers or str(release.promise)),
            ("In words", release.statement()),
            ("Unit of privacy", say.unit_name(release)),
            ("Neighbours", say.unit_details(release)),
            ("Data domain", say.domain(release)),
            ("Not protected", say.unprotected(release)),
        ],
        "Mechanisms": [
            ("Mechanisms", " ".join(say.mechanisms(release)[:20])),
            ("Implementation", say.implementation(release)),
            ("Correctness", "dpbayes verify prices the mechanisms again and recomputes the estimates from the file."),
        ],
        "Accounting": [
            ("Composition", say.composition(release)),
            ("Post-processing", say.POST),
            ("Preparation and tuning", say.preparation(release)),
        ],
        "Accuracy and bias": [
            ("Accuracy", say.accuracy(release)),
            ("Bias", "Estimates are not below zero and agree with each other, so small true counts are estimated with "
             "some bias towards what their totals suggest. The released values are unbiased or carry a known prior."),
        ],
        "Threat model": [
            ("Trust", say.TRUST),
            ("Randomness", "Seeded, so nothing is promised." if release.seeded else say.SAMPLING),
            ("Floating point", say.FLOATING),
            ("Side channels", say.SIDE),
        ],
        "Data and security": [
            ("Purpose", said.get("purpose", say.OWN)),
            ("Publisher", ", ".join(said[key] for key in ("author", "contact") if key in said) or say.OWN),
            ("Access control and storage of the rows", say.OWN),
            ("Collection and consent", say.OWN),
        ],
    }  # fmt: skip


def sheet_html(release: Release) -> str:
    """The sheet as a self-contained page."""
    parts: list[Html] = [
        tag("h1", f"Privacy sheet: {title(release)}", dir="auto"),
        tag(
            "p",
            f"Data set {release.dataset}, drawn {release.created}. It follows what NIST SP 800-226 asks about a claim "
            "of differential privacy.",
            class_="faint",
        ),
    ]
    if release.seeded:
        parts.append(tag("p", words.NOT_PRIVATE, class_="danger", role="alert"))
    for heading, rows in facts(release).items():
        parts += [tag("h2", heading), table(heading, ("what", "statement"), rows, class_="facts quiet")]
    return page(f"Privacy sheet: {title(release)}", joined(parts))
