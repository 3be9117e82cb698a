"""Switching an agent between observing, acting and freezing, and handing back when the autoscaler falls silent."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from tidecast.job import Job, PendingMode
from tidecast.spark.actuator import ActuatorError

log = logging.getLogger("tidecast")

NARROWEST_FIRST = ("observe", "freeze", "act")
"""Modes, the narrowest first, by what an agent may change in the application."""
AGAIN_S = 10.0
"""Seconds after which a mode that is not reached is tried again."""


def apply_control_mode(job: Job, requested: str | None) -> None:
    """Switch to the mode that a control message asks for, or, where that is wider, to the mode given to `attach`.

    Modes from narrow to wide: observe, freeze, act. A request that is not met, or narrows the mode, is logged. See
    `switch_mode` for when the mode stays as it is.

    Args:
        job: state of the agent.
        requested: mode in the newest control message; None without one, for the mode given to `attach`.

    Raises:
        ValueError: there is no such mode.
        py4j.protocol.Py4JError: Spark's JVM does not answer.
    """
    mode = min(job.widest_mode, requested or job.widest_mode, key=NARROWEST_FIRST.index)
    if requested is not None and requested != mode:
        log.warning(
            '%s: the word "%s" on topic control is not obeyed, the agent was attached to %s at most; for more, restart '
            'it with attach(..., mode="%s")', job.name, requested, job.widest_mode, requested,
        )  # fmt: skip
    elif mode != job.widest_mode:
        log.warning(
            '%s: the word "%s" on topic control holds, though the agent was attached to %s; '
            "`tidecast job mode %s %s` ends that", job.name, mode, job.widest_mode, job.name, job.widest_mode,
        )  # fmt: skip
    switch_mode(job, mode)


def switch_mode(job: Job, mode: str) -> None:
    """Change the agent's mode; "act" and "freeze" first take the number of executors over from Spark's allocation.

    That stops Spark's dynamic allocation until the application ends, also if the mode is "observe" again later. Where
    the cluster refuses, the mode stays, the log says why, and `retry_mode` tries again: nobody else scales then. Agents
    of several queries of an application may do it: each has executors of its own then (`tidecast.spark.allotment`). An
    agent that ends stays as it is.

    Raises:
        KeyError: there is no such mode.
        py4j.protocol.Py4JError: Spark's JVM does not answer; `retry_mode` tries again.
    """
    with job.lock:
        if job.stop.is_set():
            return  # the job's next agent may have the executors by now
        refusal = job.pending.refusal if job.pending is not None else ""
        job.pending = PendingMode(mode, time.monotonic(), refusal)
        if mode not in ("observe", job.mode) and not job.owns_executors and not _take_over(job, job.pending):
            return
        job.pending = None
        if mode == job.mode:
            return
        log.warning("%s: mode %s -> %s%s", job.name, job.mode, mode, _MEANING[mode])
        job.mode, job.heard_at, job.handed_back = mode, time.monotonic(), False
        if mode != "act":
            job.decide_nothing()
        job.actuator.rest(mode != "act")


_MEANING = {
    "observe": ": decisions are recommendations only",
    "act": ": decisions are applied, Spark's own executor allocation is off until the application ends",
    "freeze": ": the executors stay as they are, whatever is decided",
}


def retry_mode(job: Job) -> None:
    """Try again for the mode that is pending, if there is one, AGAIN_S (10 s) after it was tried last.

    Raises:
        py4j.protocol.Py4JError: Spark's JVM does not answer; a later call tries again.
    """
    pending = job.pending
    if pending is not None and time.monotonic() - pending.tried_s > AGAIN_S:
        switch_mode(job, pending.mode)


def _take_over(job: Job, pending: PendingMode) -> bool:
    try:
        job.actuator.take_over(job.limits.least)
    except ActuatorError as error:
        if f"{error}" != pending.refusal:
            log.error("%s: cannot act, observing until it can; tried every %.0f s: %s", job.name, AGAIN_S, error)
        job.pending = replace(pending, refusal=f"{error}")
        return False
    job.owns_executors, job.executors_at_takeover = True, job.actuator.target or 0
    job.seen = replace(job.seen, taken_over_at=time.time())
    allowed, enough = job.actuator.failures_allowed(), 2 * job.limits.most
    if allowed is not None and allowed < enough:
        log.warning(
            "%s: Spark ends the application once %d executors have failed, by the number it was started with; for up "
            "to %d start it with spark.executor.maxNumFailures=%d and spark.executor.failuresValidityInterval=1h",
            job.name, allowed, job.limits.most, enough,
        )  # fmt: skip
    return True


def note_contact(job: Job, age_s: float) -> None:
    """Note that the autoscaler lives: a decision or heartbeat of it was sent so many seconds ago.

    If the newest contact is at most `lost_contact_s` old, `hand_back_if_silent` may hand back once more.
    """
    with job.lock:
        now = time.monotonic()
        silent_s = now - job.heard_at
        job.heard_at = max(job.heard_at, now - max(age_s, 0.0))  # one from the future is of another clock
        if job.handed_back and job.heard:
            job.handed_back = False
            log.warning(
                "%s: the autoscaler is heard again after %.0f s; decisions are applied again", job.name, silent_s
            )


def hand_back_if_silent(job: Job, now: float) -> None:
    """In mode "act", ask once for safely many executors when the autoscaler is silent for over `lost_contact_s` s.

    Silent: no decision or heartbeat. Safely many: the most of those at takeover, those that run and those decided last.
    Mode and later decisions stay in force. `now` is the steady clock's, seconds.

    Raises:
        tidecast.spark.actuator.ActuatorError: the cluster refused; the next call tries again.
        py4j.protocol.Py4JError: Spark's JVM does not answer; the next call tries again.
    """
    with job.lock:
        silent_s = now - job.heard_at
        if job.mode != "act" or job.handed_back or silent_s <= job.lost_contact_s:
            return
        keep = max(job.executors_at_takeover, len(job.actuator.live()), job.actuator.target or 0)
        job.actuator.set_target(keep)
        job.handed_back = True
    log.error(
        "%s: no sign of life of the autoscaler for %.0f s: handed back with %d executors (%d were found). They stay "
        "until it is heard again; Spark's own allocation returns only with a restart of the application. See that "
        "`tidecast autoscale` runs and has a contract for the job.",
        job.name, silent_s, keep, job.executors_at_takeover,
    )  # fmt: skip
