"""`tidecast backfill`: read a range of a running job's topic again, beside its live records."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from configs.errors import SettingsError
from configs.settings import Settings
from pipelines.cli.options import checked_job, settings_of_stack
from tidecast.orders import ReplayOrder

if TYPE_CHECKING:
    from pipelines.backfill.follow import FollowedOrder
    from pipelines.backfill.ordering import AskedRange


def backfill(
    job: Annotated[
        str, typer.Argument(help="A running job whose agent was attached with replay=.", callback=checked_job)
    ],
    begin: Annotated[str | None, typer.Option("--from", help="First moment of the range, job time, ISO 8601.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="The moment after it.")] = None,
    by: Annotated[str | None, typer.Option(help="Be done by then: 07:00, or a date; the job's own time.")] = None,
    sure: Annotated[float | None, typer.Option(help="Probability of --by; 0.9 unless given.")] = None,
    rps: Annotated[float | None, typer.Option(help="Records per second at most, also if live leaves more.")] = None,
    weight: Annotated[
        float | None, typer.Option(min=0.001, help="Share among replays that run at once; 1, or what --by needs.")
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Say what would change, and publish nothing yet.")] = False,
    name: Annotated[str | None, typer.Option(help="Name of the replay; by default made of the range.")] = None,
    late_s: Annotated[
        float | None,
        typer.Option(help="How late a record may have been produced, wall seconds; as late as the job takes them."),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(help="Topic of the job, once for each or with commas; by default `events` with the prefix."),
    ] = None,
    table: Annotated[Path | None, typer.Option(help="A table of the topic's records, to read it from.")] = None,
    pause: Annotated[str | None, typer.Option(help="Pause the replay of this name.")] = None,
    resume: Annotated[str | None, typer.Option(help="Go on with it.")] = None,
    cancel: Annotated[str | None, typer.Option(help="Cancel it; what it wrote for itself is removed.")] = None,
    publish: Annotated[str | None, typer.Option(help="Publish it, where it was compared.")] = None,
    wait: Annotated[bool, typer.Option(help="Follow it to its end; ctrl-C leaves it running.")] = True,
) -> None:
    """Read a range of a running job's topic again, beside its live records and at the rate that these leave.

    The job's driver runs it as a second query in the same application. With --by the cheapest executors beside the live
    job's are planned that have it done in time, and planned anew while the command follows it; or an application of
    its own is started, where the contract has a command for one and that is cheaper. Without a range and an action: the
    job's replays, and how far they are. Status 1 where the replay failed.

    Raises:
        typer.Exit: 1, as above.
        SettingsError: options that do not go together, a moment that cannot be read, no contract, no name of a job
            (status 2).
        RangeError: the range is empty, in the future, or neither topic nor table holds it (status 2).
        OrderError: no such replay, it is over, or one of this name or range stands (status 2).
        BackfillPlanError: the deadline cannot be planned or met; the message says which can (status 2).
        ApplicationEndedError: what reads it apart has ended without a last word; the message says how to go on (2).
        BrokerError: the broker cannot be reached (status 2).
    """
    from pipelines.backfill.application import start_application
    from pipelines.backfill.follow import follow_order
    from pipelines.backfill.ordering import AskedRange, publish_order
    from pipelines.backfill.orders import change_order

    settings = settings_of_stack()
    actions = {"pause": pause, "run": resume, "cancel": cancel, "publish": publish}
    asked = [(wanted, target) for wanted, target in actions.items() if target is not None]
    ranged = (begin or end) is not None
    if len(asked) + ranged > 1:
        raise SettingsError("give a range, or one of --pause, --resume, --cancel, --publish.")
    of_new = {
        "--by": by, "--sure": sure, "--rps": rps, "--weight": weight, "--compare": compare or None, "--name": name,
        "--late-s": late_s, "--topic": topic or None, "--table": table,
    }  # fmt: skip
    if not ranged and (given := [option for option, value in of_new.items() if value is not None]):
        raise SettingsError(f"{', '.join(given)}: of a new replay; give its range, --from and --to.")
    if sure is not None and by is None:
        raise SettingsError("--sure says how surely a deadline is kept: give one, --by.")
    if asked:
        wanted, target = asked[0]
        if wanted == "publish":
            order = publish_order(settings, job, target)
        else:
            order = change_order(settings.kafka, job, target, wanted)
        print(f"{job}: ordered to {'resume' if wanted == 'run' else wanted} the replay {target}")
        if wanted == "pause":
            return
        if order.apart is not None:
            _say_started(start_application(settings, order))
    elif begin and end:
        asked_range = AskedRange(job, begin, end, tuple(topic or ()), late_s, rps, name, compare, table, weight)
        order = _ordered(settings, asked_range, by, sure)
    elif begin or end:
        raise SettingsError("a range has two ends: give both --from and --to.")
    else:
        _list(settings, job)
        return
    if wait and _follow(follow_order(settings, order)) == "failed":
        raise typer.Exit(1)


def _ordered(settings: Settings, asked: AskedRange, by: str | None, sure: float | None) -> ReplayOrder:
    """Order a range, by a deadline if there is one, and say so."""
    from models.backfill.plan import SURE
    from pipelines.backfill.application import give_order
    from pipelines.backfill.ordering import make_order, plan_by
    from pipelines.backfill.text import describe_order

    order, sentence = make_order(settings, asked), ""
    if by is not None:
        planned = plan_by(settings, order, by, SURE if sure is None else sure)
        order, sentence = planned.order, planned.sentence
    log = give_order(settings, order)
    print(describe_order(order))
    if sentence:
        print(sentence)
    _say_started(log)
    return order


def _say_started(log: Path | None) -> None:
    if log is not None:
        print(f"its application is started; what it says is in {log}")


def _list(settings: Settings, job: str) -> None:
    from pipelines.backfill.orders import newest_progress, read_orders, standing_progress
    from pipelines.backfill.text import describe_order, describe_progress

    told = newest_progress(settings.kafka, job)
    orders = read_orders(settings.kafka, job)
    if not orders:
        print(f"{job}: no replay was ordered; `tidecast backfill {job} --from MOMENT --to MOMENT` orders one")
    for order in orders.values():
        print(describe_order(order))
        said = standing_progress(order, told.get(order.id))
        unsaid = "it is over" if order.wanted == "done" else "nothing was said of it yet"
        print(f"  {unsaid if said is None else describe_progress(said)}")


def _follow(news: Iterable[FollowedOrder]) -> str:
    """Print lines as the replay goes on, on a terminal in place, and return its last state."""
    from pipelines.backfill.orders import has_ended
    from pipelines.backfill.text import describe_followed

    state, finish, tty = "", "", sys.stdout.isatty()
    try:
        for new in news:
            line = describe_followed(new)
            if new.said is None:
                print(f"\r\033[K{line}" if tty else line, flush=True)
                continue
            over = has_ended(new.said) or new.said.state == "compared"
            if tty and not over:
                print(f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}", end="", flush=True)
            elif over or new.said.state != state or new.finish != finish:
                print(f"\r\033[K{line}" if tty else line, flush=True)
            state, finish = new.said.state, new.finish
    except KeyboardInterrupt:
        print("\nthe replay goes on; ask for it by the same command without a range")
    return state
