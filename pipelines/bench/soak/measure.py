"""`tidecast bench soak`: a site under live load for an hour; what its parts hold, and what folders take, over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import psutil

from configs.settings import Settings
from pipelines.bench.chaos.cells import PARTS
from pipelines.bench.chaos.site_under_load import fresh_brokers, live_site, prepare
from pipelines.bench.chaos.world import World
from pipelines.bench.repeated import repeated
from pipelines.bench.soak.collected import collect_garbage, is_java
from pipelines.bench.soak.held import EVERY_S, Held, Holdings
from pipelines.bench.soak.slopes import BLOCKS, Slope, slope_of
from pipelines.stack.isolation import isolated_settings

DAY_H = 24.0
"""Of the trace, in each stretch of which one value is taken: what swings with the load does not look like growth."""
WARM, SETTLE = 6, 2
"""Days of the trace that do not count: in which Spark's lists of finished work grow to their size, and in which memory
comes down to what is needed once garbage is collected."""
HANDLES, MEMORY = (WARM, WARM + BLOCKS), (WARM + BLOCKS + SETTLE, WARM + BLOCKS + SETTLE + BLOCKS)
"""Days in which file handles, threads and folders count, and nothing interferes; and in which memory does. A JVM's heap
fills with garbage up to its bound, which says nothing; so they collect it each day from the first span's end on, which
would also close handles that somebody forgot."""
DAYS = MEMORY[1]
REACHED = 0.95
"""Share of a span up to which samples have to go on."""
SERVERS = ("airflow-api-server", "airflow-dag-processor", "spark-master", "spark-worker")
"""Processes of the stack that are looked at beside the parts."""
KINDS = {"files": HANDLES, "threads": HANDLES, "megabytes": MEMORY}
BOUNDED = ("checkpoint of the job", "checkpoint of the autoscaler")
"""Folders that may not grow; the others hold what is kept for longer than an hour."""

T = TypeVar("T")


def measure_soak(settings: Settings, minutes: float, save: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Run a site under live load, and look at what its parts hold all the while.

    Args:
        settings: without an address of a broker, registry or Airflow.
        minutes: of live load.
        save: called with all but the counts, before what takes long at the end.

    Returns:
        `summarise_soak`; `produced`, `counted`, `lost`, `duplicated` records; `ended`, parts that no longer ran, and
        `ended_n`; `minutes`.

    Raises:
        SettingsError: such an address is configured.
        Exception: the site does not come to its load, or the load ends before its time.
    """
    own = isolated_settings(settings, "bench")
    folder = own.var_dir / "soak"
    prepared = prepare(own, folder)
    live_h, day_s = DAY_H * DAYS, minutes * 60 / DAYS
    replay = prepared.replay.model_copy(update={"live_hours": live_h, "speed": 60 * live_h / minutes})
    asked = prepared.model_copy(update={"replay": replay})
    with (
        fresh_brokers(asked, folder / "brokers") as (site, brokers),
        live_site(site, brokers) as (world, live),
    ):
        run = world.run_dir
        folders = {
            "checkpoint of the job": run / f"{world.job}.checkpoint",
            "checkpoint of the autoscaler": run / "autoscaler",
            "logs of Airflow": site.var_dir / "airflow" / "logs",
            "a broker's segments": brokers.data(1),
        }
        parts = (*PARTS, *SERVERS)
        holdings = Holdings(parts, lambda part: _processes(world, part), folders)
        collect = partial(_collect, parts, partial(_processes, world))
        with repeated(holdings.sample, EVERY_S), repeated(collect, day_s, after_s=HANDLES[1] * day_s):
            live.replay()
        ended = world.ended()
        found = {
            **summarise_soak(holdings.held, holdings.taken, minutes * 60),
            "ended": ended, "ended_n": len(ended), "minutes": minutes,
        }  # fmt: skip
        save(found)
        for name in ("autoscaler", world.job):
            world.stack.end(name)
        counts = live.stop()
    return {**found, **counts}


def summarise_soak(
    held: Mapping[str, Sequence[Held]], taken: Mapping[str, Sequence[tuple[float, float]]], length_s: float
) -> dict[str, Any]:
    """Summarise what was held, and taken on the disk.

    Of a part that was started again, as executors are, the process counts that was there for most of the time.

    Args:
        held: samples by part.
        taken: times, seconds, and 10⁶ bytes by folder.
        length_s: of the live load, of `DAYS` days; samples after it do not count.

    Returns:
        `series`: by part and kind (files, threads, megabytes), and `folders`, 10⁶ bytes by what they hold, as `Slope`
        has it, with `grows`; `unnoticed`, by kind, the largest growth an hour that a part's noise hides; `growing`,
        names of those that may not grow and do, `growing_n` of `looked_at`; `unmeasured`, parts and folders of which
        too little was seen, and `unmeasured_n`.
    """
    series, folders, slopes, unmeasured = dict[str, Any](), dict[str, Any](), dict[str, Slope](), list[str]()
    day_s = length_s / DAYS
    for part, samples in held.items():
        found = dict[str, Slope]()
        for kind, span in KINDS.items():
            counted = _within([(one.at_s, one) for one in samples], span, day_s)
            longest = Counter(one.pid for _, one in counted).most_common(1)[0][0] if counted else 0
            same = [(at, float(getattr(one, kind))) for at, one in counted if one.pid == longest]
            if slope := _slope(same, span, day_s, kind == "megabytes"):
                found[kind] = slope
        if len(found) < len(KINDS):
            unmeasured.append(part)
            continue
        slopes |= {f"{part}: {kind}": slope for kind, slope in found.items()}
        series[part] = {kind: _told(slope) for kind, slope in found.items()}
    for name, sizes in taken.items():
        size = _slope(_within(sizes, HANDLES, day_s), HANDLES, day_s)
        if size is None:
            unmeasured.append(name)
            continue
        folders[name] = _told(size)
        if name in BOUNDED:
            slopes[name] = size
    hidden = {kind: [one.unnoticed for name, one in slopes.items() if name.endswith(f": {kind}")] for kind in KINDS}
    growing = [name for name, slope in slopes.items() if slope.grows]
    return {
        "series": series, "folders": folders,
        "unnoticed": {kind: round(max(sizes), 3) for kind, sizes in hidden.items() if sizes},
        "growing": growing, "growing_n": len(growing), "looked_at": len(slopes),
        "unmeasured": unmeasured, "unmeasured_n": len(unmeasured),
    }  # fmt: skip


def _within(samples: Sequence[tuple[float, T]], days: tuple[int, int], day_s: float) -> list[tuple[float, T]]:
    return [(at, one) for at, one in samples if days[0] * day_s <= at <= days[1] * day_s]


def _slope(
    samples: Sequence[tuple[float, float]], days: tuple[int, int], day_s: float, least: bool = False
) -> Slope | None:
    """Slope over a span; None where samples do not reach into each of its days, and near its end."""
    first_s, last_s, times = days[0] * day_s, days[1] * day_s, [at for at, _ in samples]
    gaps = [later - before for before, later in zip((first_s, *times), (*times, last_s), strict=True)]
    if max(gaps) >= day_s or not times or times[-1] < first_s + REACHED * (last_s - first_s):
        return None
    return slope_of(times, [value for _, value in samples], least)


def _collect(parts: Sequence[str], processes: Callable[[str], list[psutil.Process]]) -> None:
    """Have each JVM of the parts collect its garbage; who is just being started again does not."""
    for part in parts:
        with suppress(Exception):
            for one in filter(is_java, processes(part)):
                collect_garbage(one.pid)


def _told(found: Slope) -> dict[str, Any]:
    return {**{name: round(value, 3) for name, value in found._asdict().items()}, "grows": found.grows}


def _processes(world: World, part: str) -> list[psutil.Process]:
    return world.processes(part) if part in PARTS else [psutil.Process(world.stack.processes[part].pid)]
