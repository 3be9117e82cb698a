"""Topologies for their page: the plan that is in force, where each query is wanted and runs, and what was advised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from configs.errors import SettingsError
from configs.settings import Settings
from pipelines.console.read.fold import ReadModel
from pipelines.console.shown import job_row

Values = dict[str, Any]


def read_topologies(settings: Settings) -> list[Values]:
    """Read each topology of the folder, and of one that was begun where its queries are wanted and were started last.

    Returns:
        Of each "name" and "problem" ("" unless its file, or the folder of its job, is wrong); "target_s", "clusters",
        "operators"; "begun"; "changed", whether its file is another one than it was begun with; "plan": "since",
        "price" of an hour, "latency_s", "kept"; "queries": of each its "name", "operators", "cluster" and "executors"
        by the plan, "at" (the cluster where it was started last), "moves" and "offloaded" (None: it is not).
    """
    return [_read(settings, file.stem) for file in sorted(settings.topologies_dir.glob("*.yaml"))]


def _read(settings: Settings, name: str) -> Values:
    from configs.topology import load_topology
    from pipelines.placement.running import job_folder

    found: Values = {
        "name": _as_text(name), "problem": "", "begun": False, "changed": False, "plan": None, "queries": [],
    }  # fmt: skip
    folder, file = job_folder(settings, name), settings.topologies_dir / f"{name}.yaml"
    try:
        begun = folder.began()
        topology = folder.topology() if begun else load_topology(name, settings.topologies_dir)
        found |= {
            "target_s": topology.target_s, "operators": list(topology.operators),
            "clusters": {one: cluster.cores for one, cluster in topology.clusters.items()},
        }  # fmt: skip
        if begun:
            wanted = folder.wanted()
            found |= {"begun": True, "changed": folder.has_changed(file), "queries": _queries(folder, topology, wanted)}
            found["plan"] = {
                "since": folder.wanted_since_s(), "price": wanted.price, "latency_s": wanted.latency_s,
                "kept": wanted.kept,
            }  # fmt: skip
    except (SettingsError, OSError, ValueError, KeyError, TypeError) as error:
        found["problem"] = _as_text(f"{error}")
    return found


def _as_text(name: str) -> str:
    """What can be sent of a text in which there may be the name of a file that is no UTF-8."""
    return name.encode(errors="backslashreplace").decode()


def _queries(folder: Any, topology: Any, wanted: Any) -> list[Values]:
    from models.placement.plan.applications import applications_of

    away, found = {name: one for name, one in folder.offloaded().items() if not one.left}, []
    for one in applications_of(topology, wanted):
        epoch, note = folder.newest(one.name), away.get(one.name)
        found.append({
            "name": one.name, "operators": list(one.operators), "cluster": one.cluster, "executors": one.executors,
            "at": epoch and epoch.block.cluster, "moves": 0 if epoch is None else epoch.number - 1,
            "offloaded": note._asdict() if note and note.away == one.cluster else None,
        })  # fmt: skip
    return found


def topology_rows(
    model: ReadModel, topologies: Sequence[Mapping[str, Any]], advice: Mapping[str, Any], now: float
) -> list[Values]:
    """Return what the page shows of each topology; those that were begun come first.

    Args:
        model: what the topics have told: each query is a job on them.
        topologies: as `read_topologies` returns them.
        advice: what was told of each last, as `Access.advice` returns it.
        now: wall time, epoch seconds.
    """
    rows = [
        {
            **one, "advice": advice.get(one["name"]),
            "queries": [{**query, **_measured(model, query["name"], now)} for query in one["queries"]],
        }
        for one in topologies
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (not row["problem"], not row["begun"], row["name"]))


def _measured(model: ReadModel, query: str, now: float) -> Values:
    """What is known of a query as a job: executors there, latency, trouble; None where nothing was heard of it."""
    job = model.jobs.get(query)
    row = {} if job is None else job_row(job, now)
    return {name: row.get(name) for name in ("latency_s", "trouble", "rank", "age_s")} | {
        "known": job is not None, "there": row.get("executors"), "target": row.get("target"),
    }  # fmt: skip
