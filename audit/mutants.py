"""The audit of the tests: change one operator, constant or guard at a time, and see whether a test fails.

    python -m audit.mutants [--sample N] [--seed TEXT] [--only WORD] [--processes N]

A mutant is the package with one place changed. The quick tests that mirror or import the changed module run against
it, nearest first, until one fails. A mutant that none of them notices is a survivor: either a test is missing, or the
change is harmless, and then ``mutants.toml`` says why. All that is found goes to out/mutants.json.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import inspect
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from scipy.stats import binom

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PACKAGE = ROOT / "src" / "dpbayes"
REASONS = HERE / "mutants.toml"
"""Survivors that are harmless, and why."""

ROOMS = {
    "privacy": ["privacy/*.py", "domain/unit.py"],
    "mechanisms": ["mechanisms/**/*.py"],
    "ledger": ["ledger/*.py"],
    "curator": ["curator.py", "jobs/base.py", "jobs/edges.py", "jobs/vector.py", "jobs/categories.py"],
    "intervals": [
        f"inference/{name}.py" for name in ("ask", "intervals", "law", "measurement", "numbers", "residuals")
    ],
}
"""What a guarantee or an interval rests on."""

GOAL = 0.95
"""The part of all mutants that has to be killed."""

INCREDIBLE = 1e-3
"""A sample fails where so few would be killed with this probability if the goal were met."""

SECONDS = 30
"""Processor seconds that the tests of one mutant may take together: no further test starts after them."""

PATIENCE = 60
"""Seconds that one test may take; one that never ends has noticed the change."""

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
    again: int = 1
    """Which of several equal ones inside one function."""

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

    def visit(node: ast.AST, inside: tuple[str, ...]) -> Iterator[Mutant]:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if node.name in UNTOLD:
                return
            inside = (*inside, node.name)
        for part, became in changes(node):
            start, end = place(part)
            before, after = raw[start:end].decode(), ast.unparse(became)
            after = f"({after})" if isinstance(became, ast.expr) and not isinstance(became, ast.Constant) else after
            shown = (_short(before), _short(after))
            yield Mutant(room, str(path.relative_to(PACKAGE)), node.lineno, ".".join(inside), *shown, start, end)  # type: ignore[attr-defined]
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, (ast.Import, ast.ImportFrom, ast.JoinedStr)):
                    yield from visit(child, inside)

    yield from visit(ast.parse(text), ())


def _short(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def changed(mutant: Mutant) -> str:
    """The text of the mutant's file."""
    raw = (PACKAGE / mutant.file).read_bytes()
    return (raw[: mutant.start] + mutant.after.encode() + raw[mutant.end :]).decode()


def all_mutants(only: str = "") -> list[Mutant]:
    """Every mutant, room by room."""
    found = [
        mutant
        for room, patterns in ROOMS.items()
        for pattern in patterns
        for path in sorted(PACKAGE.glob(pattern))
        if path.name != "__init__.py" and only in str(path)
        for mutant in mutants(room, path)
    ]
    seen: Counter[str] = Counter()
    for place, mutant in enumerate(found):
        seen[mutant.name] += 1
        found[place] = replace(mutant, again=seen[mutant.name])
    return found


def sampled(found: Sequence[Mutant], size: int, seed: str) -> list[Mutant]:
    """About as many of every room, chosen by the seed."""
    source = random.Random(seed)
    rooms = [source.sample(group, len(group)) for room in ROOMS if (group := [m for m in found if m.room == room])]
    return [each for turn in zip_longest(*rooms) for each in turn if each is not None][:size]


def near(file: str) -> list[str]:
    """Quick test files that mirror or import a module, the nearest first: its own, its room's, then the others'."""
    module = "dpbayes." + file.removesuffix(".py").replace("/", ".")
    tests, parent = ROOT / "tests", Path(file).parent
    own = tests / parent / f"test_{Path(file).name}"
    leaf = module.rpartition(".")
    told = re.compile(rf"\b{re.escape(module)}\b|from {re.escape(leaf[0])} import [^\n]*\b{leaf[2]}\b")
    room = sorted((tests / parent).glob("test_*.py"))
    others = [path for path in sorted(tests.rglob("test_*.py")) if told.search(path.read_text(encoding="utf-8"))]
    named = [path for path in others if path in room] + [path for path in room if path not in others] + others
    return [str(path.relative_to(ROOT)) for path in dict.fromkeys([own, *named]) if path.is_file()]


def judged(found: Sequence[Mutant], reasons: dict[str, str], processes: int) -> Iterator[Verdict]:
    """Run the tests against each mutant, some at a time, each in a process of its own."""
    waiting, running = list(reversed(found)), dict[int, tuple[Mutant, Path, float]]()
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < processes:
                mutant, place = waiting.pop(), Path(tempfile.mkdtemp(dir=folder))
                running[_started(mutant, place)] = (mutant, place, time.monotonic())
            child, status = os.wait()
            mutant, place, since = running.pop(child)
            words = (place / "said").read_text(encoding="utf-8", errors="replace")
            outcome, by = _outcome(status, words, mutant.name in reasons)
            shutil.rmtree(place)
            yield Verdict(mutant, outcome, by, time.monotonic() - since)


def _started(mutant: Mutant, place: Path) -> int:
    """A process that tests a copy of the package: links to the real files, but for the changed one."""
    source = place / "src" / "dpbayes"
    shutil.copytree(PACKAGE, source, copy_function=os.symlink, symlinks=True)
    target = source / mutant.file
    target.unlink()
    target.write_text(changed(mutant), encoding="utf-8")
    for stale in (target.parent / "__pycache__").glob(f"{target.stem}.*.pyc"):
        stale.unlink()
    tests = near(mutant.file)
    child = os.fork()
    if child == 0:
        _run(source.parent, tests, mutant.inside.split(".")[-2:], place / "said")
    return child


def _outcome(status: int, words: str, harmless: bool) -> tuple[str, str]:
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", words, re.MULTILINE)
    if os.WIFSIGNALED(status):
        return "time", signal.Signals(os.WTERMSIG(status)).name
    if os.WEXITSTATUS(status) == 0:
        return "harmless" if harmless else "survived", ""
    if not found:
        raise RuntimeError(f"mutants: the tests did not run:\n{words}")
    return "killed", found.group(1)


def _run(source: Path, tests: Sequence[str], words: Sequence[str], said: Path) -> None:
    """In a child: the tests against the changed package. Never returns."""
    code = 70
    try:
        out = os.open(said, os.O_CREAT | os.O_WRONLY)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout = sys.stderr = os.fdopen(out, "w", encoding="utf-8")
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + PATIENCE, SECONDS + PATIENCE))
        os.chdir(ROOT)
        sys.path.insert(0, str(source))
        os.environ |= {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
        import pytest

        options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", f"--timeout={PATIENCE}"]
        for part in (tests[:1], tests[1:]):  # most are noticed by the module's own tests
            code = int(pytest.main([*part, *options], plugins=[_Order(words)])) if part else 0
            if code:
                break
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        os._exit(code)


class _Order:
    """Tests that name the changed function come first, and none starts after the seconds are used up."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items.sort(key=lambda item: not any(word in inspect.getsource(item.function) for word in self.words))

    def pytest_runtest_setup(self) -> None:
        if time.process_time() > SECONDS:
            import pytest

            pytest.exit("enough", returncode=0)


def _warm() -> None:
    """Load what every test needs, and nothing of ours, before processes are forked."""
    for name in ("numpy", "pytest", "scipy.special", "scipy.stats", "scipy.optimize", "pyarrow"):
        __import__(name)


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
    parser.add_argument("--only", default="", help="only files whose path contains this")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args(arguments)
    reasons: dict[str, str] = tomllib.loads(REASONS.read_text(encoding="utf-8"))["harmless"]
    found = all_mutants(asked.only)
    if asked.sample is not None:
        found = sampled(found, asked.sample, asked.seed)
    _warm()
    verdicts: list[Verdict] = []
    for verdict in judged(found, reasons, asked.processes):
        verdicts.append(verdict)
        if verdict.outcome == "survived":
            print(f"survived: {verdict.mutant.name} (line {verdict.mutant.line})", flush=True)
    folder = ROOT / "out"
    folder.mkdir(exist_ok=True)
    kept = [asdict(each) for each in verdicts]
    (folder / "mutants.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(table(verdicts))
    noticed = sum(each.outcome != "survived" for each in verdicts)
    if asked.sample is None:
        return 0 if noticed >= GOAL * len(verdicts) else 1
    return 0 if binom.cdf(noticed, len(verdicts), GOAL) >= INCREDIBLE else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
