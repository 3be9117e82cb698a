"""What is asked of neighbours other than the broker: in the background, now and then, and never in a page's way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from models.alerts.knowledge import DriftSeen

if TYPE_CHECKING:
    from pipelines.registry.overview import RegisteredModel

T = TypeVar("T")
IDLE_S = 120.0
"""Seconds after the last look in which a neighbour is still asked."""


class Answer(NamedTuple, Generic[T]):
    """What a neighbour said last.

    Attributes:
        value: None before it has answered.
        problem: why there is nothing newer, for a person; "" where there is.
        at: when it answered, epoch seconds.
    """

    value: T | None = None
    problem: str = ""
    at: float = 0.0


class Polled(Generic[T]):
    """Asks one neighbour in a thread of its own, for as long as somebody looks; a look never waits.

    The thread ends with the process, and `IDLE_S` after the last look; the next look begins another one.
    """

    def __init__(self, what: str, read: Callable[[], T], every_s: float) -> None:
        """Take whom to ask.

        Args:
            what: that is asked for, which a problem names.
            read: asks for it; what it raises is the problem.
            every_s: seconds from an answer to the next question.
        """
        self._what, self._read, self._every_s = what, read, every_s
        self._answer = Answer[T]()
        self._lock = threading.Lock()
        self._looked_at, self._runs = 0.0, False

    def look(self) -> Answer[T]:
        """Return the newest answer; the first look, and the first one after `IDLE_S` without any, begins to ask."""
        with self._lock:
            self._looked_at = time.monotonic()
            begin, self._runs = not self._runs, True
        if begin:
            self._answer = self._answer._replace(problem=f"{self._what}: being asked for.")  # it may be of hours ago
            threading.Thread(target=self._run, name=f"console {self._what}", daemon=True).start()
        return self._answer

    def _run(self) -> None:
        while True:
            try:
                self._answer = Answer(self._read(), "", time.time())
            except Exception as error:  # whatever a neighbour's client raises; what was known stays
                self._answer = self._answer._replace(problem=f"{self._what}: {error}")
            time.sleep(self._every_s)
            with self._lock:
                if time.monotonic() - self._looked_at > IDLE_S:
                    self._runs = False
                    return


def unasked() -> Answer[Any]:
    """Return what nobody was asked for."""
    return Answer()


@dataclass(frozen=True)
class PageSources:
    """What the pages show beside the topics.

    Attributes:
        registered: the models that MLflow has.
        drifts: newest reported one of each job.
        topologies: those of the folder, and where the queries of those that were begun run.
        advice: what the DAG plan_placement has told of each topology last.
        mlflow: address of MLflow's pages; "" where it has none that is known.
    """

    registered: Callable[[], Answer[Sequence[RegisteredModel]]] = unasked
    drifts: Callable[[], Answer[Mapping[str, DriftSeen]]] = unasked
    topologies: Callable[[], Answer[list[dict[str, Any]]]] = unasked
    advice: Callable[[], Answer[Mapping[str, Any]]] = unasked
    mlflow: str = ""


def problems(*answers: Answer[Any]) -> str:
    """Return in words what could not be asked, and of when what is shown of it is.

    They do not change by themselves: a screen reader says them anew each time they do.
    """
    return " ".join(
        f"{one.problem}{f' What is shown of it is of {_moment(one.at)}.' if one.at else ''}"
        for one in answers if one.problem
    )  # fmt: skip


def _moment(epoch: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(epoch))
