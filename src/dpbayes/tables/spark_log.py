"""Spark's log stays silent while we count: when a job fails, it quotes the row that made it fail.

Three logs may quote it: that of Spark in the Java of this process, that of PySpark in Python, and those of executors on
other machines. The first two are held back here for as long as a job of ours runs, in a caller's own session too, and
are then as before. Executors of a session of our own are told to be silent when they start. Those of a caller's cluster
write to the cluster's own files, which are as private as the tables that it reads.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

_guard = threading.Lock()
_silent: dict[str, tuple[int, Callable[[], None]]] = {}  # for each log: how many jobs need silence, and its end


@contextmanager
def silence(session: SparkSession | None) -> Iterator[None]:
    """No line in any log that this process can reach, of anything that runs meanwhile."""
    logs: dict[str, Callable[[], Callable[[], None]]] = {"python": _hold_back_python}
    if session is not None and (virtual_machine := _virtual_machine(session)) is not None:
        logs["java"] = lambda: _hold_back_java(virtual_machine)
    with _guard:
        for name, hold_back in logs.items():
            jobs, end = _silent.get(name) or (0, hold_back())
            _silent[name] = (jobs + 1, end)
    try:
        yield
    finally:
        with _guard:
            for name in reversed(logs):  # the bridge to Java falls silent first and speaks last
                jobs, end = _silent.pop(name)
                if jobs > 1:
                    _silent[name] = (jobs - 1, end)
                else:
                    end()


def _hold_back_python() -> Callable[[], None]:
    """PySpark tells why a query failed, and at the level DEBUG its bridge to Java tells everything that crosses it."""

    def nothing(_: logging.LogRecord) -> bool:
        return False

    known = logging.Logger.manager.loggerDict
    bridge = [logging.getLogger(name) for name in list(known) if name.partition(".")[0] == "py4j"]
    loggers = [PySparkLogger.getLogger("SQLQueryContextLogger"), *bridge]
    for logger in loggers:
        logger.addFilter(nothing)

    def end() -> None:
        for logger in loggers:
            logger.removeFilter(nothing)

    return end


def _hold_back_java(virtual_machine: Any) -> Callable[[], None]:
    """A filter before all loggers, whatever their levels; taken away, everything is as it was."""
    log4j = virtual_machine.org.apache.logging.log4j
    outcome = log4j.core.Filter.Result
    configuration = log4j.LogManager.getContext(False).getConfiguration()
    nothing = log4j.core.filter.ThresholdFilter.createFilter(log4j.Level.OFF, outcome.NEUTRAL, outcome.DENY)
    configuration.addFilter(nothing)

    def end() -> None:
        configuration.removeFilter(nothing)

    return end


def _virtual_machine(session: SparkSession) -> Any:
    """The Java that runs the driver, or None: a session of Spark Connect has it elsewhere, with its log."""
    try:
        return session.sparkContext._jvm
    except (PySparkException, AttributeError):
        return None
