"""How long a forecast takes from its measurement: every part of the fast path beside its floor and its peers."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable, Collection
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pipelines.bench.fastpath import local as fastpath_local
from pipelines.bench.fastpath import socket as fastpath_socket
from pipelines.bench.fastpath import store as bench_store
from pipelines.bench.fastpath import swap as fastpath_swap
from pipelines.bench.fastpath.children import Children
from pipelines.bench.fastpath.figures import added, over, summary
from pipelines.bench.fastpath.load import forecaster, settings
from pipelines.bench.fastpath.peers.redis import RedisPeer, absent
from pipelines.bench.fastpath.store import RULES
from pipelines.serve.models.model_set import ModelSet, pack

PARTS = ("local", "socket", "kafka", "store", "fleet", "swap", "memory")
"""What can be measured alone; Redis runs with the socket, the streaming form with Kafka, because they are compared."""
Found = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """How much of everything.

    Attributes:
        runs: of each path, its peers in turn with it.
        events: per run and path.
        warm: before those that count.
        scheduled: per run on a fixed schedule.
        blend: per run with the blend as champion.
        streamed, streamed_warm: samples through the streaming form.
        puts: timed of the store's own.
        seconds: of the 500 jobs.
        swapped: samples sent while champions take turns.
        filled: puts over which memory is looked at.
    """

    runs: int = 5
    events: int = 20_000
    warm: int = 5_000
    scheduled: int = 4_000
    blend: int = 4_000
    streamed: int = 240
    streamed_warm: int = 40
    puts: int = 2_000
    seconds: int = 60
    swapped: int = 20_000
    filled: int = 1_000_000


FULL = Sizes()
QUICK = Sizes(2, 400, 100, 200, 50, 40, 20, 200, 3, 2_000, 40_000)


def measure(parts: Collection[str] = PARTS, sizes: Sizes = FULL, say: Callable[[str], None] = print) -> Found:
    """The figures of these parts, one after the other.

    Args:
        parts: of PARTS.
        sizes: of everything.
        say: told what begins.

    Returns:
        `in_process_us`, `socket_us`, `socket_floor_us`, `kafka_added_ms`, `redis_over_fast`, `micro_batch_over_fast`
        and what else was measured; a path's figures are the median over its runs, see `fastpath_figures.summary`.
        `absent` says why something was not.
    """
    import torch

    torch.set_num_threads(1)
    found: Found = {"host": _host(), "absent": {}}
    steps: dict[str, Callable[[Path, Sizes, Found], Found]] = {
        "local": _local, "socket": _socket, "kafka": _kafka, "store": _store,
        "fleet": _fleet, "swap": _swap, "memory": _memory,
    }  # fmt: skip
    for part in parts:
        say(f"measuring: {part}")
        with tempfile.TemporaryDirectory(prefix="tidecast-") as scratch:
            try:
                found |= steps[part](Path(scratch), sizes, found)
            except Exception as error:  # what the other parts found took too long to be lost over one
                say(f"{part}: {error}")
                found["absent"][part] = str(error)
    found["host"]["load_after"] = os.getloadavg()[0]
    return found


def _local(folder: Path, sizes: Sizes, found: Found) -> Found:
    runs = fastpath_local.in_process(folder / "gru", _made("gru"), sizes.runs, sizes.events, sizes.warm)
    blend = fastpath_local.in_process(folder / "blend", _made("blend"), sizes.runs, sizes.blend, sizes.blend // 4)
    return {"in_process_us": summary(runs), "in_process_blend_us": summary(blend)}


def _socket(folder: Path, sizes: Sizes, found: Found) -> Found:
    why = absent()
    with Children(folder / "log") as children:
        kinds = {} if why else {"redis": "durable", "redis_bare": "bare"}
        peers = {name: RedisPeer(children, folder / name, _made("gru"), kind) for name, kind in kinds.items()}
        lists = fastpath_socket.in_turn(
            children, folder, _made("gru"), sizes.runs, sizes.events, sizes.warm, sizes.scheduled, peers
        )
        blend = fastpath_socket.in_turn(
            children, folder / "blend", _made("blend"), sizes.runs, sizes.blend, sizes.blend // 4
        )
    ours, floor = summary(lists["socket"]), summary(lists["floor"])
    made = {
        "socket_us": ours,
        "socket_floor_us": floor,
        "socket_added_us": added(ours, floor),
        "socket_scheduled_us": summary(lists["socket_scheduled"]),
        "socket_scheduled_floor_us": summary(lists["floor_scheduled"]),
        "socket_blend_us": summary(blend["socket"]),
        "redis_us": None,
        "redis_bare_us": None,
        "redis_over_fast": None,
    }
    if why:
        found["absent"]["redis_over_fast"] = why
        return made
    theirs, bare = summary(lists["redis"]), summary(lists["redis_bare"])
    return {**made, "redis_us": theirs, "redis_bare_us": bare, "redis_over_fast": over(theirs, ours),
            "redis_bare_over_fast": over(bare, ours)}  # fmt: skip


def _kafka(folder: Path, sizes: Sizes, found: Found) -> Found:
    from pipelines.bench.fastpath import kafka as fastpath_kafka
    from pipelines.bench.fastpath.peers import stream as fastpath_stream
    from pipelines.kafka.topics import create_topics
    from pipelines.stack.stack import Stack

    with Stack(settings(folder), {"broker"}) as stack:
        create_topics(stack.settings.kafka)
        pair = fastpath_kafka.measure(stack, folder / "champions", _made("gru"), sizes.runs, sizes.events, sizes.warm)
        ours, floor = (summary(runs) for runs in pair)
        streamed = fastpath_stream.measure(stack, folder / "stream", _made("gru"), sizes.streamed, sizes.streamed_warm)
    stream = summary([streamed])
    return {
        "kafka_us": ours,
        "kafka_floor_us": floor,
        "kafka_added_ms": added(ours, floor, 1e3),
        "micro_batch_us": stream,
        "micro_batch_over_fast": over(stream, ours, ("p50",)),
    }


def _store(folder: Path, sizes: Sizes, found: Found) -> Found:
    return {
        "persistent_put": bench_store.persistent_put(folder / "persistent", sizes.puts),
        "trigger_put": bench_store.trigger_put(folder / "trigger", sizes.puts),
        "event": bench_store.event(folder / "event", sizes.puts),
        "reads": bench_store.reads(folder / "reads", sizes.puts),
    }


def _fleet(folder: Path, sizes: Sizes, found: Found) -> Found:
    return {"fleet": fastpath_local.fleet(folder, _made("gru"), sizes.seconds)}


def _swap(folder: Path, sizes: Sizes, found: Found) -> Found:
    with Children(folder / "log") as children:
        return {"swap": fastpath_swap.measure(children, folder, [_made("gru"), _made("other gru")], sizes.swapped)}


def _memory(folder: Path, sizes: Sizes, found: Found) -> Found:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:  # of this one the networks would be most
        points = alone.submit(bench_store.memory, folder, sizes.filled).result()
    half = points[len(points) // 2 - 1]
    growth = {name: points[-1][name] / half[name] for name in ("rss", "uss", "file")}
    return {"memory": {"history": RULES[0].versions, "points": points, "growth_of_second_half": growth}}


_sets: dict[str, ModelSet] = {}


def _made(kind: str) -> ModelSet:
    """The set of a kind, fitted once."""
    if kind not in _sets:
        _sets[kind] = pack(forecaster(kind))
    return _sets[kind]


def _host() -> Found:
    return {"cores": os.cpu_count(), "python": platform.python_version(), "load_before": os.getloadavg()[0]}
