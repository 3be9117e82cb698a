"""What the DAG `backfill` calls: a plan, its order, and the order followed to its end."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from configs.errors import FinalError
from configs.settings import Settings, load
from pipelines.backfill.application import cancel_order, give_order, start_application
from pipelines.backfill.follow import follow_order
from pipelines.backfill.ordering import AskedRange, CheapestOrder, make_order, plan_by
from pipelines.backfill.orders import OrderError, newest_progress, read_orders
from pipelines.backfill.stated import read_stated, zone_of
from pipelines.backfill.text import describe_followed
from tidecast.orders import ReplayOrder

DEARER = 1.1
"""How many times what a person has approved an order may cost when it is given; unasked, it is what the form allows."""


class BackfillRunError(FinalError, RuntimeError):
    """A backfill that was ordered by a DAG run and did not come to its end, or may not be ordered; says why."""


def plan(form: dict[str, Any]) -> dict[str, Any]:
    """Plan a backfill; nothing is ordered.

    Args:
        form: job, begin, end, by, sure; and maybe topic (several with commas), table, late_s, compare, weight and
            most_hours, executor-hours that nobody need be asked for.

    Returns:
        `sentence`, the plan in words; `hours`, executor-hours that it is expected to cost beside the live job; `ask`,
        whether that is more than `most_hours`; `by`, the instant that the deadline means, ISO 8601 with its offset.

    Raises:
        CorrectableError: as `make_order` and `plan_by` raise it.
    """
    settings = load()
    found = _planned(settings, form, form["by"])
    assert found.order.by is not None
    zone = ZoneInfo(zone_of(read_stated(settings, form["job"]), settings))
    by = datetime.fromtimestamp(found.order.by, zone).isoformat()
    return {"sentence": found.sentence, "hours": found.hours, "ask": found.hours > _bound(form), "by": by}


def order(form: dict[str, Any], planned: dict[str, Any], run: str) -> str:
    """Plan it again, as time has passed, order it, and return its name; or that of what the run has ordered already.

    So that a task whose process died once the order was sent goes on with that one. Also one that is done is not given
    again, whereas one that was cancelled is.

    Args:
        form: as for `plan`.
        planned: what that returned; of an older release without `by`, which is read from the form again then.
        run: id of the DAG's run; a part of the order's name follows from it.

    Raises:
        BackfillRunError: it costs more now than was approved or, where nobody was asked, than the form allows.
        BackfillPlanError: its deadline has passed meanwhile; or as `plan`.
        OrderError: it is to have an application of its own, which cannot be started.
        CorrectableError: as `plan`.
    """
    settings, job = load(), form["job"]
    if (before := _ordered_by(run, settings, job)) is not None and _goes_on(before, settings):
        with _cancelled_when_ended(job, before.id):
            if before.apart is not None and before.wanted == "run":
                start_application(settings, before)
        print(f"{job}: backfill {before.id} was ordered by this run before, and is gone on with")
        return before.id
    # "07:00" was read when it was planned: read again after that, as once it is approved, it would be tomorrow's.
    found = _planned(settings, form, planned.get("by", form["by"]), mark_of(run))
    hours, allowed = found.hours, DEARER * planned["hours"] if planned["ask"] else _bound(form)
    if hours > allowed:
        raise BackfillRunError(
            f"the plan costs {hours:.2g} executor-hours now, {allowed:.2g} were allowed: {found.sentence}. Begin "
            "another run, or allow more"
        )
    with _cancelled_when_ended(found.order.job, found.order.id):
        if (log := give_order(settings, found.order)) is not None:
            print(f"its application is started; what it says is in {log}")
    print(f"{found.order.job}: backfill {found.order.id}: {found.sentence}")
    return found.order.id


def follow(job: str, name: str) -> dict[str, Any]:
    """Follow an order to its end, planning it anew as things come; if this task is ended, that order is cancelled.

    Returns:
        `state` of it, done or compared, and its `records`.

    Raises:
        BackfillRunError: it failed or was cancelled, with the reason; or it is no more among the job's orders.
        ApplicationEndedError: what reads it apart has ended without a last word.
        BrokerError: the broker cannot be reached.
    """
    settings, state = load(), "done"
    with _cancelled_when_ended(job, name):
        known = read_orders(settings.kafka, job).get(name)
        if known is None:
            raise BackfillRunError(
                f"backfill {name} of job {job} is not among its orders on topic control, as where that was made anew: "
                "order its range again"
            )
        if known.wanted == "done":  # a task that is tried again
            said = newest_progress(settings.kafka, job).get(name)
            if said is None or said.state != "done":
                raise BackfillRunError(f"backfill {name} of job {job} is over, and not done: order its range again")
            return {"state": "done", "records": known.records}
        for new in follow_order(settings, known):
            print(describe_followed(new))
            state = state if new.said is None else new.said.state
            if new.said is not None and state in ("failed", "cancelled"):
                raise BackfillRunError(f"backfill {name} of job {job} is {state}: {new.said.reason}")
    return {"state": state, "records": known.records}


def end_run(
    job: str, name: str | None, states: Mapping[str, str], followed: dict[str, Any] | None, failed: bool, run: str
) -> None:
    """End a run: cancel its order if it was ended before that was followed to an end; fail unless it ended well.

    Args:
        job: of the order.
        name: of the order; None: the run has given none, or its task has died before it could say so.
        states: of the run's tasks, as Airflow names them.
        followed: what `follow` returned; None where it did not come to that, also if a person set it to success.
        failed: whether following has failed by itself: then the order stays for whoever looks why.
        run: id of the DAG's run.

    Raises:
        BackfillRunError: the run was ended, or a task has failed; the message says whether its order is cancelled.
        BrokerError: the broker cannot be reached.
    """
    rejected = states.get("approve") == "success" and states.get("order") == "skipped"
    if (states.get("follow") == "success" and followed is not None) or rejected:
        return
    if not failed and states.get("order") != "upstream_failed":
        settings = load()
        known = _ordered_by(run, settings, job) if name is None else read_orders(settings.kafka, job).get(name)
        if known is not None and known.wanted in ("run", "pause"):
            cancel_order(settings, job, known.id)
            raise BackfillRunError(f"backfill {known.id} of job {job} is cancelled, because its run was ended")
    raise BackfillRunError("the run has not come to its end: a task before this one says why, or somebody ended it")


def mark_of(run: str) -> str:
    """Return the end of the name of the order that a DAG's run gives, by the run's id."""
    return hashlib.blake2s(run.encode(), digest_size=4).hexdigest()


def _ordered_by(run: str, settings: Settings, job: str) -> ReplayOrder | None:
    ending = f"-{mark_of(run)}"
    return next((one for name, one in read_orders(settings.kafka, job).items() if name.endswith(ending)), None)


def _goes_on(before: ReplayOrder, settings: Settings) -> bool:
    """Whether nothing is to be ordered in its place; one that is being cancelled stands in the way until it is."""
    if before.wanted != "done":
        return before.wanted != "cancel"
    said = newest_progress(settings.kafka, before.job).get(before.id)
    return said is not None and said.state == "done"


def _planned(settings: Settings, form: dict[str, Any], by: str, mark: str = "") -> CheapestOrder:
    topics = (form["topic"],) if (form["topic"] or "").strip() else ()
    asked = AskedRange(
        form["job"], form["begin"], form["end"], topics, form.get("late_s"), compare=form.get("compare", False),
        table=Path(form["table"]) if form.get("table") else None, weight=form.get("weight"), mark=mark,
    )  # fmt: skip
    return plan_by(settings, make_order(settings, asked), by, form["sure"])


def _bound(form: dict[str, Any]) -> float:
    most = form.get("most_hours")
    return float("inf") if most is None else float(most)


class _Ended(BaseException):
    """The task is ended; whoever handles the errors of a client lets it pass."""


@contextmanager
def _cancelled_when_ended(job: str, name: str) -> Iterator[None]:
    """Airflow ends a task whose run is set to failed by SIGTERM: then this order, and no other, is cancelled."""

    def end(*_: object) -> None:
        raise _Ended

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except _Ended:
        with suppress(OrderError):  # it is over, or was not given yet
            cancel_order(load(), job, name)
        raise BackfillRunError(f"backfill {name} of job {job} is cancelled, because its task was ended") from None
    finally:
        signal.signal(signal.SIGTERM, before)
