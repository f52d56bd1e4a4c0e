"""Write the reference pages that the code itself can tell: theorems.md, cli.md, python.md and release-format.md.

Run ``python docs/build_reference.py`` after changing a ``Source:`` line, a command, a public name or the release. A
test fails while a committed page differs from what this writes.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

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
        "Each formula in the code names where it comes from. This page is written from those lines by",
        "`docs/build_reference.py`; keys are explained in [References](../references.md).",
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
                _tests(statement.module),
            )
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _tests(module: str) -> str:
    """The file of tests that mirrors a module, if there is one."""
    *folders, name = module.split(".")[1:]
    path = Path(*folders, f"test_{name}.py")
    return f"`{path.as_posix()}`" if (ROOT / "tests" / path).exists() else "—"


def _heading(group: str) -> str:
    """A page of ours by its title, with a link; a bibliography key as it is."""
    path = ROOT / "docs" / group
    if not group.endswith(".md") or not path.exists():
        return f"`{group}`"
    title = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
    return f"[{title}](../{group})"


def _cell(text: str) -> str:
    """Text that cannot end a table cell or start mark-up."""
    return re.sub(r"([|*_\[\]<>`])", r"\\\1", text)


def cli_page() -> str:
    """Every command with its options, from the application itself."""
    from typer.main import get_command

    from dpbayes.cli.main import app

    lines = [
        "# Command line",
        "",
        "Every command prints a table for people, and JSON with `--json`. Infinite numbers are `null` in JSON. An",
        "expected failure is one sentence on standard error and exit code 1. Written by `docs/build_reference.py`.",
        "",
    ]
    for name, command in _commands(get_command(app), "dpbayes"):
        text, _, example = inspect.cleandoc(command.help or "").partition("Example:")
        lines += [f"## `{name}`", "", text.strip(), ""]
        if example:
            lines += ["```sh", " ".join(example.split()), "```", ""]
        rows = [_parameter_row(parameter) for parameter in command.params if parameter.name != "help"]
        if rows:
            lines += ["| Argument or option | Meaning | Default |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def _commands(command: object, name: str) -> Iterator[tuple[str, object]]:
    children = getattr(command, "commands", {})
    if not children:
        yield name, command
    for child, inner in children.items():
        if not inner.hidden:
            yield from _commands(inner, f"{name} {child}")


def _parameter_row(parameter: object) -> str:
    positional = parameter.param_type_name == "argument"
    spelled = parameter.name.upper() if positional else ", ".join((*parameter.opts, *parameter.secondary_opts))
    kind = parameter.type_descriptor.annotation
    choices = [str(choice.value) for choice in kind] if inspect.isclass(kind) and issubclass(kind, Enum) else []
    default = parameter.default() if callable(parameter.default) else parameter.default
    if parameter.required:
        shown = "required"
    elif default is None or default is False or default == ():
        shown = ""
    else:
        shown = f"`{getattr(default, 'value', default)}`"
    meaning = _cell(getattr(parameter, "help", None) or "")
    one_of = f" One of {', '.join(choices)}." if choices else ""
    return f"| `{spelled}` | {meaning}{one_of} | {shown} |"


def python_page() -> str:
    """Every public name: how it is made, what it says of itself, what it can do."""
    import dpbayes

    lines = [
        "# Python",
        "",
        "What `import dpbayes` offers. Everything is immutable and made with named arguments; examples stand in the",
        "[tutorial](../tutorials/first-plan.md) and the how-to pages. Written by `docs/build_reference.py`.",
        "",
    ]
    for name in sorted(dpbayes.__all__, key=str.lower):
        value = getattr(dpbayes, name)
        lines += [f"## `{name}`", ""]
        if dataclasses.is_dataclass(value):
            lines += ["```text", f"{name}({', '.join(_fields(value))})", "```", ""]
        elif inspect.isfunction(value):
            lines += ["```text", f"{name}{inspect.signature(value)}", "```", ""]
        lines += [_cell(_summary(value)), ""]
        members = [(m, v) for m, v in vars(value).items() if not m.startswith("_")] if inspect.isclass(value) else []
        documented = [f"| `{m}` | {_cell(_summary(v, first_line=True))} |" for m, v in members if _summary(v)]
        if documented:
            lines += ["| Member | Meaning |", "| --- | --- |", *documented, ""]
    return "\n".join(lines)


def _fields(value: type) -> Iterator[str]:
    for field in dataclasses.fields(value):
        yield f"{field.name}={field.default}" if field.default is not dataclasses.MISSING else field.name


def _summary(value: object, *, first_line: bool = False) -> str:
    """The docstring before its fields and doctests; of values that are not code, nothing."""
    inner = getattr(value, "__func__", value)
    if not (callable(inner) or isinstance(inner, property)):
        return ""
    doc = inspect.cleandoc(inner.__doc__ or "")
    text = re.split(r"^(?:Symbols|Source|Adjacency):|^>>>", doc, maxsplit=1, flags=re.MULTILINE)[0].strip()
    return text.splitlines()[0] if first_line and text else " ".join(text.split())


def release_page() -> str:
    """Every field of release.json, from the models that read it."""
    from dpbayes import release

    models = (release.Release, release.Table, release.Axis, release.Product, release.Group, release.Spending)
    lines = [
        "# Release files",
        "",
        f"`release.json` is one JSON object of format `{release.FORMAT}`, version {release.VERSION}. It holds all that",
        "is public about a release: `dpbayes verify` prices the promise and recomputes every number from it alone.",
        "A reader refuses unknown fields, missing fields, other types, and numbers that are not finite. A later",
        "version may add fields; it then carries a higher number, and this one stays readable.",
        "",
        "`Release.load(path)` reads it in Python, and `Release.model_json_schema()` is its JSON schema.",
        "Written by `docs/build_reference.py`.",
        "",
    ]
    for model in models:
        about = inspect.cleandoc(model.__doc__ or "").split("\n\n")[0]
        lines += [f"## {model.__name__}", "", _cell(" ".join(about.split())), ""]
        lines += ["| Field | Type | Default | Meaning |", "| --- | --- | --- | --- |"]
        for name, field in model.model_fields.items():
            default = "required" if field.is_required() else f"`{field.get_default(call_default_factory=True)}`"
            meaning = " ".join((field.description or "").replace("``", "`").split())
            lines.append(f"| `{name}` | {_json_type(model, name)} | {default.replace('None', 'null')} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def _json_type(model: type, name: str) -> str:
    """A field's type in words, from the JSON schema of its model."""
    return _words(model.model_json_schema()["properties"][name])


def _words(schema: dict[str, object]) -> str:
    if "$ref" in schema:
        kind = str(schema["$ref"]).rpartition("/")[2]
        return f"[{kind}](#{kind.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_words, schema["anyOf"])))
    if "const" in schema or "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    kind = str(schema.get("type"))
    if kind == "array":
        return f"list of {_words(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_words(schema['additionalProperties'])}"
    return {"string": "text", "integer": "whole number", "boolean": "true or false"}.get(kind, kind)


BUILDERS = {
    "theorems.md": theorems_page,
    "cli.md": cli_page,
    "python.md": python_page,
    "release-format.md": release_page,
}


if __name__ == "__main__":
    for page, build in BUILDERS.items():
        (PAGES / page).write_text(build().rstrip() + "\n", encoding="utf-8")
