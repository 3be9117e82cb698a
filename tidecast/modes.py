"""Switching an agent between observing, acting and freezing while the job runs."""

from __future__ import annotations

import logging
import threading

from tidecast.actuator import ActuatorError
from tidecast.job import Job

log = logging.getLogger("tidecast")

_owner: Job | None = None
_owner_lock = threading.Lock()


def switch(job: Job, mode: str) -> None:
    """Change the job's mode. Acting makes its agent the one owner of the application's executor target.

    An application runs in one driver, so one owner per process is one per application. An agent that cannot own the
    target keeps its mode and says why.
    """
    with job.lock:
        if mode == job.mode and (mode != "act" or job.owns_executors):
            return
        if mode == "act" and not job.owns_executors and not _own(job):
            return
        log.warning("%s: mode %s -> %s%s", job.name, job.mode, mode, _MEANING[mode])
        job.mode = mode


def release(job: Job) -> None:
    """Give up ownership when the agent ends, so that another query of the application may be acted on."""
    global _owner
    with _owner_lock:
        if _owner is job:
            _owner = None


_MEANING = {
    "observe": ": decisions are recommendations only",
    "act": ": decisions are applied, Spark's own executor allocation is off until the application ends",
    "freeze": ": the executors stay as they are, whatever is decided",
}


def _own(job: Job) -> bool:
    global _owner
    with _owner_lock:
        if _owner is not None and _owner is not job and not _owner.stop.is_set():
            log.error("%s: cannot act: the agent of %s owns this application's executors", job.name, _owner.name)
            return False
        try:
            job.actuator.take_over(job.limits.least)
        except ActuatorError as error:
            log.error("%s: cannot act, observing instead: %s", job.name, error)
            return False
        _owner, job.owns_executors = job, True
        return True
