"""How long a task waits for the executor that holds its state, while a replay's tasks may be in its way."""

from __future__ import annotations

import threading
from typing import Any

OPTION, GENERAL = "spark.locality.wait.process", "spark.locality.wait"
LEAST_MS = 3000
"""Longer than most tasks of a replay, and what Spark waits by itself. State that is loaded elsewhere takes up to five
seconds, and eleven were seen where the executor had never held any; but all tasks that have an executor wait for it."""
_lock = threading.Lock()
_holders: set[StateWait] = set()
_before: list[tuple[Any, Any, str | None]] = []
"""While anybody holds it: the application, its scheduler's options, and what stood there."""


class StateWait:
    """Raises Spark's wait for a task's own executor to LEAST_MS as long as it is held; a longer one stays.

    Live records' stateful tasks begin when their first stage ends, which is when a replay's tasks have taken the cores
    that came free. Where an application waits for nothing (`spark.locality.wait=0s`) they would run wherever a core is
    free, and load their state there. Spark reads the option anew for every stage. Agents of several queries of an
    application hold it together.
    """

    def hold(self, wanted: bool) -> None:
        """Raise it, or let go of it: the last one to do so gives it back what it was; without Spark nothing is done.

        Raises:
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        with _lock:
            if wanted == (self in _holders):
                return
            if wanted:
                self._raise()
            else:
                _holders.remove(self)
                if not _holders:
                    _, conf, own = _before.pop()
                    _restore(conf, own)

    def _raise(self) -> None:
        context = _context()
        if context is None:
            return
        if _before and _before[0][0] is not context:  # who held it in an application that has ended cannot let go
            _before.clear()
            _holders.clear()
        if not _before:
            conf = context._jsc.sc().conf()  # the scheduler's own options, not a copy of them
            _before.append((context, conf, conf.get(OPTION) if conf.contains(OPTION) else None))
            if conf.getTimeAsMs(OPTION, conf.get(GENERAL, "3s")) < LEAST_MS:
                conf.set(OPTION, f"{LEAST_MS}ms")
        _holders.add(self)


def _restore(conf: Any, own: str | None) -> None:
    if own is None:
        conf.remove(OPTION)
    else:
        conf.set(OPTION, own)


def _context() -> Any:
    from pyspark import SparkContext

    return SparkContext._active_spark_context
