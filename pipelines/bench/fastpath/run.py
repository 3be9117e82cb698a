"""How long a forecast takes from its measurement: every part of the fast path beside its floor and its peers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.bench.fastpath import local, socket, store, swap
from pipelines.bench.fastpath.figures import divide_latencies, subtract_floor, summarise_runs
from pipelines.bench.fastpath.load import bench_settings, fit_champion
from pipelines.bench.fastpath.peers.redis import why_unavailable
from pipelines.workers import worker_pool

Found = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """How many events each measurement has.

    Attributes:
        runs: per path; its peers are measured in turn with it.
        events: per run and path.
        warm: events before those that count.
        scheduled: events per run at fixed moments.
        gru: events per run with a GRU; all others are with the blend, the model that serves by default.
        streamed, streamed_warm: samples through the Structured Streaming query, and before those that count.
        puts: of the store that are timed.
        seconds: rounds of one sample of each of the 500 jobs.
        swapped: samples sent while two models take turns.
        filled: puts over which memory is measured.
    """

    runs: int = 5
    events: int = 5_000
    warm: int = 2_500
    scheduled: int = 4_000
    gru: int = 4_000
    streamed: int = 240
    streamed_warm: int = 40
    puts: int = 2_000
    seconds: int = 60
    swapped: int = 20_000
    filled: int = 1_000_000


FULL = Sizes()
QUICK = Sizes(2, 400, 100, 200, 50, 40, 20, 200, 3, 2_000, 40_000)


def measure_parts(parts: Collection[str], sizes: Sizes) -> Found:
    """Measure parts of the benchmark one after the other, each in a temporary folder; prints each as it begins.

    An error ends its part, not the others: its text is then in `absent` under the part's name; so is an unknown part's
    name.

    Args:
        parts: names in PARTS.
        sizes: FULL, QUICK or one's own.

    Returns:
        `host` (`cores`, `load_before` and `load_after`, the load averages of a minute), `absent` (text: why a part or
        Redis was not measured), and what the parts found: a key in `_us` is a path's `summarise_runs` in microseconds,
        `_added_us` and `_added_ms` the difference to the bare echo at `p50` and `p99` (or None, see `subtract_floor`),
        `_over_fast` a peer's latency ÷ ours at these; `fleet`, `swap`, `persistent_put` and `trigger_put` are as from
        `time_fleet`, `swap_under_load`, `time_persistent_put` and `time_trigger_put`; `memory` has `history` (versions
        kept per key), `points` (see `measure_memory`) and `growth_of_second_half`: `uss` and `file`, at the end ÷ at
        half the puts.
    """
    figures: Found = {"host": {"cores": os.cpu_count(), "load_before": os.getloadavg()[0]}, "absent": {}}
    for part in parts:
        print(f"measuring: {part}", flush=True)
        with tempfile.TemporaryDirectory(prefix="tidecast-") as scratch:
            try:
                figures |= PARTS[part](Path(scratch), sizes)
            except Exception as error:  # one part must not lose what the others measured
                figures["absent"][part] = str(error)
    if "socket" in parts and (why := why_unavailable()):
        figures["absent"]["redis"] = why
    figures["host"]["load_after"] = os.getloadavg()[0]
    return figures


def _local(folder: Path, sizes: Sizes) -> Found:
    runs = local.time_in_process(folder / "blend", fit_champion("blend"), sizes.runs, sizes.events, sizes.warm)
    gru = local.time_in_process(folder / "gru", fit_champion("gru"), sizes.runs, sizes.gru, sizes.gru // 4)
    return {"in_process_us": summarise_runs(runs), "in_process_gru_us": summarise_runs(gru)}


def _socket(folder: Path, sizes: Sizes) -> Found:
    peers = {} if why_unavailable() else {"redis": True, "redis_bare": False}
    lists = socket.time_by_socket(
        folder, fit_champion("blend"), sizes.runs, sizes.events, sizes.warm, sizes.scheduled, peers
    )
    gru = socket.time_by_socket(folder / "gru", fit_champion("gru"), sizes.runs, sizes.gru, sizes.gru // 4)
    ours = summarise_runs(lists["socket"])
    made = {f"{name}_us": summarise_runs(lists[name]) for name in peers}
    return {
        **made,
        **{name.replace("_us", "_over_fast"): divide_latencies(theirs, ours) for name, theirs in made.items()},
        "socket_us": ours,
        "socket_floor_us": (floor := summarise_runs(lists["floor"])),
        "socket_added_us": subtract_floor(ours, floor),
        "socket_scheduled_us": summarise_runs(lists["socket_scheduled"]),
        "socket_scheduled_floor_us": summarise_runs(lists["floor_scheduled"]),
        "socket_gru_us": summarise_runs(gru["socket"]),
    }


def _kafka(folder: Path, sizes: Sizes) -> Found:
    from pipelines.bench.fastpath import kafka
    from pipelines.bench.fastpath.peers import stream
    from pipelines.kafka.topics import create_topics
    from pipelines.stack.stack import Stack

    with Stack(bench_settings(folder), {"broker"}) as stack:
        create_topics(stack.settings.kafka)
        pair = kafka.time_by_kafka(stack, fit_champion("blend"), sizes.runs, sizes.events, sizes.warm)
        streamed = summarise_runs(
            [stream.time_streaming_query(stack, fit_champion("blend"), sizes.streamed, sizes.streamed_warm)]
        )
    ours, floor = map(summarise_runs, pair)
    return {
        "kafka_us": ours,
        "kafka_floor_us": floor,
        "kafka_added_ms": subtract_floor(ours, floor, 1e3),
        "micro_batch_us": streamed,
        "micro_batch_over_fast": divide_latencies(streamed, ours),
    }


def _store(folder: Path, sizes: Sizes) -> Found:
    return {
        "persistent_put": store.time_persistent_put(folder / "persistent", sizes.puts),
        "trigger_put": store.time_trigger_put(folder / "trigger", sizes.puts),
    }


def _memory(folder: Path, sizes: Sizes) -> Found:
    with worker_pool(1) as alone:  # here the networks would be most of it
        points = alone.submit(store.measure_memory, folder, sizes.filled).result()
    half = points[len(points) // 2 - 1]
    growth = {name: points[-1][name] / half[name] for name in ("uss", "file")}
    return {"memory": {"history": store.KEEP, "points": points, "growth_of_second_half": growth}}


PARTS: dict[str, Callable[[Path, Sizes], Found]] = {
    "local": _local,
    "socket": _socket,
    "kafka": _kafka,
    "store": _store,
    "fleet": lambda folder, sizes: {"fleet": local.time_fleet(folder, fit_champion("blend"), sizes.seconds)},
    "swap": lambda folder, sizes: {
        "swap": swap.swap_under_load(folder, [fit_champion("gru"), fit_champion("other gru")], sizes.swapped)
    },
    "memory": _memory,
}
"""What can be measured alone; Redis runs with the socket, the streaming form with Kafka, because they are compared."""
