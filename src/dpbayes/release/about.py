"""What a release says about itself to its readers: free text that its author chose, and no number depends on."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dpbayes.errors import InvalidArgument

ABOUT = ("title", "author", "contact", "purpose", "supersedes")
"""A line each, but for the purpose; ``supersedes`` is the id of an earlier release that this one replaces."""

LONGEST = {"purpose": 4000}
LONGEST_LINE = 300

_ID = re.compile(r"[0-9a-f]{12,64}")


def checked(about: Mapping[str, str], *, owner: str = "Release") -> dict[str, str]:
    """The texts without those that are empty; a key that is not known, or a text that is too long, is refused.

    >>> checked({"title": "Income by sex ", "purpose": ""})
    {'title': 'Income by sex'}
    """
    found = {}
    for key, text in about.items():
        if key not in ABOUT:
            raise InvalidArgument(f"{owner}: expected about to have the keys {', '.join(ABOUT)}, got {key!r}.")
        if not isinstance(text, str):
            raise InvalidArgument(f"{owner}: expected {key} to be text, got {type(text).__name__}.")
        longest, lines = LONGEST.get(key, LONGEST_LINE), text.strip().splitlines()
        if len(text) > longest:
            raise InvalidArgument(f"{owner}: expected {key} to have at most {longest} characters, got {len(text)}.")
        if not all(line.isprintable() for line in lines) or (len(lines) > 1 and key not in LONGEST):
            raise InvalidArgument(f"{owner}: expected {key} to be one line of printable text.")
        if key == "supersedes" and lines and not _ID.fullmatch(lines[0]):
            raise InvalidArgument(
                f"{owner}: expected supersedes to be the id of a release, 12 or more hexadecimal digits, "
                f"got {lines[0][:40]!r}. `dpbayes ledger show` lists the ids."
            )
        if lines:
            found[key] = "\n".join(lines)
    return found
