"""`tidecast backfill`: read a range of a running job's topic again, beside its live records."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from configs.errors import SettingsError
from configs.settings import Settings
from pipelines.cli.options import settings_of_stack
from tidecast.orders import ReplayOrder, ReplayProgress


def backfill(
    job: Annotated[str, typer.Argument(help="A running job whose agent was attached with replay=.")],
    begin: Annotated[str | None, typer.Option("--from", help="First moment of the range, job time, ISO 8601.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="The moment after it.")] = None,
    rps: Annotated[float | None, typer.Option(help="Records per second at most, also if live leaves more.")] = None,
    name: Annotated[str | None, typer.Option(help="Of the replay; by default after the range.")] = None,
    late_s: Annotated[float, typer.Option(help="How late a record may have been produced, wall seconds.")] = 60.0,
    topic: Annotated[str, typer.Option(help="That the job reads, without the prefix.")] = "events",
    table: Annotated[Path | None, typer.Option(help="A table of the topic's records, to read it from.")] = None,
    pause: Annotated[str | None, typer.Option(help="Pause the replay of this name.")] = None,
    resume: Annotated[str | None, typer.Option(help="Go on with it.")] = None,
    cancel: Annotated[str | None, typer.Option(help="Cancel it; what it wrote for itself is removed.")] = None,
    wait: Annotated[bool, typer.Option(help="Follow it to its end; ctrl-C leaves it running.")] = True,
) -> None:
    """Read a range of a running job's topic again, beside its live records and at the rate that these leave.

    The job's driver runs it as a second query in the same application. Without a range and an action: the job's
    replays, and how far they are. Status 1 where the replay failed.

    Raises:
        typer.Exit: 1, as above.
        SettingsError: no moment can be read, only one end of the range or several actions are given (status 2).
        RangeError: the range is empty, in the future, or neither topic nor table holds it (status 2).
        OrderError: no such replay, it is over, or one of this name runs (status 2).
        BrokerError: the broker cannot be reached (status 2).
    """
    from pipelines.backfill.orders import change_order, follow_progress, send_order
    from pipelines.backfill.text import describe_order

    settings = settings_of_stack()
    actions = {"pause": pause, "run": resume, "cancel": cancel}
    asked = [(wanted, target) for wanted, target in actions.items() if target is not None]
    if len(asked) + ((begin or end) is not None) > 1:
        raise SettingsError("give a range, or one of --pause, --resume, --cancel.")
    if asked:
        wanted, target = asked[0]
        order = change_order(settings.kafka, job, target, wanted)
        print(f"{job}: replay {target}: {wanted} is ordered")
        if wanted == "pause":
            return
    elif begin and end:
        order = _order(settings, job, topic, begin, end, late_s, rps, name, table)
        send_order(settings.kafka, order)
        print(describe_order(order))
    elif begin or end:
        raise SettingsError("a range has two ends: give both --from and --to.")
    else:
        _list(settings, job)
        return
    if wait and _follow(follow_progress(settings.kafka, order)) == "failed":
        raise typer.Exit(1)


def _order(
    settings: Settings, job: str, topic: str, begin: str, end: str, late_s: float, rps: float | None, name: str | None,
    table: Path | None,
) -> ReplayOrder:  # fmt: skip
    from pipelines.backfill.orders import OrderError, later_than, read_clock, read_orders
    from pipelines.backfill.tables import find_range
    from tidecast.messages import MessageError, decode, encode

    zone, clock = ZoneInfo(settings.replay.timezone), read_clock(settings.kafka, job)
    moments = [_moment(option, text, zone) for option, text in (("--from", begin), ("--to", end))]
    since, until = moments if clock is None else [clock.wall_at(moment) for moment in moments]
    now = time.time()
    found = find_range(settings.kafka, topic, since, until, late_s, now, table and table.resolve())
    name = name or "-".join(f"{datetime.fromtimestamp(moment, zone):%Y%m%dT%H%M%S}" for moment in moments)
    known = read_orders(settings.kafka, job).get(name)
    if known is not None and known.wanted != "done":
        raise OrderError(f"replay {name!r} of job {job!r} is ordered already: see `tidecast backfill {job}`.")
    order = ReplayOrder(
        name, job, later_than(known), "run", found.starts, found.ends, most_rps=rps, begin_ms=int(moments[0] * 1000),
        end_ms=int(moments[1] * 1000), table=str(table.resolve()) if table else "",
    )  # fmt: skip
    try:
        return decode(ReplayOrder, encode(order))
    except MessageError as error:
        raise OrderError(f"{error}") from None


def _moment(option: str, text: str, zone: ZoneInfo) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(f"{option} {text!r}: a moment as 2026-03-01 or 2026-03-01T10:00 is expected.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()


def _list(settings: Settings, job: str) -> None:
    from pipelines.backfill.orders import newest_progress, read_orders
    from pipelines.backfill.text import describe_order, describe_progress

    said = newest_progress(settings.kafka, job)
    orders = read_orders(settings.kafka, job)
    if not orders:
        print(f"{job}: no replay was ordered; `tidecast backfill {job} --from MOMENT --to MOMENT` orders one")
    for order in orders.values():
        print(describe_order(order))
        print(f"  {describe_progress(said[order.id])}" if order.id in said else "  nothing was said of it yet")


def _follow(said: Iterable[ReplayProgress | None]) -> str:
    """Print lines as the replay goes on, on a terminal in place, and return its last state."""
    from pipelines.backfill.text import describe_progress

    state, tty = "", sys.stdout.isatty()
    try:
        for one in said:
            if one is None:
                print("nothing is heard of the job's agent: does it run, attached with replay=, in mode act?")
                continue
            over = one.state in ("done", "cancelled", "failed")
            if tty or over or one.state != state:
                print(f"\r\033[K{describe_progress(one)}" if tty else describe_progress(one), end="" if tty else "\n")
                sys.stdout.flush()
            state = one.state
    except KeyboardInterrupt:
        print("\nthe replay goes on; ask for it by the same command without a range")
        return state
    if tty:
        print()
    return state
