"""What the store costs beside bare LMDB: each call in turn with LMDB's own for the same bytes, in microseconds.

Bare LMDB is opened here, and only here beside the store, because it is the floor that the figures are held against.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import lmdb
import psutil

from pipelines.bench.fastpath.figures import percentiles_in_us
from pipelines.store import Keep, Store
from pipelines.store.writing.flusher import Flusher

SAMPLE, STATE = bytes(100), bytes(600)
KEEP = 1000  # versions per key
RULES = (Keep("/sample", KEEP),)
MAP_BYTES = 1 << 30
WARM = 200  # rounds
Call = Callable[[int], object]


def time_in_turn(ours: Call, bare: Call, count: int) -> dict[str, Any]:
    """Time two calls in turn, `count` rounds after 200 that do not count.

    Args:
        ours: a call of the store; gets the number of the round, from 0.
        bare: LMDB's own for the same bytes; likewise.
        count: of rounds, at least 1.

    Returns:
        `store_us` and `lmdb_us`: `p50`, `p90`, `p99`, `p99_9` and `max` in microseconds, and `count`; `times`, ours ÷
        LMDB's at `p50` and `p99`. What a call raises comes through.
    """
    took_ns: tuple[list[int], list[int]] = ([], [])
    for number in range(count + WARM):
        for call, call_ns in zip((ours, bare), took_ns, strict=True):
            began = perf_counter_ns()
            call(number)
            call_ns.append(perf_counter_ns() - began)
    percentiles = [percentiles_in_us(call_ns[WARM:]) for call_ns in took_ns]
    times = {name: percentiles[0][name] / percentiles[1][name] for name in ("p50", "p99")}
    return {"store_us": percentiles[0], "lmdb_us": percentiles[1], "times": times}


def time_persistent_put(folder: Path, count: int) -> dict[str, Any]:
    """Time puts of 600 bytes that return when they are on the disk, beside LMDB's own synced put.

    Args:
        folder: gets the folders `store` and `bare`.
        count: of puts, at least 1.

    Returns:
        As `time_in_turn`, in microseconds.

    Raises:
        OSError: `bare` exists already.
    """
    with Store.open(folder / "store", MAP_BYTES) as store, _bare(folder / "bare", synced=True) as bare:
        return time_in_turn(
            lambda number: store.put("/decision/j", STATE, number, "persistent"),
            lambda number: _put(bare, number, STATE),
            count,
        )


def time_trigger_put(folder: Path, count: int) -> dict[str, Any]:
    """Time triggers of 100 bytes, which one callback in this thread sees, beside an unsynced put of bare LMDB.

    A trigger stores nothing, which LMDB has no counterpart of. Makes the folders `store` and `bare` in `folder`.

    Returns:
        As `time_in_turn`; `seen`, how often the callback was called, the 200 rounds before included.

    Raises:
        StoreError, lmdb.Error: the disk is full, or another process writes the store.
        OSError: `bare` exists already, or `folder` is not writable.
    """
    seen: list[str] = []
    with Store.open(folder / "store", MAP_BYTES) as store, _bare(folder / "bare") as bare:
        store.watch("/sample", lambda key, record: seen.append(key))
        found = time_in_turn(
            lambda number: store.trigger("/sample/j", SAMPLE), lambda number: _put(bare, number, SAMPLE), count
        )
    return {**found, "seen": len(seen)}


def measure_memory(folder: Path, puts: int, points: int = 10, jobs: int = 10) -> list[dict[str, float]]:
    """Put values of 600 bytes under `jobs` keys that keep 1000 versions each, and measure memory on the way.

    Args:
        folder: the store is made in `folder/store`, which must be new; it stays.
        puts: how many; at least `points`.
        points: how often memory is measured, at least.
        jobs: keys.

    Returns:
        At least `points` dicts, one every `puts // points` puts: `puts` so far, `uss` (memory of this process alone,
        bytes), `file` (size of the store's files, bytes) and `versions` (most that a key keeps).

    Raises:
        StoreError: the store cannot be opened or takes no more.
        ZeroDivisionError: `points` is 0 or above `puts`.
    """
    process, looks = psutil.Process(), []
    keys = [f"/sample/{job}/all/1s" for job in range(jobs)]
    with Store.open(folder / "store", MAP_BYTES, RULES) as store, Flusher(store):
        for number in range(puts):
            store.put(keys[number % jobs], STATE, number // jobs)
            if (number + 1) % (puts // points) == 0:
                held = max(len(store.list_versions(key)) for key in keys)
                size = sum(path.stat().st_size for path in (folder / "store").rglob("data.mdb"))
                uss = process.memory_full_info().uss
                looks.append({"puts": number + 1, "uss": uss, "file": size, "versions": held})
    return looks


def _bare(folder: Path, synced: bool = False) -> Any:
    folder.mkdir(parents=True)
    return lmdb.open(str(folder), map_size=MAP_BYTES, sync=synced, metasync=synced)


def _put(bare: Any, version: int, value: bytes) -> None:
    with bare.begin(write=True) as txn:
        txn.put(version.to_bytes(8, "big"), value)
