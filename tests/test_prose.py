"""The pages are short, say each thing once and use one word for one thing.

Code, tables of figures and generated pages are not prose.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PROOFS = "docs/explanation/proofs/"
GENERATED = {
    "docs/reference/cli.md",
    "docs/reference/papers.md",
    "docs/reference/python.md",
    "docs/reference/release-format.md",
    "docs/reference/theorems.md",
    "docs/reproduction/audit.md",
    "docs/reproduction/benchmarks.md",
    *(f"docs/reproduction/{page}.md" for page in ("index", "rdp", "tcdp", "hellinger")),
}
"""Written by programs: docs/build_reference.py from docstrings, the audit, benchmarks and experiments from results."""

WORDS = 48_000
"""Of all pages but reference and reproduction."""
SENTENCE = 35
LONG_IN_PROOFS = 5
"""Sentences above 35 words in all proofs together: chains of formulas that cannot be cut."""
LINE = 200
REPEATED = 10

FENCE = re.compile(r"^ *```.*?^ *```$|^<!--.*?-->$|^(?:    |\t)[^\n]*$", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
END = re.compile(r"(?<=[.?!])[\"”)*_]*(?:\n| (?=[\"“(*_`\[]*(?:[A-Z0-9`]|[^\x00-\x7f])))")


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


PAGES = [page for page in sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")]) if _name(page) not in GENERATED]


def _prose(page: Path) -> str:
    """A page without code, pictures and the addresses of links."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    return re.sub(r"\[([^\]]*)\]\([^)\s]+\)", r"\1", text)


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs, items of lists and cells of tables; headings are none."""
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        table, heading, item = line.lstrip().startswith("|"), line.startswith("#"), ITEM.match(line)
        if lines and (not line.strip() or table or heading or item):
            yield "\n".join(lines)
            lines = []
        if table:
            yield from (cell.strip() for cell in line.strip().strip("|").split("|"))
        elif line.strip() and not heading:
            lines.append(ITEM.sub("", line).strip())


def _words(sentence: str) -> list[str]:
    """Words; what stands between backticks is one, and signs of formulas are none."""
    plain = re.sub(r"`[^`]*`", "code", sentence)
    return [word for word in plain.split() if re.search(r"[A-Za-z]{2}|^[aAI]$|\d", word)]


def _sentences(page: Path) -> Iterator[str]:
    for paragraph in _paragraphs(_prose(page)):
        yield from END.split(paragraph)


def _long(pages: list[Path]) -> list[str]:
    found = [(page, sentence) for page in pages for sentence in _sentences(page)]
    return [f"{_name(page)}: {sentence}" for page, sentence in found if len(_words(sentence)) > SENTENCE]


def test_no_sentence_is_longer_than_one_can_read_at_once() -> None:
    long = _long([page for page in PAGES if not _name(page).startswith(PROOFS)])
    assert not long, "\n".join(long)


def test_few_sentences_of_proofs_are_long() -> None:
    long = _long([page for page in PAGES if _name(page).startswith(PROOFS)])
    assert len(long) <= LONG_IN_PROOFS, "\n".join(long)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_no_line_of_prose_is_wider_than_a_window(page: Path) -> None:
    lines = FENCE.sub("", page.read_text(encoding="utf-8")).splitlines()
    wide = [line for line in lines if len(line) > LINE and not line.lstrip().startswith("|")]
    assert not wide, "\n".join(wide)


def test_the_pages_together_stay_below_their_ceiling() -> None:
    counted = {
        _name(page): len(page.read_text(encoding="utf-8").split())
        for page in DOCS.rglob("*.md")
        if not _name(page).startswith(("docs/reference/", "docs/reproduction/"))
    }
    total = sum(counted.values())
    most = sorted(counted.items(), key=lambda each: -each[1])[:10]
    assert total <= WORDS, f"{total} words; the longest pages: {most}"


def test_nothing_is_said_twice() -> None:
    places: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for page in PAGES:
        for paragraph in _paragraphs(_prose(page)):
            words = re.findall(r"[\w’'-]+", paragraph.lower())
            for start in range(len(words) - REPEATED + 1):
                run = tuple(words[start : start + REPEATED])
                if sum(bool(re.search("[a-z]{2}", word)) for word in run) > REPEATED // 2:  # else it is a formula
                    places[run].add(_name(page))
    twice = [f"{sorted(pages)}: {' '.join(words)}" for words, pages in places.items() if len(pages) > 1]
    assert not twice, "\n".join(twice)


BANNED = {
    r"(?<!there )\b(?:is|are) no (?!longer|more|less|larger|smaller|better|worse|other|wider|further)\w+": "is not a …",
    r"\bbut for\b": "except",
    r"\bso many\b": "this many",
    r"\bas good as\b": "almost, or equal to",
    r"\bfor want of\b": "without",
    r"\bdear\b": "expensive",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\bbetray\w*": "reveal",
    r"\ball the same\b": "still",
    r"\bpublications?\b": "release",
    r"\bposterior draws?\b": "Dirichlet draw",
    r"\bone posterior\b": "estimate",
    r"\bpromis\w+": "guarantee",
    r"\bpric(?:e|es|ed|ing)\b": "cost",
    r"\b(?:pay|pays|paid|paying|prepaid)\b": "charge, cost",
    r"\b(?:buy|buys|bought|buying)\b": "discover, charge",
    r"\bat no cost\b|\bcosts nothing\b": "not charged",
    r"\bbudgets?\b": "limit of the owner, guarantee of a release",
    r"\blaws?\b": "distribution",
    r"\bwhole[- ]numbers?\b": "integer",
    r"\bcode books?\b": "codebook",
    r"\bcautions?\b": "warning",
    r"\bguard rails?\b": "warning",
    r"\b(?:swallow|drown)\w*": "unreadable",
    r"\bmade-up\b": "example, synthetic",
    r"\breleasers?\b": "publisher",
    r"\bstrangers?\b": "reader, attacker",
    r"\bfaults?\b": "bug",
    r"\bprocessor (?:seconds?|time)\b|\bseconds? of (?:the )?processor": "CPU seconds",
    r"\bthe house\b": "architecture",
}
"""What reads like a translation, or is a second word for one thing, and what to say instead."""


@pytest.mark.parametrize("phrase", BANNED)
def test_one_word_for_one_thing(phrase: str) -> None:
    found = []
    for page in PAGES:
        plain = re.sub(r"`[^`]*`|\$[^$]*\$", "", _prose(page))
        found += [f"{_name(page)}: {hit.group()!r}" for hit in re.finditer(phrase, plain, re.IGNORECASE)]
    assert not found, f"say {BANNED[phrase]}:\n" + "\n".join(found)


MENDED = (
    r"\bbut for a chance\b",
    r"\bcode books?\b",
    r"\bstrangers?\b",
    r"\bprocessor (?:seconds?|time)\b",
    r"\bthe house\b",
)
"""What strings of the source do not hold any more. The list only grows, up to `BANNED`."""


@cache
def _strings(path: Path) -> tuple[str, ...]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return tuple(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


@pytest.mark.parametrize("phrase", MENDED)
def test_strings_of_the_source_use_it_too(phrase: str) -> None:
    files = sorted((ROOT / "src").rglob("*.py"))
    found = [f"{_name(path)}: {text[:80]!r}" for path in files for text in _strings(path) if re.search(phrase, text)]
    assert not found, "\n".join(found)


def _exists(name: str) -> bool:
    """Whether a dotted name imports: the longest module first, attributes then."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing: object = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            fields = getattr(thing, "__dataclass_fields__", {})
            if not hasattr(thing, part) and part not in fields:
                return False
            thing = getattr(thing, part, None)
        return True
    return False


def _commands() -> set[str]:
    from dpbayes.cli import COMMANDS

    return {"dpbayes", *(f"dpbayes {name}" for name in COMMANDS)}


SPAN = re.compile(r"`([^`\n]+)`")
MISSING_ON_PURPOSE = {"CHANGELOG.md"}
"""History names what is gone."""


def _spans() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        if _name(page) not in MISSING_ON_PURPOSE:
            text = FENCE.sub("", page.read_text(encoding="utf-8"))
            found += [(_name(page), span) for span in SPAN.findall(text)]
    return found


def test_names_between_backticks_can_be_imported() -> None:
    names = re.compile(r"^(?:dpbayes|dp)((?:\.\w+)+)(?:\(.*)?$")
    gone = []
    for page, span in _spans():
        match = names.match(span)
        if match and not _exists("dpbayes" + match[1]):
            gone.append(f"{page}: {span}")
    assert not gone, "\n".join(gone)


def test_commands_between_backticks_exist() -> None:
    known = _commands()
    gone = []
    for page, span in _spans():
        words = re.match(r"^dpbayes((?: [a-z][a-z-]*)*)", span)
        if not words or span.startswith("dpbayes."):
            continue
        first = " ".join(["dpbayes", *words[1].split()[:1]])
        second = " ".join(["dpbayes", *words[1].split()[:2]])
        grouped = any(each.startswith(first + " ") for each in known)
        if second not in known and (grouped or first not in known):
            gone.append(f"{page}: {span}")
    assert not gone, "\n".join(gone)


def test_files_between_backticks_exist() -> None:
    places = re.compile(r"^(?:src|docs|tests|audit|benchmarks|experiments)/[\w./-]+$")
    found = [(page, span) for page, span in _spans() if places.match(span)]
    gone = [f"{page}: {span}" for page, span in found if not (ROOT / span).exists()]
    assert not gone, "\n".join(gone)
