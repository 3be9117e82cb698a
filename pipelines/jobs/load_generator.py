"""The load generator: replays a trace into `events` on schedule, and records what it produced (the truth of a run).

`python -m pipelines.jobs.load_generator --run-dir DIR` announces the replay's clock on `control`, produces, waits until
everything is acknowledged and leaves in DIR:

- `truth.json`: see `replay`, which returns its content;
- `produced.csv`: wall second since `wall_start`, records produced in it;
- `produced.npz`: partition, offset, produced_at (epoch seconds) and late of every acknowledged record of the replay.

`--warm-up` instead sends 6 records to every partition, so that the first real batch does not meet a cold job; they are
kept in `warmup.json` and counted in the truth. SIGTERM ends a replay early; the truth is written all the same.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from configs.contract import jobs_with_contract
from configs.errors import SettingsError
from configs.sections import Replay
from configs.settings import Settings, load
from pipelines.jobs.events import LoadEvent, encode_event
from pipelines.jobs.replay import ReplayPlan, plan_replay
from pipelines.jobs.truth import read_warm_up, true_windows, write_truth, write_warm_up
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.compression import NONE, chosen_codec
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.publisher import Publisher
from pipelines.signals import event_of_signals
from pipelines.stack.state import with_stack_addresses
from pipelines.traces.trace import Trace, TraceError, load_past_trace, load_trace
from tidecast.messages import Control

HEAD_START_S = 1.0  # the clock is announced so long before the first record, so that every agent knows it by then
_TICK_S, _LINGER_MS = 0.1, 20  # records that are due together travel together: a third of the CPU of one by one
_OUTAGE_MS = 300_000
_ACKNOWLEDGE_S = 120.0
_WARM_UP_SEQ = 1_000_000_000
_WARM_UP_ROUNDS, _WARM_UP_PAUSE_S, _WARM_UP_RECORDS = 3, 1.5, 2

Sent = list[tuple[LoadEvent, Any]]
"""Events with the client's futures of partition and offset."""


def replay(settings: Settings, run_dir: Path, stop: threading.Event) -> dict[str, Any]:
    """Send the live part of the trace to `events` in wall time, then write and return what was sent (the run's truth).

    Blocks for the whole replay, and up to 120 s for acknowledgements. Announces the replay's clock on `control` to
    every job with a contract 1 s before the first record. Records that fall behind are sent at once; `stop` ends it
    early, with the truth of what was sent.

    Args:
        settings: trace, broker and contracts (YAML of each job's latency target and executor bounds).
        run_dir: existing folder; gets `truth.json`, `produced.csv`, `produced.npz`; its `warmup.json` is counted too.
        stop: set from elsewhere.

    Returns:
        The content of `truth.json`, numbers of records: `produced` (acknowledged, warm-up included), `warm_up`, `late`
        (acknowledged, produced after they happened), `withheld` (of these, when their windows were final), `planned`,
        `unacknowledged`; `wall_start`, `wall_end` (epoch seconds); `windows`: as `true_windows`.

    Raises:
        TraceError: the trace cannot be used, or its live part ends in the future.
        BrokerError: no broker, no topic `events`, the clock was not acknowledged within 120 s, or a record not queued
            within 5 minutes.
        ValueError: `warmup.json` is no JSON, or kafka-python has no such security option.
        OSError: `warmup.json` cannot be read or the truth not written.
    """
    trace = load_past_trace(settings.replay)
    plan = plan_replay(trace, settings.replay)
    publisher, partitions = _publisher(settings)
    wall_start = time.time() + HEAD_START_S
    _announce(publisher, settings, trace, wall_start)
    sent, produced_at = _produce(publisher, plan, trace, settings.replay, partitions, wall_start, stop)
    wall_end = time.time()
    good, warm = _acknowledged(sent), read_warm_up(run_dir)
    taken, late = list(compress(sent, good)), plan.late[: len(sent)][good]
    events, withheld = [event for event, _ in taken], plan.withheld[: len(sent)][good]
    truth = {
        "produced": len(taken) + len(warm), "warm_up": len(warm), "late": int(late.sum()),
        "withheld": int(withheld.sum()), "planned": len(plan), "unacknowledged": int((~good).sum()),
        "wall_start": wall_start, "wall_end": wall_end,
        "windows": true_windows([*compress(events, ~withheld), *warm], compress(events, withheld)),
    }  # fmt: skip
    write_truth(run_dir, truth, [future.value for _, future in taken], produced_at[good], late)
    return truth


def warm_up(settings: Settings, run_dir: Path) -> int:
    """Send 6 records to each partition of `events`, in 3 rounds 1.5 s apart; return how many were acknowledged.

    They are appended to `warmup.json` in `run_dir` (must exist); their sequence numbers begin at a billion. Waits up to
    120 s for acknowledgements; records without one are not counted.

    Raises:
        TraceError: the trace, whose live start is the records' time, cannot be used.
        BrokerError: no broker, no topic `events`, or a record could not be queued within 5 minutes.
        ValueError: `warmup.json` is no JSON, or kafka-python has no such security option.
        OSError: `warmup.json` cannot be read or written.
    """
    earlier = read_warm_up(run_dir)
    time_of_all = load_trace(settings.replay).live_start
    publisher, partitions = _publisher(settings)
    sent: Sent = []
    for turn in range(_WARM_UP_ROUNDS):
        for partition in partitions * _WARM_UP_RECORDS:
            seq = _WARM_UP_SEQ + len(earlier) + len(sent)
            event = LoadEvent(seq, time_of_all, key_name(seq % settings.replay.keys))
            sent.append(_send(publisher, event, partition, time.time()))
        if turn + 1 < _WARM_UP_ROUNDS:
            time.sleep(_WARM_UP_PAUSE_S)
    taken = [event for event, _ in compress(sent, _acknowledged(sent))]
    write_warm_up(run_dir, earlier + taken)
    return len(taken)


def key_name(index: int) -> str:
    """Return the key of rank `index` (0 is the most frequent), e.g. "key-007"."""
    return f"key-{index:03d}"


def _publisher(settings: Settings) -> tuple[Publisher, list[int]]:
    """Idempotent and patient: a broker that is away for minutes neither loses nor doubles a record; its partitions."""
    codec = chosen_codec(settings.kafka, "events", "gzip")
    print(f"load generator: records of events are compressed by {codec.name}: {codec.why}", flush=True)
    partitions = sorted(topic_offsets(settings.kafka, "events"))
    return Publisher(
        settings.kafka, delivery_timeout_ms=_OUTAGE_MS, max_block_ms=_OUTAGE_MS, linger_ms=_LINGER_MS,
        compression_type=None if codec.name == NONE else codec.name, enable_idempotence=True,
    ), partitions  # fmt: skip


def _announce(publisher: Publisher, settings: Settings, trace: Trace, wall_start: float) -> None:
    """Tell the agent of every job that a contract knows which trace time it is: they all may read these events."""
    scale = settings.replay.speed
    for job in sorted({settings.job.name, *jobs_with_contract(settings.contracts_dir)}):
        clock = Control(job, time.time(), wall_start=wall_start, trace_start=trace.live_start, time_scale=scale)
        publisher.send("control", f"{job}:clock", clock)
    publisher.flush()


def _produce(
    publisher: Publisher, plan: ReplayPlan, trace: Trace, settings: Replay, partitions: list[int], wall_start: float,
    stop: threading.Event,
) -> tuple[Sent, NDArray[np.float64]]:  # fmt: skip
    """Send every record when it is due; a slow moment is caught up, never skipped. Returns what was sent, and when."""
    event_times = trace.live_start + plan.event_at * settings.speed
    names = [key_name(index) for index in range(settings.keys)]
    produced_at = np.empty(len(plan))
    sent: Sent = []
    while len(sent) < len(plan) and not stop.is_set():
        due = int(np.searchsorted(plan.send_at, time.time() - wall_start, side="right"))
        for i in range(len(sent), due):
            produced_at[i] = now = time.time()
            event = LoadEvent(int(plan.seq[i]), round(float(event_times[i]), 3), names[plan.key[i]])
            # Spread evenly, not by key: the skew of the keys meets the job where it groups, not where it reads.
            sent.append(_send(publisher, event, partitions[i % len(partitions)], now))
        stop.wait(_TICK_S)
    return sent, produced_at[: len(sent)]


def _send(publisher: Publisher, event: LoadEvent, partition: int, now: float) -> tuple[LoadEvent, Any]:
    value = encode_event(event)
    return event, publisher.send_bytes("events", event.key.encode(), value, partition=partition, timestamp_s=now)


def _acknowledged(sent: Sent) -> NDArray[np.bool_]:
    """Which records the broker has confirmed; waits for those under way."""
    deadline = time.monotonic() + _ACKNOWLEDGE_S
    for _, future in sent:
        while not future.is_done and time.monotonic() < deadline:
            time.sleep(_TICK_S)
    return np.array([future.is_done and future.succeeded() for _, future in sent], dtype=bool)


def main(argv: list[str] | None = None) -> int:
    """Run the command line until the replay ends, or SIGTERM or ctrl-C ends it early; makes the run folder if missing.

    Returns:
        0 if every record that was sent was acknowledged, and after `--warm-up`; else 1, as for settings, trace or
        broker that are wrong, which stderr says.

    Raises:
        SystemExit: wrong arguments (status 2) or `--help`.
        ValueError, OSError: as `replay` and `warm_up`.
    """
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.jobs.load_generator", description="Replay a trace into Kafka."
    )
    parser.add_argument("--run-dir", type=Path, required=True, help="folder for the truth")
    parser.add_argument("--warm-up", action="store_true", help="only send a few counted records to every partition")
    args = parser.parse_args(argv)
    stop = event_of_signals()
    try:
        settings = with_stack_addresses(load())
        args.run_dir.mkdir(parents=True, exist_ok=True)
        if args.warm_up:
            print(f"warm-up: {warm_up(settings, args.run_dir)} records")
            return 0
        truth = replay(settings, args.run_dir, stop)
    except (SettingsError, TraceError, BrokerError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"produced {truth['produced']} records, {truth['late']} of them late, {truth['warm_up']} as warm-up")
    if lost := truth["unacknowledged"]:
        print(f"{lost} records were never acknowledged: they may or may not be on `events`.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
