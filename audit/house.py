"""How large and how tangled the code is: one table of numbers, and the ceilings that they must not pass.

    python -m audit.house [--json] [--trace FILE]

``house.toml`` maps names of the table (the left column) to the largest value allowed. What exceeds it is listed, and
the exit code is 1. Ceilings only go down; raising one takes a section of docs/decisions.md.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CEILINGS = HERE / "house.toml"
PACKAGE = "dpbayes"
LONG, SHORT = 400, 60
"""A module above LONG lines does too much; one below SHORT lines with a single importer belongs to that importer."""

GENERATED_DOCS = ("reference", "reproduction")
"""Folders of docs that are built from the source: their words are nobody's prose."""

MEANING = {
    "lines": "lines of source",
    "lines_code": "  code, imports included",
    "lines_docstring": "  docstrings and comments",
    "lines_blank": "  blank",
    "modules": "modules with content, packages' __init__ aside",
    "packages": "packages",
    "modules_long": f"modules over {LONG} lines",
    "modules_tiny": f"modules under {SHORT} lines with one importer",
    "release_files": "files a two-table release enters",
    "release_functions": "functions it enters",
    "cycle": "modules in the largest import cycle, lazy imports counted",
    "cyclic": "modules in any such cycle",
    "lazy_imports": "imports of own modules inside functions",
    "dynamic_imports": "calls of import_module",
    "ignored_imports": "ignore_imports entries of the import contracts",
    "guarantee_isinstance": "isinstance lines on guarantees outside privacy",
    "classes_repeated": "class names defined more than once",
    "names_repeated": "module names used more than once",
    "constants": "numeric constants at module level",
    "commands": "leaf commands of the command line",
    "options": "their options, each counted where it is offered",
    "options_distinct": "names of options",
    "doc_words": "words of docs, reference and reproduction aside",
    "longest_prose_line": "characters of the longest line of prose",
}
"""Every number, in the order of the table; a number that could not be measured is null."""

Numbers = dict[str, int | None]


@dataclass
class Module:
    """One source file, parsed once."""

    name: str
    path: Path
    source: str
    tree: ast.Module = field(repr=False)

    @property
    def room(self) -> str:
        """The package below the root that holds it."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else ""

    @property
    def lines(self) -> int:
        """Its length."""
        return len(self.source.splitlines())

    @property
    def is_package(self) -> bool:
        """Whether it stands for its folder."""
        return self.path.name == "__init__.py"


def modules(source: Path) -> dict[str, Module]:
    """All modules below the source folder, by dotted name."""
    found = {}
    for path in sorted((source / PACKAGE).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        found[name] = Module(name, path, text, ast.parse(text))
    return found


# lines -----------------------------------------------------------------------------------------------------------


def line_numbers(all_modules: Iterable[Module]) -> Numbers:
    """Lines of code, of docstrings and comments, and blank ones; and what modules they make."""
    total = Counter[str]()
    for module in all_modules:
        text = module.source.splitlines()
        explained = _docstring_lines(module.tree)
        for number, line in enumerate(text, start=1):
            if number in explained or line.lstrip().startswith("#"):
                total["lines_docstring"] += 1
            elif not line.strip():
                total["lines_blank"] += 1
            else:
                total["lines_code"] += 1
        total["lines"] += len(text)
        total["packages" if module.is_package else "modules"] += 1
        total["modules_long"] += len(text) > LONG
    return {name: total[name] for name in (*list(MEANING)[:6], "modules_long")}


def _docstring_lines(tree: ast.Module) -> set[int]:
    """Lines of strings that stand alone: docstrings of modules, classes and functions, and of constants."""
    found: set[int] = set()
    for node in ast.walk(tree):
        for each in getattr(node, "body", []) if not isinstance(node, (ast.Lambda, ast.IfExp)) else []:
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                found.update(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    return found


# imports ---------------------------------------------------------------------------------------------------------


def imports(module: Module, known: dict[str, Module]) -> Iterator[tuple[str, bool]]:
    """Own modules that it imports, and whether inside a function; those for type checkers alone are left out."""

    def visit(node: ast.AST, lazy: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for other in child.orelse:
                    yield from visit(other, lazy)
            elif isinstance(child, (ast.Import, ast.ImportFrom)):
                for name in _imported(child, module, known):
                    yield name, lazy
            else:
                yield from visit(child, lazy or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))

    return visit(module.tree, lazy=False)


def _imported(node: ast.Import | ast.ImportFrom, module: Module, known: dict[str, Module]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
        return
    base = node.module or ""
    if node.level:
        here = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
        base = ".".join([*here[: len(here) - node.level + 1], *([node.module] if node.module else [])])
    for alias in node.names:
        name = f"{base}.{alias.name}"
        if name in known:
            yield name
        elif base in known:
            yield base


def import_numbers(known: dict[str, Module]) -> Numbers:
    """The import graph: cycles, lazy imports, and small modules that only one other needs."""
    graph: dict[str, set[str]] = {name: set() for name in known}
    lazy = dynamic = 0
    for name, module in known.items():
        for other, inside in imports(module, known):
            lazy += inside
            if other != name:
                graph[name].add(other)
        dynamic += sum(_called(node) == "import_module" for node in ast.walk(module.tree))
    importers: dict[str, set[str]] = defaultdict(set)
    for name, others in graph.items():
        for other in others:
            importers[other].add(name)
    # the top package only names what others define: a module that asks it for a name is no cycle with all of them
    rings = [
        ring for ring in _components({name: others - {PACKAGE} for name, others in graph.items()}) if len(ring) > 1
    ]
    tiny = [
        each for each in known.values() if not each.is_package and each.lines < SHORT and len(importers[each.name]) == 1
    ]
    return {
        "modules_tiny": len(tiny),
        "cycle": max(map(len, rings), default=0),
        "cyclic": sum(map(len, rings)),
        "lazy_imports": lazy,
        "dynamic_imports": dynamic,
    }


def _components(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components, by Tarjan's algorithm without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for root in list(graph):
        work = [(root, iter(graph[root]))] if root not in index else []
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
            for other in rest:
                if other not in index:
                    work.append((other, iter(graph[other])))
                    break
                if other in stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    found.append(stack[at:])
                    del stack[at:]
    return found


# names and constants ---------------------------------------------------------------------------------------------


def name_numbers(known: dict[str, Module]) -> Numbers:
    """What is named twice, what is asked for its type, and what is a bare number."""
    classes = Counter(
        node.name for each in known.values() for node in ast.walk(each.tree) if isinstance(node, ast.ClassDef)
    )
    names = Counter(each.path.stem for each in known.values() if not each.is_package)
    return {
        "guarantee_isinstance": _guarantee_lines(known),
        "classes_repeated": sum(count > 1 for count in classes.values()),
        "names_repeated": sum(count > 1 for count in names.values()),
        "constants": sum(len(list(_constants(each.tree))) for each in known.values()),
    }


def _guarantee_lines(known: dict[str, Module]) -> int:
    """Lines outside privacy that ask a guarantee for its class, by isinstance or by a pattern.

    A guarantee is a class of privacy that measures its ``gap``, or that inherits from one.
    """
    kinds: set[str] = set()
    inside = [node for each in known.values() if each.room == "privacy" for node in ast.walk(each.tree)]
    defined = [node for node in inside if isinstance(node, ast.ClassDef)]
    for _ in defined:  # until nothing is added: bases may come later
        before = len(kinds)
        for node in defined:
            own = any(isinstance(each, ast.FunctionDef) and each.name == "gap" for each in node.body)
            if own or any(isinstance(base, ast.Name) and base.id in kinds for base in node.bases):
                kinds.add(node.name)
        if len(kinds) == before:
            break
    lines: set[tuple[str, int]] = set()
    for each in known.values():
        if each.room == "privacy":
            continue
        for node in ast.walk(each.tree):
            asked: ast.AST | None = None
            if isinstance(node, ast.Call) and _called(node) == "isinstance" and len(node.args) == 2:
                asked = node.args[1]
            elif isinstance(node, ast.MatchClass):
                asked = node.cls
            if asked and any(isinstance(name, ast.Name) and name.id in kinds for name in ast.walk(asked)):
                lines.add((each.name, asked.lineno))  # type: ignore[attr-defined]
    return len(lines)


def _called(node: ast.AST) -> str:
    """The last word of what a call calls."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _constants(tree: ast.Module) -> Iterator[str]:
    """Names at module level whose value is a number, or a tuple or a sum of numbers."""
    for node in tree.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None or not _is_number(node.value):
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.BinOp(left=left, right=right):
            return _is_number(left) and _is_number(right)
        case ast.Tuple(elts=[_, *_] as elements):
            return all(map(_is_number, elements))
    return False


# prose and contracts ---------------------------------------------------------------------------------------------


def prose_numbers(root: Path) -> Numbers:
    """Words of the documentation, and its longest line outside code and tables."""
    words = longest = 0
    docs = root / "docs"
    for path in sorted(docs.rglob("*.md")):
        if path.relative_to(docs).parts[0] in GENERATED_DOCS:
            continue
        text = path.read_text(encoding="utf-8")
        words += len(text.split())
        prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE).splitlines()
        longest = max([longest, *(len(line) for line in prose if not line.lstrip().startswith("|"))])
    return {"doc_words": words, "longest_prose_line": longest}


def ignored_imports(root: Path) -> int:
    """Exceptions that the import contracts allow."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings.get("tool", {}).get("importlinter", {}).get("contracts", [])
    return sum(len(each.get("ignore_imports", [])) for each in contracts)


# running ---------------------------------------------------------------------------------------------------------

RELEASE = """
import json, pathlib, sys, threading
import dpbayes
from dpbayes.cli.main import run

home = str(pathlib.Path(dpbayes.__file__).parent) + "/"
files, functions = set(), set()
hidden = {"<module>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>"}

def importing(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(home):
            return True
        frame = frame.f_back
    return False

def look(frame, event, _):
    code = frame.f_code
    if event != "call" or code.co_name == "<module>" or not code.co_filename.startswith(home):
        return
    place = code.co_filename, code.co_qualname
    if place in functions or importing(frame):  # classes and decorators run while a module loads: not the release
        return
    files.add(code.co_filename)
    if code.co_name not in hidden:
        functions.add(place)

_, target, *command = sys.argv
sys.argv = ["dpbayes", *command]
sys.setprofile(look); threading.setprofile(look)
try:
    run()
except SystemExit as end:
    if end.code:
        raise
finally:
    sys.setprofile(None)
pathlib.Path(target).write_text(json.dumps({
    "files": sorted(each[len(home):] for each in files),
    "functions": sorted([each[len(home):], name] for each, name in functions),
}))
"""
"""Runs a command, and writes to its first argument which files and functions of the package it entered."""

COMMANDS = """
import json
from dpbayes.cli.command import loaded
from dpbayes.cli import COMMANDS

options = [each for name in COMMANDS for each in loaded(name).params if each.param_type_name == "option"]
distinct = {name for each in options for name in each.opts if name.startswith("--")}
print(json.dumps({"commands": len(COMMANDS), "options": len(options), "options_distinct": len(distinct)}))
"""


def run_numbers(root: Path, python: str, trace: Path | None = None) -> Numbers:
    """What a release of two tables enters, and what the command line offers; null where it does not run."""
    place = {**os.environ, "PYTHONPATH": str(root / "src")}

    def run(*command: str) -> str:
        done = subprocess.run([python, *command], env=place, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            raise RuntimeError(done.stderr.strip()[-300:])
        return done.stdout

    numbers: Numbers = dict.fromkeys(("release_files", "release_functions", "commands", "options", "options_distinct"))
    with tempfile.TemporaryDirectory() as folder:
        data, out = f"{folder}/private", f"{folder}/trace.json"
        survey = f"{data}/survey.csv"
        dpbayes = ("-c", f"from {PACKAGE}.cli.main import run; run()")
        try:
            run(*dpbayes, "example", data)
            run(*dpbayes, "ledger", "init", survey, "--epsilon", "2", "--delta", "1e-6")
            run("-c", RELEASE, out, "release", survey, "region", "income|sex", "--epsilon", "1",
                "--out", f"{folder}/published")  # fmt: skip
            entered = json.loads(Path(out).read_text(encoding="utf-8"))
            numbers |= {"release_files": len(entered["files"]), "release_functions": len(entered["functions"])}
            if trace:
                trace.write_text(json.dumps(entered, indent=1), encoding="utf-8")
        except (RuntimeError, subprocess.TimeoutExpired) as problem:
            print(f"house: the release did not run: {problem}", file=sys.stderr)
        try:
            numbers |= json.loads(run("-c", COMMANDS))
        except (RuntimeError, subprocess.TimeoutExpired) as problem:
            print(f"house: the command line did not load: {problem}", file=sys.stderr)
    return numbers


def measure(root: Path, python: str, trace: Path | None = None) -> Numbers:
    """Every number of the table."""
    known = modules(root / "src")
    found = {
        **line_numbers(known.values()),
        **import_numbers(known),
        **name_numbers(known),
        **prose_numbers(root),
        "ignored_imports": ignored_imports(root),
        **run_numbers(root, python, trace),
    }
    return {name: found[name] for name in MEANING}


def exceeded(numbers: Numbers, ceilings: Path = CEILINGS) -> list[str]:
    """What is above its ceiling, or has one and was not measured."""
    wanted: dict[str, int] = tomllib.loads(ceilings.read_text(encoding="utf-8"))
    if unknown := set(wanted) - set(MEANING):
        raise SystemExit(f"house: {ceilings} names {', '.join(sorted(unknown))}, which the table has not.")
    return [
        f"{name}: {numbers[name]}, at most {most}"
        for name, most in wanted.items()
        if (value := numbers[name]) is None or value > most
    ]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--trace", type=Path, help="write the files and functions that the release enters here")
    asked = parser.parse_args()
    numbers = measure(ROOT, sys.executable, asked.trace)
    if asked.json:
        print(json.dumps(numbers, indent=2))
    else:
        for name, meaning in MEANING.items():
            value = "–" if numbers[name] is None else f"{numbers[name]:,}"
            print(f"{name:22}{value:>8}  {meaning}")
    above = exceeded(numbers)
    for line in above:
        print(f"house: {line}", file=sys.stderr)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
