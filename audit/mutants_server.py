"""The tests are collected once; then each mutant is a forked process in which the changed function takes its place.

Which tests reach which line is traced once for each test file and kept in out/, until that file changes. What is run
at import cannot be exchanged afterwards: for such a change the package is loaded anew, from links to its files.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import importlib
import inspect
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

import pytest

from audit.mutants import PACKAGE, ROOMS, ROOT, Mutant, changed, near

PATIENCE = 5
"""Processor seconds that one test may take beyond ten times what it took when traced; more has noticed the change."""

ASLEEP = 40
"""Seconds until a test counts as one that waits for ever."""

TRACED = 40
"""Processor seconds after which no further test of a file is traced."""

MEMORY = 4 << 30
"""Bytes that a changed program may take."""

REACHED = ROOT / "out" / "mutants-reached.json"
"""For each test file, its digest, and for each test its seconds and the lines it runs."""

OPTIONS = ["-o", "addopts=", "--import-mode=importlib", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:terminal",
           "-p", "no:faulthandler", "--timeout=0", "-W", "ignore::pytest.PytestAssertRewriteWarning",
           "-W", "ignore::pytest.PytestUnraisableExceptionWarning"]  # fmt: skip

Task = TypeVar("Task")


def judged(
    found: Sequence[Mutant],
    processes: int,
    trace: float,
    limit: float,
    say: Callable[[Mutant, str, str, float], None],
) -> None:
    """Run the tests against each mutant, some at a time, and say what came of it.

    No further test of a mutant starts after so many processor seconds.
    """
    for name in ("numpy", "hypothesis", "scipy.special", "scipy.stats", "scipy.optimize", "pyarrow"):
        importlib.import_module(name)  # and nothing of ours, as some load it anew
    inside = [mutant for mutant in found if exchangeable(mutant)]
    anew = [mutant for mutant in found if mutant not in inside]
    for mutant, words, seconds in forked(((m, functools.partial(_anew, m, limit)) for m in anew), processes):
        say(mutant, *_outcome(words), seconds)
    if inside:
        tests = sorted({each for file in {mutant.file for mutant in inside} for each in near(file)})
        server = Server(lambda server: server.serve(inside, processes, trace, say), limit)
        code = pytest.main([*OPTIONS, *tests], plugins=[server])
        if not server.served:
            raise RuntimeError(f"mutants: the tests could not be collected ({code}).\n{server.problem}")


def _sources() -> set[Path]:
    return {path for patterns in ROOMS.values() for pattern in patterns for path in PACKAGE.glob(pattern)}


def _outcome(words: str) -> tuple[str, str]:
    """The outcome and the test that the words of a process name."""
    outcome, _, by = (words or "survived").partition(" ")  # one that can say nothing was not seen to be noticed
    if outcome not in ("killed", "time", "survived"):
        raise RuntimeError(f"mutants: the tests did not run: {words}")
    return outcome, by


def forked(
    tasks: Iterable[tuple[Task, Callable[[Callable[[str], None]], str]]], processes: int
) -> Iterator[tuple[Task, str, float]]:
    """Each task in a process of its own, some at a time: what it says, and its seconds."""
    running: dict[int, tuple[Task, Any, str, float]] = {}
    waiting = iter(tasks)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        while True:
            while len(running) < processes and (task := next(waiting, None)) is not None:
                said, place = tempfile.TemporaryFile(), tempfile.mkdtemp(dir=folder)  # noqa: SIM115
                Path(place).chmod(0o755)  # some tests become somebody else
                child = os.fork()
                if child == 0:
                    _work(task[1], said, place)
                running[child] = (task[0], said, place, time.monotonic())
            if not running:
                return
            child, _ = os.wait()
            name, said, place, since = running.pop(child)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # what it started and left
            shutil.rmtree(place, ignore_errors=True)
            with said:
                said.seek(0)
                yield name, said.read().decode(), time.monotonic() - since


def _work(task: Callable[[Callable[[str], None]], str], said: Any, folder: str) -> None:
    """In a child, silent and within limits. Never returns."""
    os.setpgid(0, 0)
    quiet = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(quiet, each)
    os.environ["TMPDIR"] = tempfile.tempdir = folder

    def say(words: str) -> None:
        os.pwrite(said.fileno(), words.encode(), 0)
        os.ftruncate(said.fileno(), len(words.encode()))

    try:
        say(task(say))
    except BaseException:
        with contextlib.suppress(OSError):  # a change may have closed even this file
            say("broken " + traceback.format_exc())
    finally:
        os._exit(0)


class Server:
    """Collects the tests and hands them over, instead of running them; then says whether one has failed."""

    def __init__(self, work: Callable[[Server], None], limit: float) -> None:
        self.work, self.limit = work, limit
        self.items: list[Any] = []
        self.served = self.failed = False
        self.problem = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """A counterexample is enough: it need not be made smaller."""
        from hypothesis import Phase, settings

        settings.register_profile("first", settings.default, phases=(Phase.explicit, Phase.generate))
        settings.load_profile("first")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of the tests."""
        needless = {"server", "spark_cluster", "browser"}
        self.items = [item for item in session.items if not needless & set(getattr(item, "fixturenames", ()))]
        self.served = not session.testsfailed
        if self.served:
            self.work(self)
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """One that could not be loaded."""
        self.problem += str(report.longrepr) if report.failed else ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One that failed."""
        self.failed |= report.failed

    def tried(self, tests: Sequence[tuple[Any, float]], begun: Callable[[str], None] = str) -> str:
        """In a child: run tests, each known to take so long, until one fails or never ends, or the seconds are over."""
        since, statistics = time.process_time(), Path("/proc/self/statm")
        used = int(statistics.read_text().split()[0]) * resource.getpagesize() if statistics.exists() else 0
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY + used, resource.RLIM_INFINITY))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for (item, seconds), after in zip(
            tests, [*(item for item, _ in tests[1:]), None], strict=False
        ):  # where nothing reaches it, none
            if time.process_time() - since > self.limit:
                break
            begun(f"time {item.nodeid}")
            signal.alarm(ASLEEP)
            signal.setitimer(signal.ITIMER_PROF, PATIENCE + 10 * seconds)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if self.failed:
                return f"killed {item.nodeid}"
        return "survived"

    def serve(self, found: Sequence[Mutant], processes: int, trace: float, say: Callable[..., None]) -> None:
        """Find out which tests reach what, as far as the seconds go, and judge the mutants."""
        for path in _sources():
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            importlib.import_module(".".join(parts).removesuffix(".__init__"))
        files = defaultdict(list)
        for item in self.items:
            files[str(item.path.relative_to(ROOT))].append(item)
        ranks: dict[str, int] = {}
        for rank, file in (
            (rank, test) for each in {each.file for each in found} for rank, test in enumerate(near(each))
        ):
            ranks[file] = min(rank, ranks.get(file, rank))
        digests = {file: hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:12] for file in files}
        reached = json.loads(REACHED.read_text()) if REACHED.exists() else {}
        until = time.monotonic() + trace
        fresh = (
            (file, functools.partial(self._traced, items))
            for file, items in sorted(files.items(), key=lambda each: ranks[each[0]])
            if reached.get(file, [""])[0] != digests[file] and time.monotonic() < until
        )
        for file, words, _ in forked(fresh, processes):
            reached[file] = [digests[file], json.loads(words) if words.startswith("{") else {}]
            REACHED.parent.mkdir(exist_ok=True)
            REACHED.write_text(json.dumps(reached))
        reached = {file: tests for file, (digest, tests) in reached.items() if digests.get(file) == digest}
        choice, alive = Choice(self.items, reached), Alive()
        while found:
            doubtful: list[tuple[Mutant, str, str, float]] = []
            tasks = ((mutant, functools.partial(self._against, mutant, choice, alive)) for mutant in found)
            for mutant, words, seconds in forked(tasks, processes):
                outcome, by = _outcome(words)
                if by and by not in choice.sound:
                    doubtful.append((mutant, outcome, by, seconds))
                else:
                    say(mutant, outcome, by, seconds)
            names = {by for _, _, by, _ in doubtful}
            killers = [(item.nodeid, [(item, choice.seconds(item))]) for item in choice.items if item.nodeid in names]
            alone = ((name, functools.partial(self.tried, test)) for name, test in killers)
            choice.sound |= {name for name, words, _ in forked(alone, processes) if words == "survived"}
            choice.items = [item for item in choice.items if item.nodeid not in names - choice.sound]
            for each in doubtful:
                if each[2] in choice.sound:
                    say(*each)
            found = [mutant for mutant, _, by, _ in doubtful if by not in choice.sound]
        gc.unfreeze()

    def _traced(self, items: Sequence[Any], _: Callable[[str], None]) -> str:
        """In a child: for each test its seconds and the lines of the rooms that it runs, as their text."""
        files = {str(path) for path in _sources()}
        met: dict[CodeType, set[int]] = {}

        def enter(frame: FrameType, _: str, __: object) -> Callable[..., Any] | None:
            code = frame.f_code
            if code.co_filename not in files:
                return None
            add = met.setdefault(code, set()).add

            def line(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
                if event == "line":
                    add(frame.f_lineno)
                return line

            return line

        told = {}
        texts = {file: Path(file).read_text(encoding="utf-8").splitlines() for file in files}
        for item, after in zip(items, [*items[1:], None], strict=True):
            met.clear()
            since = time.process_time()
            sys.settrace(enter)
            self.failed = False
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            sys.settrace(None)
            seconds = round(time.process_time() - since, 3)
            lines: set[str] = set()
            if not self.failed:
                lines = {_line(code.co_filename, texts, each) for code, found in met.items() for each in found}
            told[item.nodeid] = [seconds, sorted(lines)]
            if time.process_time() > TRACED:
                break
        return json.dumps(told)

    def _against(self, mutant: Mutant, choice: Choice, alive: Alive, begun: Callable[[str], None]) -> str:
        """In a child: the tests that reach a mutant, with its function exchanged."""
        alive.exchange(mutant)
        return self.tried(choice.tests(mutant), begun)


def _line(file: str, texts: dict[str, list[str]], number: int) -> str:
    """How a line is called, wherever it moves: by a short digest of its file and its text."""
    text = f"{Path(file).relative_to(PACKAGE)} {texts[file][number - 1].strip()}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _names(code: CodeType) -> set[str]:
    """The names that a function uses, in those inside it too."""
    return set(code.co_names).union(*(_names(each) for each in code.co_consts if isinstance(each, CodeType)))


class Choice:
    """Which tests meet a mutant, the most promising first."""

    def __init__(self, items: Sequence[Any], reached: dict[str, dict[str, Any]]) -> None:
        self.items = items
        self.traced = {test: told for tests in reached.values() for test, told in tests.items()}
        self.by_line: dict[str, set[str]] = defaultdict(set)
        for test, (_, lines) in self.traced.items():
            for line in lines:
                self.by_line[line].add(test)
        self.sound: set[str] = set()
        """Tests that have been seen to pass on the package as it is."""
        self.names = {item.function: _names(inspect.unwrap(item.function).__code__) for item in items}

    def seconds(self, item: Any) -> float:
        """What a test took when it was traced."""
        return float(self.traced.get(item.nodeid, (0.1,))[0])

    def tests(self, mutant: Mutant) -> list[tuple[Any, float]]:
        """Those that reach its line, and those that nobody has traced, with their seconds; the promising first."""
        path = str(PACKAGE / mutant.file)
        texts = {path: Path(path).read_text(encoding="utf-8").splitlines()}
        lines = (_line(path, texts, number) for number in range(mutant.line, max(mutant.line - 12, 0), -1))
        reaching = next((self.by_line[line] for line in lines if line in self.by_line), set())
        order = {file: rank for rank, file in enumerate(near(mutant.file))}
        words = set(mutant.inside.split(".")[-2:])
        kinds: dict[object, int] = defaultdict(int)
        found = []
        for item in self.items:
            file = item.nodeid.partition("::")[0]
            seconds, near_by = self.seconds(item), 1 + min(order.get(file, 8), 8)
            if item.nodeid not in reaching and (item.nodeid in self.traced or file not in order):
                continue
            named = not words.isdisjoint(self.names[item.function])
            kinds[item.function] += 1  # of one with many parameters, the first is tried before the others
            told = item.nodeid.endswith(f"[{mutant.file.removesuffix('.py').replace('/', '.')}]")
            later = 0.0 if told else (seconds + 0.02) * kinds[item.function] * near_by / (1 + 3 * named)
            found.append((later, item, seconds))
        return [(item, seconds) for _, item, seconds in sorted(found, key=lambda each: each[0])]


class Alive:
    """The package's functions that exist, by file and name, and what remembers their results."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, str], list[FunctionType]] = defaultdict(list)
        self.caches = []
        gc.collect()
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(str(PACKAGE)):
                self.functions[each.__code__.co_filename, each.__code__.co_qualname].append(each)
            elif isinstance(each, functools._lru_cache_wrapper) and str(each.__module__).startswith("dpbayes"):
                self.caches.append(each)
        gc.freeze()  # not copied into every child by being looked at

    def exchange(self, mutant: Mutant) -> None:
        """Put the changed code into the function that exists, which every importer shares, and into those inside it."""
        before, after = _both(mutant)
        count = 0
        for name, codes in after.items():
            for old, new in zip(before[name], codes, strict=True):
                for function in self.functions[str(PACKAGE / mutant.file), name]:
                    if function.__code__.co_firstlineno == old.co_firstlineno:
                        function.__code__, count = new, count + 1
        if not count:
            raise RuntimeError(f"mutants: {mutant.owner} of {mutant.file} does not exist")
        for each in self.caches:
            each.cache_clear()


@functools.cache
def _both(mutant: Mutant) -> tuple[dict[str, list[CodeType]], dict[str, list[CodeType]]]:
    """The code of its function and of those inside it, by name, before and after."""
    path = PACKAGE / mutant.file
    texts = (path.read_text(encoding="utf-8"), changed(mutant))
    before, after = (_codes(compile(text, str(path), "exec", dont_inherit=True), mutant.owner) for text in texts)
    return before, after


def _codes(code: CodeType, owner: str) -> dict[str, list[CodeType]]:
    found = defaultdict(list)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_qualname == owner or each.co_qualname.startswith(f"{owner}.<locals>."):
                found[each.co_qualname].append(each)
            for name, inner in _codes(each, owner).items():
                found[name] += inner
    return found


def exchangeable(mutant: Mutant) -> bool:
    """Whether the code of functions that exist can become the changed one: it runs later, over the same variables."""
    before, after = _both(mutant)
    return bool(mutant.owner) and {n: [c.co_freevars for c in codes] for n, codes in before.items()} == {
        n: [c.co_freevars for c in codes] for n, codes in after.items()
    }


def _anew(mutant: Mutant, limit: float, begun: Callable[[str], None]) -> str:
    """In a child that has loaded nothing of ours: the near tests against the package with one file changed."""
    source = Path(tempfile.mkdtemp()) / "dpbayes"
    shutil.copytree(PACKAGE, source, copy_function=os.symlink, symlinks=True, ignore=shutil.ignore_patterns("*.pyc"))
    (source / mutant.file).unlink()
    (source / mutant.file).write_text(changed(mutant), encoding="utf-8")
    os.environ |= {"PYTHONPATH": str(source.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path.insert(0, str(source.parent))
    tests = near(mutant.file)
    for part in (tests[:2], tests[2:]):  # most are noticed by the module's own tests
        words: list[str] = []
        server = Server(
            lambda server, words=words: words.append(server.tried(Choice(server.items, {}).tests(mutant), begun)),
            limit,
        )
        code = pytest.main([*OPTIONS, *part], plugins=[server]) if part else 0
        if code == pytest.ExitCode.INTERNAL_ERROR:
            raise RuntimeError("mutants: pytest failed")
        if code and not words:
            return f"killed {part[0]}"  # it cannot even be loaded
        if words and words[0] != "survived":
            return words[0]
    return "survived"
