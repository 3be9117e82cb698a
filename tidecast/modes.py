"""Switching an agent between observing, acting and freezing, and handing back when the autoscaler falls silent."""

from __future__ import annotations

import logging
import threading
import time

from tidecast.job import Job
from tidecast.spark.actuator import ActuatorError

log = logging.getLogger("tidecast")

WIDTH = ("observe", "freeze", "act")
"""Modes, the narrowest first, by what an agent may change in the application."""
_owner: Job | None = None
_owner_lock = threading.Lock()


def obey(job: Job, word: str | None) -> None:
    """Switch to the mode that a control message asks for, but never to a wider one than `attach` allowed.

    A kept message outlives the code that it was meant for: it may narrow the mode, no more; asking for more is logged.
    None means that there is no message, so the mode of `attach` applies.
    """
    mode = min(job.granted, word or job.granted, key=WIDTH.index)
    if word is not None and word != mode:
        log.warning(
            '%s: the word "%s" on topic control is not obeyed, the agent was attached to %s at most; for more, restart '
            'it with attach(..., mode="%s")', job.name, word, job.granted, word,
        )  # fmt: skip
    switch(job, mode)


def switch(job: Job, mode: str) -> None:
    """Change the job's mode; for `act` and `freeze` take over the application's executor target first.

    Only one agent per process (a driver runs one application) may own the target. An agent that cannot take it over,
    because another owns it or the cluster refuses, keeps its mode and logs why. Switching off again does not give Spark
    its own allocation back.
    """
    with job.lock:
        if mode == job.mode or (mode != "observe" and not job.owns_executors and not _own(job)):
            return
        log.warning("%s: mode %s -> %s%s", job.name, job.mode, mode, _MEANING[mode])
        job.mode, job.heard_at, job.handed_back = mode, time.time(), False


def release(job: Job) -> None:
    """Give up ownership of the executor target, if this job has it, so that another query's agent may act."""
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
    """Note a sign of life of the autoscaler (a decision or heartbeat), made at wall time `made_at`, epoch seconds.

    If the agent had handed back and the sign is at most `lost_contact_s` old, decisions are applied again. A sign older
    than the last changes nothing.
    """
    with job.lock:
        silent = now - job.heard_at
        job.heard_at = max(job.heard_at, min(made_at, now))
        if job.handed_back and now - job.heard_at <= job.lost_contact_s:
            job.handed_back = False
            log.warning("%s: the autoscaler is heard again after %.0f s; decisions are applied again", job.name, silent)


def watch(job: Job, now: float) -> None:
    """In mode `act`, hand the executors back once the autoscaler has been silent for more than `lost_contact_s`.

    The executors are set to the most of those found at the start, those that run and those last decided, because nobody
    is there to correct a step down. `now` is wall time, epoch seconds.

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
