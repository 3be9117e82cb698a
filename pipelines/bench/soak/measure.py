"""`tidecast bench soak`: a site under live load for an hour; what its parts hold, and what folders take, over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil

from configs.settings import Settings
from pipelines.bench.chaos.cells import PARTS
from pipelines.bench.chaos.site_under_load import fresh_brokers, live_site, prepare
from pipelines.bench.chaos.world import World
from pipelines.bench.repeated import repeated
from pipelines.bench.soak.held import EVERY_S, Held, Holdings
from pipelines.bench.soak.slopes import BLOCKS, Slope, slope_of
from pipelines.stack.isolation import isolated_settings

WARM, REACHED = 0.5, 0.95
"""Share of the time that does not count, in which heaps and Spark's lists of finished work grow to their size; and that
up to which samples have to go on."""
DAY_H = 24.0
"""Of the trace, in each stretch of which a mean is taken: what swings with the load does not look like growth."""
SERVERS = ("airflow-api-server", "airflow-dag-processor", "spark-master", "spark-worker")
"""Processes of the stack that are looked at beside the parts."""
KINDS = ("megabytes", "files", "threads")
BOUNDED = ("checkpoint of the job", "checkpoint of the autoscaler")
"""Folders that may not grow; the others hold what is kept for longer than an hour."""


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
    live_h = DAY_H * BLOCKS / (1 - WARM)
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
        holdings = Holdings((*PARTS, *SERVERS), lambda part: _processes(world, part), folders)
        with repeated(holdings.sample, EVERY_S):
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
        length_s: of the live load; samples after it do not count, as those before all is warm.

    Returns:
        `series`: by part and kind (megabytes, files, threads), and `folders`, 10⁶ bytes by what they hold, as `Slope`
        has it, with `grows`; `growing`, names of those that may not grow and do, `growing_n` of `looked_at`;
        `unmeasured`, parts and folders of which too little was seen, and `unmeasured_n`.
    """
    series, folders, slopes, unmeasured = dict[str, Any](), dict[str, Any](), dict[str, Slope](), list[str]()
    first_s, last_s = WARM * length_s, length_s
    for part, samples in held.items():
        counted = [one for one in samples if first_s <= one.at_s <= last_s]
        longest = Counter(one.pid for one in counted).most_common(1)[0][0] if counted else 0
        same = [one for one in counted if one.pid == longest]
        times = [one.at_s for one in same]
        if not _reaches(times, first_s, last_s):
            unmeasured.append(part)
            continue
        found = {kind: slope_of(times, [float(getattr(one, kind)) for one in same]) for kind in KINDS}
        slopes |= {f"{part}: {kind}": slope for kind, slope in found.items()}
        series[part] = {kind: _told(slope) for kind, slope in found.items()}
    for name, sizes in taken.items():
        at_s = [at for at, _ in sizes if first_s <= at <= last_s]
        if not _reaches(at_s, first_s, last_s):
            unmeasured.append(name)
            continue
        slope = slope_of(at_s, [size for at, size in sizes if first_s <= at <= last_s])
        folders[name] = _told(slope)
        if name in BOUNDED:
            slopes[name] = slope
    growing = [name for name, slope in slopes.items() if slope.grows]
    return {
        "series": series, "folders": folders, "growing": growing, "growing_n": len(growing), "looked_at": len(slopes),
        "unmeasured": unmeasured, "unmeasured_n": len(unmeasured),
    }  # fmt: skip


def _reaches(times: Sequence[float], first_s: float, last_s: float) -> bool:
    """Whether samples reach into each stretch of a mean, and near the end of what counts."""
    stretch = (last_s - first_s) / BLOCKS
    gaps = [later - before for before, later in zip((first_s, *times), (*times, last_s), strict=True)]
    return max(gaps) < stretch and bool(times) and times[-1] >= REACHED * last_s


def _told(found: Slope) -> dict[str, Any]:
    return {**{name: round(value, 3) for name, value in found._asdict().items()}, "grows": found.grows}


def _processes(world: World, part: str) -> list[psutil.Process]:
    return world.processes(part) if part in PARTS else [psutil.Process(world.stack.processes[part].pid)]
