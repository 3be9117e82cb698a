"""What an acting agent does when the autoscaler falls silent: it hands back, and takes over again with life."""

from __future__ import annotations

import logging

from tidecast.job import Job

log = logging.getLogger("tidecast")


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
