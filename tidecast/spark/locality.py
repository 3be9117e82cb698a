"""How long a task waits for the executor that holds its state, while a replay's tasks may be in its way."""

from __future__ import annotations

from typing import Any

OPTION, GENERAL = "spark.locality.wait.process", "spark.locality.wait"
LEAST_MS = 3000
"""Longer than most tasks of a replay, and what Spark waits by itself. State that is loaded elsewhere takes up to five
seconds, and eleven were seen where the executor had never held any; but all tasks that have an executor wait for it."""


class StateWait:
    """Raises Spark's wait for a task's own executor to LEAST_MS as long as it is held; a longer one stays.

    Live records' stateful tasks begin when their first stage ends, which is when a replay's tasks have taken the cores
    that came free. Where an application waits for nothing (`spark.locality.wait=0s`) they would run wherever a core is
    free, and load their state there. Spark reads the option anew for every stage.
    """

    def __init__(self) -> None:
        self._held: tuple[Any, str | None] | None = None

    def hold(self, wanted: bool) -> None:
        """Raise it, or give it back what it was; without a Spark of this process nothing is done.

        Raises:
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        if wanted == (self._held is not None):
            return
        if self._held is not None:
            conf, own = self._held
            self._held = None
            if own is None:
                conf.remove(OPTION)
            else:
                conf.set(OPTION, own)
        elif (conf := _conf()) is not None:
            self._held = conf, conf.get(OPTION) if conf.contains(OPTION) else None
            if conf.getTimeAsMs(OPTION, conf.get(GENERAL, "3s")) < LEAST_MS:
                conf.set(OPTION, f"{LEAST_MS}ms")


def _conf() -> Any:
    """The scheduler's own options, not a copy of them."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return None if context is None else context._jsc.sc().conf()
