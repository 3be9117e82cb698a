"""Switching an agent between observing, acting and freezing, and what it does when the autoscaler falls silent."""

from __future__ import annotations

import logging
import threading
import time

from tidecast.job import Job
from tidecast.spark.actuator import ActuatorError

log = logging.getLogger("tidecast")

WIDTH = ("observe", "freeze", "act")
"""Modes, the narrowest first: what an agent may touch in the application."""
_owner: Job | None = None
_owner_lock = threading.Lock()


def obey(job: Job, word: str | None) -> None:
    """Take the mode that a control word asks for (None: there is no word), at most as wide as `attach` allowed.

    A word is kept on its topic and outlives the code that it was meant for: it may narrow what the code says, no more.
    """
    mode = min(job.granted, word or job.granted, key=WIDTH.index)
    if word is not None and word != mode:
        log.warning(
            '%s: the word "%s" on topic control is not obeyed, the agent was attached to %s at most; for more, restart '
            'it with attach(..., mode="%s")', job.name, word, job.granted, word,
        )  # fmt: skip
    switch(job, mode)


def switch(job: Job, mode: str) -> None:
    """Change the job's mode. Acting or freezing makes its agent the one owner of the application's executor target.

    An application runs in one driver, so one owner per process is one per application. An agent that cannot own the
    target keeps its mode and says why.
    """
    with job.lock:
        if mode == job.mode or (mode != "observe" and not job.owns_executors and not _own(job)):
            return
        log.warning("%s: mode %s -> %s%s", job.name, job.mode, mode, _MEANING[mode])
        job.mode, job.heard_at, job.handed_back = mode, time.time(), False


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
        _owner, job.owns_executors, job.found = job, True, job.actuator.target or 0
        return True


def heard(job: Job, made_at: float, now: float) -> None:
    """The autoscaler made a decision or a heartbeat at wall time `made_at`; an old one is no sign of life."""
    with job.lock:
        silent = now - job.heard_at
        job.heard_at = max(job.heard_at, min(made_at, now))
        if job.handed_back and now - job.heard_at <= job.lost_contact_s:
            job.handed_back = False
            log.warning("%s: the autoscaler is heard again after %.0f s; decisions are applied again", job.name, silent)


def watch(job: Job, now: float) -> None:
    """Hand back once when the autoscaler has been silent for `lost_contact_s`.

    The executors become those that were found, that run, or that are still to come by the last decision, whichever is
    most: nobody is there any more to take back a step down.

    Raises:
        tidecast.spark.actuator.ActuatorError: the cluster refused; the next call tries again.
    """
    with job.lock:
        silent = now - job.heard_at
        if job.mode != "act" or job.handed_back or silent <= job.lost_contact_s:
            return
        keep = max(job.found, len(job.actuator.live()), job.actuator.target or 0)
        job.actuator.set_target(keep)
        job.handed_back = True
    log.error(
        "%s: no sign of life of the autoscaler for %.0f s: handed back with %d executors (%d were found). They stay "
        "until it is heard again; Spark's own allocation returns only with a restart of the application. See that "
        "`tidecast autoscale` runs and has a contract for the job.", job.name, silent, keep, job.found,
    )  # fmt: skip
