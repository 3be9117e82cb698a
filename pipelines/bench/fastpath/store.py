"""What the store costs beside bare LMDB: each call in turn with LMDB's own for the same bytes, in microseconds.

Bare LMDB is opened here, and only here beside the store, because it is the floor that the figures are held against.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import lmdb
import psutil

from pipelines.store import Keep, Store

SAMPLE, STATE, FORECAST = bytes(100), bytes(600), bytes(1200)
CURSOR = bytes(40)
KEEP = 1000
RULES = (Keep("/sample", KEEP), Keep("/state", 2), Keep("/forecast", KEEP))
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}
MAP_BYTES = 1 << 30
WARM = 200
Call = Callable[[int], object]


def percentiles_us(took_ns: Sequence[int]) -> dict[str, float]:
    """p50, p90, p99, p99.9 and the most, by nearest rank, in µs (seed section 9.6)."""
    ranked = sorted(took_ns)
    found = {name: ranked[math.ceil(share * len(ranked)) - 1] / 1e3 for name, share in SHARES.items()}
    return {**found, "max": ranked[-1] / 1e3, "count": float(len(ranked))}


def in_turn(ours: Call, bare: Call, count: int) -> dict[str, Any]:
    """Time both calls, one after the other, each with the number of the round; `times` is ours over bare."""
    took: tuple[list[int], list[int]] = ([], [])
    for number in range(count + WARM):
        for call, spans in zip((ours, bare), took, strict=True):
            began = perf_counter_ns()
            call(number)
            spans.append(perf_counter_ns() - began)
    found = [percentiles_us(spans[WARM:]) for spans in took]
    times = {name: found[0][name] / found[1][name] for name in ("p50", "p99")}
    return {"store_us": found[0], "lmdb_us": found[1], "times": times}


def persistent_put(folder: Path, count: int) -> dict[str, Any]:
    """A put acknowledged when it is on the disk, beside LMDB's own synced put."""
    with Store.open(folder / "store", MAP_BYTES) as store, _Bare(folder / "bare", synced=True) as bare:
        return in_turn(
            lambda n: store.put("/decision/j", STATE, n, "persistent"), lambda n: bare.put([(1, STATE)], n), count
        )


def event(folder: Path, count: int) -> dict[str, Any]:
    """Sample, state, forecast and cursor in one transaction, unflushed, history bounded; LMDB: four bare puts."""

    def ours(number: int) -> None:
        with store.event() as event:
            event.put("/sample/j/all/1s", SAMPLE, number)
            event.put("/state/j/all/1s", STATE, number)
            event.put("/forecast/j/all/1s", FORECAST, number)
            event.set_meta("cursor", CURSOR)

    rows = [(1, SAMPLE), (2, STATE), (3, FORECAST), (4, CURSOR)]
    with Store.open(folder / "store", MAP_BYTES, RULES) as store, _Bare(folder / "bare") as bare:
        return in_turn(ours, lambda n: bare.put(rows, n), count)


def event_of_eight(folder: Path, count: int) -> dict[str, Any]:
    """Eight objects in one unflushed transaction; LMDB: eight bare puts."""

    def ours(number: int) -> None:
        with store.event() as event:
            for key in keys:
                event.put(key, SAMPLE, number)

    keys = [f"/object/{number}" for number in range(8)]
    with Store.open(folder / "store", MAP_BYTES) as store, _Bare(folder / "bare") as bare:
        return in_turn(ours, lambda n: bare.put([(key, SAMPLE) for key in range(8)], n), count)


def trigger_put(folder: Path, count: int) -> dict[str, Any]:
    """A trigger that one callback in this thread sees; LMDB, which has no such thing: an unflushed put."""
    seen = 0

    def callback(key: str, record: object) -> None:
        nonlocal seen
        seen += 1

    with Store.open(folder / "store", MAP_BYTES) as store, _Bare(folder / "bare") as bare:
        store.watch("/sample", callback)
        found = in_turn(lambda n: store.trigger("/sample/j", SAMPLE), lambda n: bare.put([(1, SAMPLE)], n), count)
    return {**found, "seen": seen}


def reads(folder: Path, count: int) -> dict[str, Any]:
    """Reading the newest, by version and as of a time, over a key's 1000 versions; LMDB: a get, or one cursor seek."""
    with Store.open(folder / "store", MAP_BYTES) as store, _Bare(folder / "bare") as bare:
        for number in range(KEEP):
            store.put("/sample/j", SAMPLE, number)
            bare.put([(1, SAMPLE)], number)
        times = [ts for _, ts in store.list_versions("/sample/j")]
        return {
            "get": in_turn(lambda n: store.get("/sample/j"), lambda n: bare.get(KEEP - 1), count),
            "by_version": in_turn(lambda n: store.get("/sample/j", n % KEEP), lambda n: bare.get(n % KEEP), count),
            "as_of": in_turn(
                lambda n: store.get_at_time("/sample/j", times[n * 7 % KEEP]), lambda n: bare.seek(n * 7 % KEEP), count
            ),
        }


def memory(folder: Path, puts: int, points: int = 10, jobs: int = 10) -> list[dict[str, float]]:
    """Resident memory and size of the files (bytes) at equal distances over so many puts with a history of 1000."""
    process, found = psutil.Process(), []
    keys = [f"/sample/{job}/all/1s" for job in range(jobs)]
    with Store.open(folder / "store", MAP_BYTES, RULES) as store:
        for number in range(puts):
            store.put(keys[number % jobs], STATE, number // jobs)
            if number % 20_000 == 0:
                store.flush()
            if (number + 1) % (puts // points) == 0:
                held = max(len(store.list_versions(key)) for key in keys)
                seen = process.memory_full_info()
                size = sum(path.stat().st_size for path in (folder / "store").rglob("data.mdb"))
                found.append(
                    {"puts": number + 1, "rss": seen.rss, "uss": seen.uss, "file": size, "versions": held},
                )
    return found


class _Bare:
    """LMDB with one tree and keys of (number, version), as its own examples use it."""

    _place = struct.Struct(">QQ")

    def __init__(self, folder: Path, synced: bool = False) -> None:
        folder.mkdir(parents=True)
        self._env = lmdb.open(str(folder), map_size=MAP_BYTES, sync=synced, metasync=synced)

    def put(self, rows: Sequence[tuple[int, bytes]], version: int) -> None:
        with self._env.begin(write=True) as txn:
            for key, value in rows:
                txn.put(self._place.pack(key, version), value)

    def get(self, version: int) -> bytes | None:
        with self._env.begin() as txn:
            value: bytes | None = txn.get(self._place.pack(1, version))
            return value

    def seek(self, version: int) -> bytes:
        with self._env.begin() as txn, txn.cursor() as cursor:
            cursor.set_range(self._place.pack(1, version))
            value: bytes = cursor.value()
            return value

    def __enter__(self) -> _Bare:
        return self

    def __exit__(self, *_: object) -> None:
        self._env.close()
