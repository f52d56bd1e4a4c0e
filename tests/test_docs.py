"""The documentation tells the truth: its snippets run, its links lead somewhere, its tables are up to date."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import json
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests import commands

import dpbayes

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
RUN = re.compile(r"^<!-- run -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


reference = _script("build_reference")


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _blocks(language: str) -> list[object]:
    found = {
        page: [text for kind, text in RUN.findall(page.read_text(encoding="utf-8")) if kind == language]
        for page in PAGES
    }
    return [pytest.param(blocks, id=_name(page)) for page, blocks in found.items() if blocks]


def _same(expected: str, got: str) -> bool:
    """Equal up to trailing blanks, with … written as three dots for what may differ."""
    lines = ["\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n" for text in (expected, got)]
    return doctest.OutputChecker().check_output(*lines, doctest.ELLIPSIS)


@pytest.mark.parametrize("blocks", _blocks("python"))
def test_python_snippets_print_what_they_say(blocks: list[str]) -> None:
    names: dict[str, object] = {}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    report: list[str] = []
    for block in blocks:
        assert ">>>" in block, "a runnable python block shows prompts and results"
        test = parser.get_doctest(block, names, "snippet", None, None)
        runner.run(test, out=report.append, clear_globs=False)
        names = test.globs
    assert not runner.failures, "".join(report)


@pytest.mark.filterwarnings("ignore::dpbayes.sklearn.SecondRelease")
@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.ipynb")), ids=lambda page: page.name)
def test_notebooks_run_from_top_to_bottom_and_keep_no_output(page: Path) -> None:
    names: dict[str, Any] = {}
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            assert not cell["outputs"]
            *body, last = ast.parse("".join(cell["source"])).body
            exec(compile(ast.Module(body, []), page.name, "exec"), names)
            if isinstance(last, ast.Expr):
                shown = eval(compile(ast.Expression(last.value), page.name, "eval"), names)
                assert shown is None or len(getattr(shown, "_repr_html_", shown.__repr__)()) < 50_000
            else:
                exec(compile(ast.Module([last], []), page.name, "exec"), names)
    assert names["gap"].lower < names["gap"].upper
    assert 0.3 < names["scores"]["private"] < names["scores"]["without noise"] + 0.05


@pytest.mark.parametrize("blocks", _blocks("console"))
def test_console_snippets_print_what_they_say(
    blocks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    for block in blocks:
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = step.partition("\n")
            program, *arguments = shlex.split(command)
            assert program == "dpbayes"
            done = commands.dpbayes(*arguments)
            assert _same(expected, done.out + done.err), f"$ {command}\n{done.out}{done.err}"


MODULES = sorted(
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    for path in (ROOT / "src").rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_return_what_they_say(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert found.attempted > 0
    assert found.failed == 0


def test_the_readme_shows_a_real_output() -> None:
    kinds = [kind for kind, _ in RUN.findall((ROOT / "README.md").read_text(encoding="utf-8"))]
    assert "console" in kinds


ON_SURVEY = re.compile(r"^<!-- run on the example survey -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_ten_lines_of_the_readme_are_ten_and_need_one_import() -> None:
    (script,) = ON_SURVEY.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    first, *lines = [line for line in script.splitlines() if line.strip()]
    assert first == "import dpbayes as dp"
    assert len(lines) <= 10
    assert not [line for line in lines if "import" in line.split("#")[0]]


def test_the_comparison_in_the_readme_is_that_of_the_page_with_its_sources() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = (DOCS / "reference" / "comparison.md").read_text(encoding="utf-8")
    rows = [line for line in readme.splitlines() if line.startswith("|") and line.count("|") == 9]
    assert len(rows) > 10
    assert all(row in page.splitlines() for row in rows)
    assert len(readme.splitlines()) <= 120


@pytest.mark.parametrize("page", sorted((DOCS / "tutorials").glob("*.md")), ids=_name)
def test_a_tutorial_is_short_and_ends_with_something_to_look_at(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.split()) <= 500
    assert re.search(r"report\.html|\.svg|\.plot\(|pages of a release", text)


def test_the_job_of_the_how_to_page_is_one_file_and_its_tests_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (DOCS / "how-to" / "add-a-job.md").read_text(encoding="utf-8")
    job, tests = re.findall(r"^<!-- (?:a job|its tests) -->\n```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "mode.py").write_text(job, encoding="utf-8")
    package = importlib.import_module("dpbayes.jobs")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    names: dict[str, object] = {}
    try:
        exec(tests, names)
        laws = [law for name, law in names.items() if name.startswith("test_") and callable(law)]
        assert len(laws) == 4
        for law in laws:
            law()
    finally:
        sys.modules.pop("dpbayes.jobs.mode", None)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        aim = (page.parent / path).resolve() if path else page
        assert aim.exists(), f"{_name(page)} links to {target}, which does not exist"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", aim.read_text(encoding="utf-8"), re.MULTILINE)
            named = {name for heading in headings for name in re.findall(r"\{#([\w-]+)\}$", heading)}
            slugs = named | {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{_name(page)} links to {target}, but there is no such heading"


@pytest.mark.parametrize("page", sorted(reference.BUILDERS))
def test_generated_pages_are_up_to_date(page: str) -> None:
    committed = (reference.PAGES / page).read_text(encoding="utf-8")
    assert committed == reference.BUILDERS[page]().rstrip() + "\n", "run python docs/build_reference.py"


def _bibliography() -> set[str]:
    return set(re.findall(r"^@\w+\{([\w-]+),", (DOCS / "references.bib").read_text(encoding="utf-8"), re.MULTILINE))


def test_every_source_is_a_known_key_or_a_page_of_ours() -> None:
    keys, problems = _bibliography(), []
    for statement in reference.statements():
        where = f"{statement.module}.{statement.name}"
        if not statement.keys and not statement.pages:
            problems.append(f"{where} cites no [Key] and no page under docs/: {statement.source}")
        problems += [f"{where} cites [{key}], not in references.bib" for key in statement.keys if key not in keys]
        problems += [f"{where} cites docs/{page}, not there" for page in statement.pages if not (DOCS / page).exists()]
    assert not problems, "\n".join(problems)


def test_every_formula_with_a_source_is_called_by_a_test() -> None:
    untested = [f"{each.module}.{each.name}" for each in reference.statements() if not reference.tests_of(each)]
    assert not untested, "no test calls " + ", ".join(untested)


def test_a_call_in_a_test_is_told_from_a_name_that_is_never_used() -> None:
    made = reference.Statement(module="dpbayes.privacy.convert", name="never_written", formula="", source="")
    assert reference.tests_of(made) == []


def test_every_mechanism_has_a_row_among_the_theorems() -> None:
    from dpbayes.mechanisms.kinds import KINDS

    stated = {f"{each.module}:{each.name.split('.')[0]}" for each in reference.statements()}
    assert {name for name, place in KINDS.items() if place not in stated} == set()


def test_every_key_cited_on_a_page_is_in_the_bibliography() -> None:
    keys = _bibliography()
    listed = set(
        re.findall(
            r"^\| \[([\w-]+)\] \|", (DOCS / "reference" / "references.md").read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    assert listed == keys
    for page in (*DOCS.joinpath("explanation").rglob("*.md"), *DOCS.joinpath("how-to").glob("*.md")):
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        cited = set(re.findall(r"(?<![\w\]`])\[([A-Z][A-Za-z]*-?[a-z]*\d*)\](?![(\[])", text)) - {"Key", "KL"}
        unknown = {key for key in cited if re.search(r"\d\d|^H-|DP$|^[A-Z][a-z]+$|^KOV$", key)} - keys
        assert not unknown, f"{_name(page)} cites {sorted(unknown)}"


def test_every_command_has_a_reference_entry_and_an_example() -> None:
    page = (reference.PAGES / "cli.md").read_text(encoding="utf-8")
    for name, command in reference.commands():
        assert f"## `dpbayes {name}`" in page
        assert "Example:" in (command.help or ""), f"{name} shows no example in its help"


def test_every_public_name_has_a_reference_entry() -> None:
    page = (reference.PAGES / "python.md").read_text(encoding="utf-8")
    assert {name for name in dpbayes.__all__ if f"## `{name}`" not in page} == set()


def test_every_page_is_in_the_navigation() -> None:
    nav = _script("navigation").on_config({"docs_dir": str(DOCS)})["nav"]

    def flat(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        inner = entry.values() if isinstance(entry, dict) else entry
        return [page for each in inner for page in flat(each)]  # type: ignore[attr-defined]

    assert sorted(flat(nav)) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_the_changelog_puts_privacy_first() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for version in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        headings = re.findall(r"^### (.+)$", version, re.MULTILINE)
        assert headings[0] == "Privacy"


def test_every_parameter_in_the_python_reference_has_a_meaning() -> None:
    empty = [line for line in reference.python_page().splitlines() if re.match(r"\| `.*\|  \|$", line)]
    assert not empty


GONE = (
    "but for a chance of",
    "factor of 2.72, but",
    r"\bat most 1 rows",
    r"row\(s\)",
    r"release\(s\)",
    r"Who wants",
    "without betraying",
    "as good as none",
    "almost as likely",
    r"at most \d+ rows a person",
    r"\bmechanisms cost \S+ of the",
)
"""Phrases that read like a translation. They were taken out, and must not come back."""


@pytest.mark.parametrize("phrase", GONE)
def test_phrases_that_were_taken_out_stay_out(phrase: str) -> None:
    texts = [*PAGES, *sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "src").rglob("*.html"))]
    found = [_name(path) for path in texts if re.search(phrase, path.read_text(encoding="utf-8"))]
    assert not found


pictures = _script("pictures")


def test_the_picture_of_the_running_cost_shows_what_the_page_prints(tmp_path: Path) -> None:
    """Drawn again, the curve is the same to a pixel."""
    drawn = pictures.running_cost(40, 2.0).save(tmp_path / "again.svg").read_text(encoding="utf-8")
    kept = (DOCS / "how-to" / "posterior-sampling.svg").read_text(encoding="utf-8")
    number = re.compile(r"\d+\.?\d*")
    for one, other in zip(number.findall(drawn), number.findall(kept), strict=True):
        assert abs(float(one) - float(other)) <= 1.0
    text = (DOCS / "how-to" / "posterior-sampling.md").read_text(encoding="utf-8")
    assert "posterior-sampling.svg" in text
    assert "batches, patients = 40" in text
    assert "ApproxDP(epsilon=2.0, delta=1e-6)" in text
