"""The application of its own in which an order may be read: started by the command of its job's contract."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from configs.contract import load_contract
from configs.errors import FinalError, SettingsError
from configs.settings import Settings
from pipelines.backfill.orders import (
    OrderError,
    change_order,
    newest_progress,
    read_orders,
    read_progress,
    send_order,
)
from pipelines.kafka.broker import Follower
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.signing import Signer
from pipelines.stack.processes import ProcessError, environments_of, spawn
from tidecast.connection.environment import ADDRESS, ORDER, PREFIX, SIGNING_KEY
from tidecast.orders import ReplayOrder, ReplayProgress, later_than, order_key

EARLY_S = 2.0
"""Seconds within which a command that is wrong has ended."""
HEARD_S, POLL_S = 15.0, 1.0
"""Seconds within which an application that runs says something, which it does every five; and of a wait for a word."""
ORDER_TIME = "TIDECAST_ORDER_TIME"
"""Variable of the wall time of the order for which an application was started."""
ENDED = ("paused", "compared", "failed", "cancelled", "done")
"""What an application says last."""


class ApplicationEndedError(FinalError, RuntimeError):
    """The application that is to read an order has ended without saying so; the message says how to go on."""


def give_order(settings: Settings, order: ReplayOrder) -> Path | None:
    """Send an order, and start the application that is to read it, where it is to have one.

    Returns:
        As `start_application`; None also where the live job's agent reads it.

    Raises:
        OrderError, SettingsError: the application cannot be started; then the order is over.
        BrokerError, ValueError, OSError: as `send_order` and `start_application`.
    """
    send_order(settings.kafka, order)
    if order.apart is None:
        return None
    try:
        return start_application(settings, order)
    except (OrderError, SettingsError, BrokerError, OSError):
        send_order(settings.kafka, replace(order, wanted="done", wall_time=later_than(order, time.time())))
        raise


def cancel_order(settings: Settings, job: str, name: str) -> None:
    """Cancel an order; of one that is read apart the application is started, if need be, to remove what it wrote.

    Raises:
        OrderError, BrokerError, ...: as `change_order` and `start_application`.
    """
    order = change_order(settings.kafka, job, name, "cancel")
    if order.apart is not None:
        start_application(settings, order)


def start_application(settings: Settings, order: ReplayOrder) -> Path | None:
    """Start what reads an order apart, unless it runs; it outlives this process, and ends by itself.

    Args:
        settings: of the job's stack; the application is told broker, prefix and signing key in its environment.
        order: that was sent.

    Returns:
        The file of its output, `log/<job>.replays.log` under `var`; None where it runs: a process of this computer that
        has its environment, or one elsewhere that speaks within HEARD_S, for which it waits.

    Raises:
        OrderError: the job's contract has no such application any more, or its command cannot be started.
        SettingsError: the contract is wrong, or the job has none.
        BrokerError, ValueError: the topic of what is said of replays cannot be read.
        OSError: the log cannot be written.
    """
    assert order.apart is not None
    kafka, log = settings.kafka, settings.var_dir / "log" / f"{order.job}.replays.log"
    if _runs(settings, order, newest_progress(kafka, order.job).get(order.id)):
        return None
    stated = load_contract(order.job, settings.contracts_dir).backpressure
    if stated is None or stated.apart is None:
        raise OrderError(
            f"replay {order.id!r} of job {order.job!r} is read in an application of its own, and {order.job}.yaml "
            "has no backpressure.apart any more: state it until the replay is over"
        )
    secret = Signer.of(kafka).keys_of(order.job)
    told = _told(settings, order) | {ORDER_TIME: repr(order.wall_time)}
    env = os.environ | told | ({} if secret is None else {SIGNING_KEY: secret})
    try:
        begun = spawn(f"application of replay {order.id}", stated.apart.argv(order.apart), env, log, append=True)
        with suppress(subprocess.TimeoutExpired):
            if status := begun.wait(EARLY_S):
                raise ProcessError(f"{begun.name} ended at once with status {status}. {begun.last_lines()}")
    except ProcessError as error:
        raise OrderError(f"{error}. It stands in {order.job}.yaml, backpressure.apart.command") from None
    return log


def runs_here(settings: Settings, order: ReplayOrder) -> bool:
    """Return whether the application that reads an order apart is a process of this computer."""
    return any(environments_of(_told(settings, order)))


def refuse_ended(settings: Settings, order: ReplayOrder, silent_s: float, starts: bool) -> bool:
    """Refuse to wait on for the application that reads an order apart, where it has ended without a last word.

    Args:
        settings: of the job's stack.
        order: that is followed; what was ordered of its replay since counts.
        silent_s: for which nothing was heard of it.
        starts: whether it may still be starting, on whatever computer: then it is not looked for.

    Returns:
        Whether the order rests, paused or over: nothing is to be heard of it.

    Raises:
        ApplicationEndedError: it does not run on this computer, and says nothing elsewhere.
        BrokerError, ValueError: a topic cannot be read.
    """
    order = read_orders(settings.kafka, order.job).get(order.id, order)
    last = newest_progress(settings.kafka, order.job).get(order.id)
    said_last = last is not None and last.answers(order) and last.state in ENDED
    if said_last or order.wanted in ("pause", "done"):
        return True
    if starts or _runs(settings, order, last):
        return False
    remedy = f"`tidecast backfill {order.job} --cancel {order.id}` removes what it wrote"
    if order.wanted != "cancel":
        remedy = f"`tidecast backfill {order.job} --resume {order.id}` goes on where it stopped, {remedy}"
    raise ApplicationEndedError(
        f"the application that reads backfill {order.id} of job {order.job} has ended without a last word, as where it "
        f"was killed: nothing was heard of it for {silent_s:.0f} s. {remedy}. "
        f"Its output is in log/{order.job}.replays.log under `var`, where it was started."
    )


def _told(settings: Settings, order: ReplayOrder) -> dict[str, str]:
    """What the environment of an order's application holds, and of no other."""
    kafka = settings.kafka
    return {ADDRESS: kafka.bootstrap or "", PREFIX: kafka.prefix, ORDER: order_key(order.job, order.id)}


def _runs(settings: Settings, order: ReplayOrder, last: ReplayProgress | None) -> bool:
    """Whether an application runs that reads an order, or is to: here, or where it speaks within HEARD_S.

    While Spark starts nothing is said yet; one that has said its last word ends, and meets no order any more.
    """
    here = environments_of(_told(settings, order))
    return any(_is_to_read(order, begun, last) for begun in here) or _still_speaks(settings, order, last)


def _is_to_read(order: ReplayOrder, begun: Mapping[str, str], last: ReplayProgress | None) -> bool:
    """Whether an application that runs with an environment reads an order, or is to: its last word is not said yet.

    What came first is told by the orders' times, which rise whatever is done to clocks.
    """
    for_order = replace(order, wall_time=float(begun.get(ORDER_TIME, 0.0)))
    return last is None or last.state not in ENDED or not last.answers(for_order)


def _still_speaks(settings: Settings, order: ReplayOrder, first: ReplayProgress | None) -> bool:
    """Whether an application says something new; how old its last word is only a clock of another computer tells."""
    if first is None or first.state in ENDED:
        return False
    with closing(Follower(settings.kafka, ["replays"], start="latest")) as follower:
        said = newest_progress(settings.kafka, order.job)[order.id]  # once more: what came before the follower began
        until = time.monotonic() + HEARD_S
        while said == first and time.monotonic() < until:
            for record in follower.poll(POLL_S):
                new = read_progress(order.job, record.key, record.value)
                said = new if new is not None and new.id == order.id else said
    return said != first and said.state not in ENDED
