"""Write the reference pages that the code itself can tell: theorems, command line, Python, release files, papers.

Run ``python docs/build_reference.py`` after changing a ``Source:`` line, a command, a public name or the release. A
test fails while a committed page differs from what this writes.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import json
import re
import shlex
import textwrap
import tomllib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "dpbayes"
PAGES = ROOT / "docs" / "reference"

KEY = re.compile(r"(?<!\w)\[([A-Za-z][\w-]*)\]")
OURS = re.compile(r"docs/([\w./-]+\.md)")
_FIELD = re.compile(r"^(Symbols|Source|Adjacency):", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One ``Source:`` line and the function or class that it stands in."""

    module: str
    name: str
    formula: str
    source: str

    @property
    def keys(self) -> list[str]:
        """Bibliography keys that the line cites."""
        return KEY.findall(self.source)

    @property
    def pages(self) -> list[str]:
        """Pages of our own, relative to docs/."""
        return OURS.findall(self.source)


def statements() -> list[Statement]:
    """Every ``Source:`` line of the library, in the order of the files."""
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts)
        for name, doc in _docstrings(ast.parse(path.read_text(encoding="utf-8")), ""):
            source = _field(doc, "Source")
            if source:
                formula = " ".join(_FIELD.split(doc)[0].split("\n\n")[0].split())
                found.append(Statement(module=module, name=name, formula=formula, source=source))
    return found


def _docstrings(node: ast.AST, prefix: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            doc = ast.get_docstring(child)
            if doc:
                yield prefix + child.name, doc
            yield from _docstrings(child, f"{prefix}{child.name}.")


def _field(doc: str, name: str) -> str:
    """The text after ``name:`` up to the next field, a blank line or a doctest."""
    match = re.search(rf"^{name}:(.*?)(?=^\w+:|^\s*$|^>>>|\Z)", doc, re.MULTILINE | re.DOTALL)
    return " ".join(match[1].split()) if match else ""


def theorems_page() -> str:
    """Theorem → function → test."""
    groups: dict[str, list[Statement]] = {}
    for statement in statements():
        first = (*statement.keys, *statement.pages, "other")[0]
        groups.setdefault(first, []).append(statement)
    lines = [
        "# Theorems",
        "",
        "Each formula in the code names where it comes from. This page is written from those lines, and from what the",
        "tests import and call, by `docs/build_reference.py`; keys are explained in [References](references.md).",
        "A formula that no test calls, or a mechanism without a formula, fails a test.",
        "",
    ]
    for group in sorted(groups, key=lambda name: (name.endswith(".md"), name.lower())):
        lines += [f"## {_heading(group)}", ""]
        lines += ["| Statement | Where it comes from | Function | Tests |", "| --- | --- | --- | --- |"]
        for statement in groups[group]:
            cells = (
                _cell(statement.formula),
                _cell(statement.source.rstrip(".")),
                f"`{statement.module.removeprefix('dpbayes.')}.{statement.name}`",
                _tests(statement),
            )
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class Uses:
    """What a file of Python refers to: names it imports, with their modules, and attributes that it asks for."""

    imported: frozenset[tuple[str, str]]
    names: frozenset[str]
    attributes: frozenset[str]

    @cached_property
    def modules(self) -> set[str]:
        """The modules it imports, or imports something from."""
        return {module for module, _ in self.imported} | {f"{module}.{name}" for module, name in self.imported}


@cache
def _uses(path: Path) -> Uses:
    nodes, imported = list(ast.walk(ast.parse(path.read_text(encoding="utf-8")))), set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            imported |= {(_home(node.module, alias.name), alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            imported |= {(alias.name, "") for alias in node.names}
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    if ("dpbayes", "") in imported:  # dp.Tables
        imported |= {(_home("dpbayes", name), name) for name in attributes}
    if path.name == "test_papers.py":  # its calls stand in a file beside it
        calls = re.findall(r"\b([a-z]\w+)\.(\w+)\(", path.with_name("papers.json").read_text(encoding="utf-8"))
        imported |= {(_home(f"dpbayes.papers.{room}", name), name) for room, name in calls}
    for module, room in list(imported):
        if module == "dpbayes.papers":  # hellinger.loss
            imported |= {(_home(f"dpbayes.papers.{room}", name), name) for name in attributes}
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return Uses(imported=frozenset(imported), names=frozenset(names), attributes=frozenset(attributes))


def _home(module: str, name: str) -> str:
    """Where a name lives that is imported from the package itself, or from a room that offers it."""
    import dpbayes

    if module == "dpbayes" and name in dpbayes._HOME:
        return f"dpbayes.{dpbayes._HOME[name]}"
    if module == "dpbayes" and name in dpbayes._MOVED:  # dp.schema.Marginal
        module = dpbayes._MOVED[name].rpartition(".")[0]
    front = SOURCES.parent / Path(*module.split("."), "__init__.py")
    if not (module.startswith("dpbayes.") and front.is_file()):
        return module
    homes = (
        node.module
        for node in _offered(front)
        if _spread(node, name) or any(alias.name == name for alias in node.names)
    )
    return next(homes, None) or module


@cache
def _offered(front: Path) -> list[ast.ImportFrom]:
    return [node for node in ast.walk(ast.parse(front.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)]


def _spread(node: ast.ImportFrom, name: str) -> bool:
    """Whether a room offers this name by offering all that a module of it lists."""
    if node.names[0].name != "*" or not node.module:
        return False
    text = (SOURCES.parent / Path(*node.module.split("."))).with_suffix(".py").read_text(encoding="utf-8")
    return re.search(rf"^def {name}\(", text, re.MULTILINE) is not None


@cache
def tests_of(statement: Statement) -> list[Path]:
    """The files of tests that call what states it; for a private function, those that call what uses it in its room."""
    wanted = {(statement.module, statement.name)}
    files = _test_files()
    for _ in range(4 if _private(statement.name) else 1):
        if _private(statement.name):
            wanted = {user for module, name in wanted for user in _users(module, name)}
        found = [path for path in files if any(_calls(_uses(path), *each) for each in wanted)]
        if found:
            mirror = f"test_{statement.module.rpartition('.')[2]}.py"
            return sorted(found, key=lambda path: (path.name != mirror, path.as_posix()))
    return []


@cache
def _test_files() -> list[Path]:
    return sorted((ROOT / "tests").rglob("test_*.py"))


def _calls(uses: Uses, module: str, name: str) -> bool:
    owner, _, method = name.rpartition(".")
    if not owner:
        return (module, name) in uses.imported or (module in uses.modules and name in uses.attributes)
    known = (module, owner) in uses.imported or (module in uses.modules and owner in uses.attributes)
    if method.startswith("__"):
        return known
    return method in uses.attributes and (known or module in uses.modules or owner in uses.names)


def _private(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last.startswith("_") and not last.startswith("__")


def _users(module: str, name: str) -> set[tuple[str, str]]:
    """What uses a function in its own module, or in a module of the same room that imports it."""
    last, home = name.rpartition(".")[2], SOURCES.parent / Path(*module.split(".")[:-1])
    found = set()
    for path in home.glob("*.py"):
        user, uses = ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts), _uses(path)
        if user == module or (module, last) in uses.imported or module in uses.modules:
            found |= {(user, caller) for caller, called in _callers(path) if last in called and caller != name}
    return found


@cache
def _callers(path: Path) -> list[tuple[str, set[str]]]:
    return list(_functions(ast.parse(path.read_text(encoding="utf-8")), ""))


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, set[str]]]:
    """Every function of a module, and the names that it mentions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{child.name}.")
        elif isinstance(child, ast.FunctionDef):
            walked = list(ast.walk(child))
            names = {each.id for each in walked if isinstance(each, ast.Name)}
            yield prefix + child.name, names | {each.attr for each in walked if isinstance(each, ast.Attribute)}


def _tests(statement: Statement, most: int = 3) -> str:
    """The first few of them."""
    found = [f"`{path.relative_to(ROOT / 'tests').as_posix()}`" for path in tests_of(statement)]
    return "<br>".join(found[:most]) + (f"<br>and {len(found) - most} more" if len(found) > most else "") or "—"


def _heading(group: str) -> str:
    """A page of ours by its title, with a link; a bibliography key as it is."""
    path = ROOT / "docs" / group
    if not group.endswith(".md") or not path.exists():
        return f"`{group}`"
    title = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
    return f"[{title}](../{group})"


def _cell(text: str) -> str:
    """Text that cannot end a table cell or start mark-up; what the docstring marks as code is code."""
    plain, *rest = re.split(r"``(.+?)``", text)
    parts = [re.sub(r"([|*_\[\]<>`])", r"\\\1", plain)]
    for code, after in zip(rest[::2], rest[1::2], strict=True):
        parts += [f"`{code.replace('|', chr(92) + '|')}`", re.sub(r"([|*_\[\]<>`])", r"\\\1", after)]
    return "".join(parts)


def cli_page() -> str:
    """Every command with its options, from the application itself."""
    lines = [
        "# Command line",
        "",
        "Every command prints a table for people, and with `--json` one object with `command`, `version`, `found`,",
        "`result` and `warnings`; infinite numbers are `null` in it. A failure is one sentence on standard error. Exit",
        "codes: 0 done, 1 refused or a check failed, 2 wrong usage, 3 the limit does not allow it, 4 charged but not",
        "written (`dpbayes ledger finish` completes it), 70 a fault of dpbayes, 130 interrupted. Written by",
        "`docs/build_reference.py`.",
        "",
    ]
    for name, command in commands():
        text, *examples = inspect.cleandoc(command.help or "").split("Example:")
        lines += [f"## `dpbayes {name}`", "", text.strip(), ""]
        if examples:
            lines += ["```sh", *(" ".join(example.split()) for example in examples), "```", ""]
        rows = [_parameter_row(parameter) for parameter in command.params if parameter.name != "_json"]
        if rows:
            lines += ["| Argument or option | Meaning | Default |", "| --- | --- | --- |", *rows, ""]
        if hasattr(command.callback, "listed"):
            title, kinds = command.callback.listed()
            lines += [f"| `{title}` | What it is made of |", "| --- | --- |"]
            lines += [*(f"| `{kind}` | {_cell(said)} |" for kind, said in kinds), ""]
    return "\n".join(lines)


def commands() -> Iterator[tuple[str, object]]:
    """Every command by its name."""
    from dpbayes.cli import COMMANDS
    from dpbayes.cli.command import loaded

    for name in COMMANDS:
        yield name, loaded(name)


def _parameter_row(parameter: object) -> str:
    from dpbayes.cli.options import ARGUMENTS

    positional = parameter.param_type_name == "argument"
    spelled = parameter.metavar if positional else ", ".join(sorted(parameter.opts, key=len, reverse=True))
    choices = [str(choice) for choice in getattr(parameter.type, "choices", ())]
    default = parameter.default
    if parameter.required:
        shown = "required"
    elif not isinstance(default, (str, int, float)) or default is False:
        shown = ""
    else:
        shown = f"`{getattr(default, 'value', default)}`"
    meaning = _cell(ARGUMENTS[parameter.name] if positional else parameter.help or "")
    one_of = f" One of {', '.join(choices)}." if choices else ""
    return f"| `{spelled}` | {meaning}{one_of} | {shown} |"


ROOMS = {
    "dpbayes": "dp",
    "dpbayes.schema": "dp.schema",
    "dpbayes.privacy": "dp.privacy",
    "dpbayes.mechanisms": "dp.mechanisms",
    "dpbayes.hellinger": "dp.hellinger",
    "dpbayes.tables": "dp.tables",
    "dpbayes.jobs": "dp.jobs",
    "dpbayes.models": "dp.models",
    "dpbayes.papers": "dpbayes.papers",
    "dpbayes.sklearn": "dpbayes.sklearn",
    "dpbayes.bridges": "dpbayes.bridges",
}
"""Modules whose public names have a reference, and how their names are written."""


def python_page() -> str:
    """Every public name: how it is made, what it says of itself, what it can do."""
    lines = [
        "# Python",
        "",
        "What `import dpbayes as dp` offers, then what its rooms offer besides (`dp.schema.Marginal`), then",
        "`dpbayes.papers` (its functions are on the page [From the papers to the code](papers.md)), `dpbayes.sklearn`",
        "and `dpbayes.bridges`. Everything but `Curator`,",
        "`Ledger` and the estimator is immutable, and arguments have to be named unless the signature says otherwise.",
        "Examples are in the [tutorials](../tutorials/first-release.md) and the how-to pages. Written by",
        "`docs/build_reference.py`.",
        "",
    ]
    for room, prefix in ROOMS.items():
        module = importlib.import_module(room)
        for name in sorted(module.__all__, key=str.lower):
            lines += _entry(f"{prefix}.{name}", getattr(module, name))
    return "\n".join(lines)


def _entry(name: str, value: object) -> Iterator[str]:
    yield from (f"## `{name.removeprefix('dp.')}`", "")
    about, meanings = _described(value)
    parameters = _parameters(value)
    if parameters:
        listed = ", ".join(_written(each) for each in parameters)
        yield from ("```text", f"{name}({listed})", "```", "")
    elif isinstance(value, str):
        yield from (f"The text `{value}`.", "")
    yield from (about, "")
    if parameters:
        yield from ("| Parameter | Type | Default | Meaning |", "| --- | --- | --- | --- |")
        for each in parameters:
            default = "required" if each.default is each.empty else f"`{_shown(each.default)}`"
            kind = _type(each.annotation).replace("|", "\\|")
            said = meanings.get(each.name) or _glossary(name, each.name)
            yield f"| `{each.name}` | {f'`{kind}`' if kind else ''} | {default} | {_cell(said)} |"
        yield ""
    members = [(m, v) for m, v in vars(value).items() if not m.startswith("_")] if inspect.isclass(value) else []
    documented = [(m, v, _summary(v, first_line=True)) for m, v in members]
    if any(said for _, _, said in documented):
        yield from ("| Member | Meaning |", "| --- | --- |")
        for member, held, said in documented:
            if said:
                yield f"| `{member}{_call(held)}` | {_cell(said)} |"
        yield ""


def _parameters(value: object) -> list[inspect.Parameter]:
    """What it is made with, or called with; nothing for types that are not made by hand."""
    if not callable(value) or (inspect.isclass(value) and issubclass(value, (Enum, Warning))):
        return []
    return [each for each in inspect.signature(value).parameters.values() if each.name != "self"]


def _written(each: inspect.Parameter) -> str:
    stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
    return f"{stars}{each.name}" + ("" if each.default is each.empty else f"={_shown(each.default)}")


def _call(held: object) -> str:
    """The arguments of a method, by name."""
    inner = getattr(held, "__func__", held)
    if isinstance(held, property) or not inspect.isfunction(inner):
        return ""
    names = [each for each in inspect.signature(inner).parameters.values() if each.name not in ("self", "cls")]
    return f"({', '.join(_written(each) for each in names)})"


def _shown(default: object) -> str:
    if inspect.isfunction(default):
        return "…"
    return "{}" if "factory" in repr(default) else repr(default)


def _glossary(owner: str, name: str) -> str:
    words = _words_shared()
    own = words.get(owner.rpartition(".")[2])
    return str((own.get(name) if isinstance(own, dict) else "") or words.get(name, ""))


@cache
def _words_shared() -> dict[str, Any]:
    return tomllib.loads((ROOT / "docs" / "parameters.toml").read_text(encoding="utf-8"))


def _type(annotation: object) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _described(value: object) -> tuple[str, dict[str, str]]:
    """The docstring without its arguments, and what each argument or field means."""
    if isinstance(value, str):
        return "", {}
    doc = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    text = re.split(r"^(?:Symbols|Source|Adjacency):|^>>>", doc, maxsplit=1, flags=re.MULTILINE)[0]
    about, _, arguments = text.partition("Args:\n")
    meanings = _field_docs(value) if dataclasses.is_dataclass(value) else {}
    listed = re.split(r"\n(?=    \w)(?!        )", "\n" + arguments.rstrip()) if arguments else []
    for entry in filter(str.strip, listed):
        name, _, meaning = entry.partition(":")
        meanings[name.strip()] = meaning
    plain = {name: " ".join(meaning.split()) for name, meaning in meanings.items()}
    return _cell(" ".join(about.split())).replace("\\|", "|"), plain


def _summary(value: object, *, first_line: bool = False) -> str:
    """The docstring before its fields and doctests; of values that are not code, nothing."""
    inner = getattr(value, "__func__", value)
    if not (callable(inner) or isinstance(inner, property)):
        return ""
    doc = inspect.cleandoc(inner.__doc__ or "")
    text = re.split(r"^(?:Symbols|Source|Adjacency):|^>>>", doc, maxsplit=1, flags=re.MULTILINE)[0].strip()
    return text.splitlines()[0] if first_line and text else " ".join(text.split())


def release_page() -> str:
    """Every field of release.json, from the dataclasses that read it."""
    from dpbayes.ledger.account import Spending
    from dpbayes.release import format as release
    from dpbayes.release import numbers

    kinds = (release.Release, release.Table, release.Product, release.Group, release.Answer, release.Paid, Spending)
    lines = [
        "# Release files",
        "",
        f"`release.json` is one JSON object of format `{release.FORMAT}`, version {release.VERSION}.",
        "It holds all that is public about a release, of every kind.",
        "`dpbayes verify` computes the cost and every number again from it alone.",
        "A reader refuses unknown fields, missing fields, other types, and numbers that are not finite.",
        "A later version may add fields; it then carries a higher number, and this one stays readable.",
        "",
        f"A list of more than {numbers.LONG:,} numbers is not written out.",
        "Its place in `release.json` holds its length (`cells`) and its SHA-256.",
        "The hash is taken of the numbers as 64-bit little-endian integers or doubles.",
        "The numbers are a column with that hash in the Parquet file of the table, which lies beside it.",
        "Seal and digest are taken of this form too, so they fix every number.",
        "`Release.to_json()` writes all numbers out.",
        "",
        "`Release.load(path)` reads a file, or the folder that holds it.",
        "Infinite numbers are written as text.",
        "A schema is written as in [its file](schema.md), a guarantee and a mechanism with their names.",
        "Written by `docs/build_reference.py`.",
        "",
    ]
    for kind in kinds:
        about = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0]
        lines += [f"## {kind.__name__}", "", _cell(" ".join(about.split())), ""]
        lines += ["| Field | Type | Default | Meaning |", "| --- | --- | --- | --- |"]
        said, hints = _field_docs(kind), get_type_hints(kind)
        for field in dataclasses.fields(kind):
            meaning = " ".join(said.get(field.name, "").replace("``", "`").split())
            lines.append(f"| `{field.name}` | {_words(hints[field.name])} | {_default(field)} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def _default(field: dataclasses.Field[object]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return "`{}`"
    if field.default is dataclasses.MISSING:
        return "required"
    return f"`{json.dumps(field.default)}`"


def _field_docs(kind: type) -> dict[str, str]:
    """The text that follows each field in the source of a dataclass."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    said, last = {}, ""
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = node.target.id
        elif last and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            said[last] = str(node.value.value)
        else:
            last = ""
    return said


def _words(kind: object) -> str:
    """A type in words, as JSON has it."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (types.UnionType, Union):
        return " or ".join(dict.fromkeys(map(_words, arguments)))
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"list of {_words(arguments[0])}"
    if origin is np.ndarray:
        return "list of numbers"
    if origin is dict:
        return "object" if arguments[1] is Any else f"object of {_words(arguments[1])}"
    if dataclasses.is_dataclass(kind) and kind.__name__ in _SHOWN:
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    return _PLAIN.get(kind, getattr(kind, "__name__", str(kind)).lower())


_SHOWN = ("Release", "Table", "Product", "Group", "Answer", "Paid", "Spending")
_PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", type(None): "null", Any: "anything"}


VERDICTS = {"agrees": "✓", "differs": "≠", "cannot be known": "?"}


def papers_page() -> str:
    """Statement → line of code → figure → verdict → erratum."""
    from dpbayes import papers

    stated = papers.statements()
    answered = sum(bool(each.call) for each in stated)
    others = sum(bool(each.also) and not each.also.startswith("nothing") and not each.call for each in stated)
    nothing = sum(each.also.startswith("nothing") for each in stated)
    lines = [
        *("---", "hide: [toc]", "---", ""),
        "# From the papers to the code",
        "",
        f"The {len(stated)} statements of the five documents behind dpbayes, in our words. {answered} are answered by",
        f"a function of `dpbayes.papers`, {others} by another part of the library or a page,",
        f"{len(stated) - answered - others - nothing} are figures and tables computed again, and {nothing} ask for",
        "nothing. A test runs every line of code, after `from dpbayes.papers import rdp, tcdp, hellinger`; in a shell",
        "it is `dpbayes papers 'LINE'`. Verdicts count the claims of the [reproduction](../reproduction/index.md) on",
        f"the statement, or else on its figure. {len(papers.errata())} statements have an erratum; what concerns the",
        "authors' code is on the [page of errata](../explanation/errata.md). Written by `docs/build_reference.py` from",
        "`src/dpbayes/papers/statements.csv` and the stored results.",
        "",
    ]
    for paper in ("RDP", "tCDP", "H-full", "H-abstract", "H-notes"):
        lines += [f"## {paper}", "", "| Statement | Code | Reproduction | Erratum |"]
        lines.append("| --- | --- | --- | --- |")
        for each in papers.statements(paper):
            also = [_noun(noun) for noun in filter(None, each.also.split("; "))]
            code = "<br>".join([*(f"`{call.replace('|', chr(92) + '|')}`" for call in each.calls), *also])
            said = f"**{_cell(each.place)}** {_cell(each.says)}"
            cells = (said, code, _figure(each.figure, each.place), _cell(each.erratum))
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _noun(name: str) -> str:
    if name.startswith("docs/"):
        title = (ROOT / name).read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        return f"[{title}](../{name.removeprefix('docs/')})"
    return _cell(name) if name.startswith("nothing") else f"`{name}`"


def _figure(experiment: str, place: str) -> str:
    """A link to the reproduction, and how its claims on this place came out; if there are none, all of its claims."""
    if not experiment:
        return ""
    slug = experiment.replace(".", "-").replace("_", "-")
    stored = json.loads((ROOT / "experiments" / "results" / f"{slug}.json").read_text(encoding="utf-8"))
    claims = [claim for claim in stored["claims"] if not claim["ours"]]
    words = [rf"{re.escape(word.lower())}(?!\w)" for word in place.split(", ")]
    here = [claim for claim in claims if any(re.search(word, claim["where"].lower()) for word in words)]
    found = [claim["verdict"] for claim in here or claims]
    counted = (f"{found.count(name)} {mark}" for name, mark in VERDICTS.items() if name in found)
    return f"[{experiment}](../reproduction/{slug.split('-')[0]}.md#{slug}): {', '.join(counted) or 'no claim'}"


def questions_page() -> str:
    """The grammar as the reader has it, and an example of each form."""
    from dpbayes.inference import question

    grammar = textwrap.dedent((question.__doc__ or "").partition("\n\n")[2].partition("\n\n")[0])
    lines = [
        "# Questions",
        "",
        "A question is a table or a formula, answered from what is published and never charged.",
        "`dpbayes ask SOURCE QUESTION…`, `Posterior.ask` and the studio read the same language.",
        "Every line below can be typed, in an empty folder, after these:",
        "",
        "```sh",
        "dpbayes example .",
        "dpbayes ledger init survey.csv --epsilon 4 --delta 1e-6",
        "dpbayes release survey.csv 'region' 'income|sex' 'age,income' --epsilon 1",
        "```",
        "",
    ]
    for title, about, forms in QUESTIONS:
        lines += [f"## {title}", "", *about, "", "| Question | What it asks |", "| --- | --- |"]
        lines += [f"| `{asked.replace('|', chr(92) + '|')}` | {said} |" for asked, said in forms.items()]
        lines += ["", "```sh", *(f"dpbayes ask published {_typed(asked)}" for asked in forms), "```", ""]
    lines += ["## The grammar", "", "```text", grammar, "```", "", *_RULES, "", "## What is refused", ""]
    lines += ["A question that cannot be read is refused with the place:", "", "```text"]
    for asked in REFUSED:
        try:
            question.read(asked)
        except ValueError as problem:
            lines.append(str(problem))
    return "\n".join([*lines, "```", "", *_ANSWERS])


def _typed(question: str) -> str:
    """As one writes it in a shell: in double quotes if it has single ones."""
    quoted = f'"{question}"' if "'" in question else shlex.quote(question)
    return f"-- {quoted}" if question.startswith("-") else quoted


QUESTIONS = (
    (
        "Tables",
        ("A table needs no formula.", "Tables follow from each other: *income* from *age,income*."),
        {
            "region": "how many records, and which share, each region has",
            "age,income": "the same for each combination of levels",
            "income|sex": "the shares of incomes within each sex",
            "income|sex='male'": "one row of that table",
        },
    ),
    (
        "Counts and shares",
        ("Conditions joined by commas hold together.", "The part behind the bar is the group that shares are of."),
        {
            "count(sex='male')": "how many records",
            "count()": "how many records there are at all",
            "share(sex='male')": "which share of all records",
            "share(age='[30, 45)', income='80k and over')": "both together: a share of all records",
            "share(income='80k and over' | sex='male')": "a share of the men",
        },
    ),
    (
        "Conditions",
        ("A level is written as in the schema: bins as `[30, 45)`.", "Quotes may be left out around a single word."),
        {
            "count(region=North)": "one level",
            "count(region!=North)": "every other level, those of undeclared and missing values included",
            "count(region in (North, South))": "one of several levels",
        },
    ),
    (
        "Formulas",
        ("Ask for the difference itself: errors of two answers are not independent.",),
        {
            "share(income='80k and over' | sex=male) - share(income='80k and over' | sex=female)": "a difference",
            "share(income='80k and over' | sex=male) / share(income='80k and over' | sex=female)": "a ratio",
            "share(region=North) + share(region=South)": "a sum",
            "15000 * count(income='under 15k') / count()": "numbers, and several signs: `*` and `/` bind first",
            "-(count(region=North) - count(region=South)) / 2": "parentheses, and a sign in front",
        },
    ),
)
"""Titles, what is said of them, and questions with their meaning. A test runs every one on the example."""

REFUSED = ("share(income)", "count(sex='male'", "count(sex='male' | age='[30, 45)')", "share(sex=male, sex=female)")

_RULES = (
    "`{…}` is repeated any number of times, `[…]` may be left out, and `|` without quotes separates choices.",
    "A *number* is written with a decimal point.",
    "A *name* and a *level* are a word, or any text between `'` or `\"`; a quote inside is doubled: `'it''s'`.",
    "A bar belongs into a share only, and no attribute may be named twice in one count or share.",
    "At most 50 parts may lie inside each other.",
    "A test draws questions from this grammar at random, and reads them.",
)

_ANSWERS = (
    "An attribute or a level that is not published is refused too, with the nearest name.",
    "",
    "## The answer",
    "",
    "It has an estimate and an interval, of 95 % unless `--level` says otherwise.",
    "Without more, it is about *these records*; `--population` asks about all people they stand for.",
    "[Read a release](../how-to/read-a-release.md#ask-a-question) says when to ask which,",
    "and [the estimate](../explanation/estimate.md) how often the interval is right.",
    "Of a [wide release](../explanation/wide.md) only a table or a row can be asked.",
    "Written by `docs/build_reference.py`.",
)

BUILDERS = {
    "questions.md": questions_page,
    "theorems.md": theorems_page,
    "cli.md": cli_page,
    "python.md": python_page,
    "release-format.md": release_page,
    "papers.md": papers_page,
}


if __name__ == "__main__":
    for page, build in BUILDERS.items():
        (PAGES / page).write_text(build().rstrip() + "\n", encoding="utf-8")
