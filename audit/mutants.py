"""The audit of the tests: change one operator, constant or guard at a time, and see whether a test fails.

    python -m audit.mutants [--sample N] [--seed TEXT] [--only WORD …] [--again] [--seconds N] [--trace SECONDS]

A mutant is the package with one place changed. The quick tests that reach the changed line run against it, the nearest
and quickest first, until one fails (``mutants_server``). A mutant that none of them notices is a survivor: either a
test is missing, or the change is harmless, and then ``mutants.toml`` says why. All that is found goes to
out/mutants.json.
"""

from __future__ import annotations

import argparse
import ast
import copy
import functools
import json
import os
import random
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path

from scipy.stats import binom

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PACKAGE = ROOT / "src" / "dpbayes"
REASONS = HERE / "mutants.toml"
"""Survivors that are harmless, and why."""

ROOMS = {
    "privacy": ["privacy/*.py", "schema/unit.py"],
    "mechanisms": ["mechanisms/*.py", "hellinger/*.py"],
    "ledger": ["ledger/*.py"],
    "curator": ["curator.py", "jobs/base.py", "jobs/edges.py", "jobs/vector.py", "jobs/categories.py"],
    "intervals": [f"inference/{name}.py" for name in ("ask", "intervals", "law", "measurement", "numbers")],
}
"""What a guarantee or an interval rests on."""

GOAL = 0.95
"""The part of all mutants that has to be killed."""

FLOOR = 0.85
"""Less than the last samples found: it must not get worse."""

INCREDIBLE = 1e-3
"""A sample fails where so few would be killed with this probability if the floor held."""

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.Mod: ast.Add,
    ast.And: ast.Or, ast.Or: ast.And, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.USub: ast.UAdd,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "ceil": "floor", "floor": "ceil", "any": "all", "all": "any"}
UNTOLD = {"__repr__", "_repr_html_", "__str__"}
"""Functions whose text may change without harm."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed place."""

    room: str
    file: str
    line: int
    inside: str
    before: str
    after: str
    start: int
    end: int
    owner: str
    """The outermost function whose body it changes; empty where it is run once, at import."""
    again: int = 1
    """Which of several equal ones inside one function."""
    planted: bool = False
    """Whether it is a fault that no test noticed once."""

    @property
    def name(self) -> str:
        """How the list of reasons calls it: it outlives moved lines."""
        which = "" if self.again == 1 else f" #{self.again}"
        return f"{self.file}::{self.inside}: {self.before} -> {self.after}{which}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the tests said of a mutant."""

    mutant: Mutant
    outcome: str
    """killed, time, survived, or harmless: survived, with a reason in the list."""
    by: str
    seconds: float


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """What a node, or a part of it, may become."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            yield node, _with(node, ops=[SWAPS[type(op)]()])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPS:
            yield node, _with(node, op=SWAPS[type(op)]())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, operand
        case ast.UnaryOp(op=ast.USub()):
            yield node, _with(node, op=ast.UAdd())
        case ast.Constant(value=bool(value)):
            yield node, ast.Constant(value=not value)
        case ast.Constant(value=int(value)):
            yield node, ast.Constant(value=value + 1)
        case ast.Constant(value=float(value)):
            yield node, ast.Constant(value=2.0 * value if value else 1.0)
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            yield node, _with(node, func=ast.Name(id=NAMES[name]))
        case ast.Call(func=ast.Attribute(attr=name) as func) if name in NAMES:
            yield node, _with(node, func=_with(func, attr=NAMES[name]))
        case ast.If(test=test, body=[*_, ast.Raise()]) if not _typing(test):
            yield test, ast.Constant(value=False)
        case ast.Expr(value=ast.Call()):
            yield node, ast.Pass()


def _with(node: ast.AST, **fields: object) -> ast.AST:
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def _typing(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def mutants(room: str, path: Path) -> Iterator[Mutant]:
    """All mutants of a file."""
    text = path.read_text(encoding="utf-8")
    lines = [0]
    for line in text.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    raw = text.encode()

    def place(node: ast.AST) -> tuple[int, int]:
        return lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def visit(node: ast.AST, inside: tuple[str, ...], owner: str) -> Iterator[Mutant]:
        body = ""
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if node.name in UNTOLD:
                return
            inside = (*inside, node.name)
            body = ".".join(inside) if isinstance(node, ast.FunctionDef) else ""
        for part, became in changes(node):
            start, end = place(part)
            before, after = raw[start:end].decode(), ast.unparse(became)
            after = f"({after})" if isinstance(became, ast.expr) and not isinstance(became, ast.Constant) else after
            shown = (_short(before), _short(after))
            yield Mutant(room, str(path.relative_to(PACKAGE)), node.lineno, ".".join(inside), *shown, start, end, owner)  # type: ignore[attr-defined]
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, (ast.Import, ast.ImportFrom, ast.JoinedStr)):
                    yield from visit(child, inside, owner or (body if name == "body" else ""))

    yield from visit(ast.parse(text), (), "")


def _short(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def changed(mutant: Mutant) -> str:
    """The text of the mutant's file."""
    raw = (PACKAGE / mutant.file).read_bytes()
    return (raw[: mutant.start] + mutant.after.encode() + raw[mutant.end :]).decode()


@functools.cache
def near(file: str) -> list[str]:
    """Quick test files of a module, the nearest first: its own, its pinned numbers, its room's, its importers'."""
    module = "dpbayes." + file.removesuffix(".py").replace("/", ".")
    tests, parent = ROOT / "tests", Path(file).parent
    own = [tests / parent / f"test_{Path(file).name}"]
    own += [path.with_name("test_numbers.py") for path in sorted(tests.rglob("numbers.json")) if pinned(path, file)]
    leaf = module.rpartition(".")
    told = re.compile(rf"\b{re.escape(module)}\b|from {re.escape(leaf[0])} import [^\n]*\b{leaf[2]}\b")
    room = sorted((tests / parent).glob("test_*.py"))
    others = [path for path in sorted(tests.rglob("test_*.py")) if told.search(path.read_text(encoding="utf-8"))]
    named = [path for path in others if path in room] + [path for path in room if path not in others] + others
    return [str(path.relative_to(ROOT)) for path in dict.fromkeys([*own, *named]) if path.is_file()]


def pinned(numbers: Path, file: str) -> bool:
    """Whether values of a module are among these numbers."""
    return f'\n "{file.removesuffix(".py").replace("/", ".")}": ' in numbers.read_text(encoding="utf-8")


def all_mutants(only: Sequence[str] = ()) -> list[Mutant]:
    """Every mutant of the rooms, or of the files, that are named; room by room."""
    found = [
        mutant
        for room, patterns in ROOMS.items()
        for pattern in patterns
        for path in sorted(PACKAGE.glob(pattern))
        if path.name != "__init__.py" and _asked(room, path, only)
        for mutant in mutants(room, path)
    ]
    seen: Counter[str] = Counter()
    for place, mutant in enumerate(found):
        seen[mutant.name] += 1
        found[place] = replace(mutant, again=seen[mutant.name])
    return found


def _asked(room: str, path: Path, only: Sequence[str]) -> bool:
    return not only or any(word == room or word in str(path.relative_to(PACKAGE)) for word in only)


def planted() -> list[Mutant]:
    """Faults that no test noticed once: they are tried in every run."""
    found = []
    for fault in tomllib.loads(REASONS.read_text(encoding="utf-8"))["planted"]:
        path = PACKAGE / fault["file"]
        [room] = (room for room, patterns in ROOMS.items() for each in patterns if path in PACKAGE.glob(each))
        raw, before = path.read_bytes(), fault["before"].encode()
        if raw.count(before) != 1:
            raise ValueError(
                f"mutants: {fault['before']} is not, or more than once, in {fault['file']}: mend {REASONS.name}."
            )
        start = raw.index(before)
        line = raw.count(b"\n", 0, start) + 1
        owner = _owner(ast.parse(raw), line)
        shown = (_short(fault["before"]), fault["after"])
        found.append(Mutant(room, fault["file"], line, owner, *shown, start, start + len(before), owner, planted=True))
    return found


def _owner(node: ast.AST, line: int, inside: str = "") -> str:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)) and child.lineno <= line <= (child.end_lineno or 0):
            name = f"{inside}{child.name}"
            return name if isinstance(child, ast.FunctionDef) else _owner(child, line, f"{name}.")
    return ""


def sampled(found: Sequence[Mutant], size: int, seed: str) -> list[Mutant]:
    """About as many of every room, chosen by the seed."""
    source = random.Random(seed)
    rooms = [source.sample(group, len(group)) for room in ROOMS if (group := [m for m in found if m.room == room])]
    return [each for turn in zip_longest(*rooms) for each in turn if each is not None][:size]


def table(verdicts: Sequence[Verdict]) -> str:
    """Killed mutants by room."""
    rooms = {room: [each for each in verdicts if each.mutant.room == room] for room in ROOMS}
    lines = ["| room | mutants | killed | harmless | survived | |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for room, found in [*rooms.items(), ("all", list(verdicts))]:
        if found:
            counted = Counter(each.outcome for each in found)
            noticed = len(found) - counted["survived"]
            part = f"{100 * noticed / len(found):.1f} %"
            killed = counted["killed"] + counted["time"]
            lines.append(
                f"| {room} | {len(found)} | {killed} | {counted['harmless']} | {counted['survived']} | {part} |"
            )
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Try all mutants, or a sample of them that the seed chooses."""
    parser = argparse.ArgumentParser(prog="python -m audit.mutants", description="Do the tests notice changed code?")
    parser.add_argument("--sample", type=int, help="how many, chosen by the seed; all if left out")
    parser.add_argument("--seed", default="", help="text that chooses the sample, such as a commit")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="only these rooms or parts of paths")
    parser.add_argument("--again", action="store_true", help="only those that survived the last time")
    parser.add_argument("--seconds", type=float, default=8.0, help="of a processor that the tests of one may take")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--trace", type=float, default=0.0, metavar="SECONDS", help="to trace what tests reach")
    asked = parser.parse_args(arguments)
    reasons: dict[str, str] = tomllib.loads(REASONS.read_text(encoding="utf-8"))["harmless"]
    found = all_mutants(asked.only)
    if asked.sample is not None:
        found = sampled(found, asked.sample, asked.seed)
    kept = ROOT / "out" / "mutants.json"
    kept.parent.mkdir(exist_ok=True)
    found += [fault for fault in planted() if _asked(fault.room, PACKAGE / fault.file, asked.only)]
    if asked.again:
        last = json.loads(kept.read_text(encoding="utf-8"))
        names = {Mutant(**each["mutant"]).name for each in last if each["outcome"] == "survived"}
        found = [mutant for mutant in found if mutant.name in names]
    from audit.mutants_server import judged

    verdicts: list[Verdict] = []

    def say(mutant: Mutant, outcome: str, by: str, seconds: float) -> None:
        shown = "harmless" if outcome == "survived" and mutant.name in reasons else outcome
        verdicts.append(Verdict(mutant, shown, by, round(seconds, 3)))
        kept.write_text(
            json.dumps([asdict(each) for each in verdicts], indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        if shown == "survived":
            print(f"survived: {mutant.name} (line {mutant.line})", flush=True)

    judged(found, asked.processes, asked.trace, asked.seconds, say)
    print(table(verdicts))
    noticed = sum(each.outcome != "survived" for each in verdicts)
    if any(each.mutant.planted and each.outcome == "survived" for each in verdicts):
        return 1
    if asked.sample is None:
        return 0 if noticed >= GOAL * len(verdicts) else 1
    return 0 if binom.cdf(noticed, len(verdicts), FLOOR) >= INCREDIBLE else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
