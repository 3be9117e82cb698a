"""What a deployment holds, by name; and what of it is less, or other, than it was, in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from configs.settings import Settings
from models.forecast.core.series import Series
from pipelines.airflow.rest import Orchestrator
from pipelines.demo.champion import DAGS
from pipelines.kafka.broker import Record, read_records, topic_offsets
from pipelines.kafka.connection import TopicError
from pipelines.lake.folder import lake_folder
from pipelines.lake.table_files import table_files
from pipelines.lake.tables import tables
from pipelines.registry import Registry
from pipelines.registry.overview import Overview
from pipelines.spark.checkpoint.files import Checkpoint
from tidecast.connection.transport import TOPICS

Held = dict[str, int | str]
"""By name a number, which may only grow, or a text, which stays."""
_WEEKS = 2


def count_held(settings: Settings, run_dir: Path) -> Held:
    """Count what a running deployment holds: records, models, rows, runs, and how far the queries have come.

    Args:
        settings: of the running stack.
        run_dir: folder of the run, with the checkpoints of the job and of the autoscaler.

    Raises:
        BrokerError, RegistryError, OrchestratorError: a service does not answer.
        OSError, ValueError: a file of a checkpoint or of the lake's log cannot be read.
    """
    held: Held = {}
    for topic in TOPICS:
        with suppress(TopicError):  # an older release has fewer
            ends = topic_offsets(settings.kafka, topic)
            held[f"records that were written to {topic}"] = sum(end for _, end in ends.values())
    for model in Overview(settings).read():
        held[f"versions of {model.name}"] = model.many
        for one in model.versions:
            held[f"aliases of {model.name} {one.version}"] = ", ".join(sorted(one.aliases)) or "none"
    dags = Orchestrator(settings)
    for dag in DAGS:
        held[f"ended runs of {dag}"] = sum(one in ("success", "failed") for one in dags.run_states(dag).values())
    for name, folder in _checkpoints(settings, run_dir).items():
        held[f"identity of the query {name}"] = str(json.loads((folder / "metadata").read_text())["id"])
        held[f"newest micro-batch of {name}"] = Checkpoint(folder).commits[-1]
    return held | _rows(settings)


def digest_held(settings: Settings, run_dir: Path) -> Held:
    """Return what has to be the same to the letter where nothing goes on: records, forecasts, offsets, contracts.

    Of a compacted topic these are the newest records of each key, as others go; of the rest all.

    Raises:
        BrokerError, RegistryError: a service does not answer.
        OSError, ValueError: a file cannot be read.
    """
    held: Held = {}
    for topic in TOPICS:
        compacted = getattr(settings.kafka.retention_h, topic, None) is None
        content = lasting_records(read_records(settings.kafka, topic), compacted)
        held[f"content of {topic}"] = _digest(sorted(content.items()))
    held["forecast of the champion"] = _forecast(settings)
    for name, folder in _checkpoints(settings, run_dir).items():
        held[f"offsets of {name}"] = _digest((folder / "offsets" / f"{Checkpoint(folder).commits[-1]}").read_text())
    for file in run_dir.glob("autoscaler.*.json"):
        held[f"{file.name} beside the autoscaler's checkpoint"] = _digest(file.read_text())
    return held


def lasting_records(records: Iterable[Record], compacted: bool) -> dict[str, bytes]:
    """Return the values of a topic's records that stay: by place all of them, or by key the newest of a compacted one.

    Where that says that there is nothing of a key any more, there is nothing.
    """
    newest = {one.key or "" if compacted else f"{one.partition}/{one.offset}": one.value for one in records}
    return {place: value for place, value in newest.items() if value}  # an empty one takes a key away


def list_lost(before: Mapping[str, int | str], after: Mapping[str, int | str]) -> list[str]:
    """Say in words what is gone, what is less than it was, and which text is another one, in the order of `before`."""
    found = []
    for name, was in before.items():
        now = after.get(name)
        less = isinstance(was, int) and isinstance(now, int) and now < was
        if now is None or less or (isinstance(was, str) and now != was):
            found.append(f"{name}: {'nothing' if now is None else now}, {was} before")
    return found


def _rows(settings: Settings) -> Held:
    """Rows of each table of the lake, and its version, where its log says them without Spark."""
    import pyarrow.parquet as parquet

    root, held = lake_folder(settings), Held()
    for table in tables(root):
        if (files := table_files(root, table)) is not None:
            held[f"rows of the table {table}"] = sum(parquet.read_metadata(one).num_rows for one in files.paths)
            held[f"version of the table {table}"] = files.version
    return held


def _checkpoints(settings: Settings, run_dir: Path) -> dict[str, Path]:
    job = settings.job.name
    return {job: run_dir / f"{job}.checkpoint", "autoscaler": run_dir / "autoscaler"}


def _forecast(settings: Settings) -> str:
    """What the champion says after two weeks of one wave a day: that it is read, whole, and the same."""
    model = Registry(settings).load(settings.job.name)
    steps = round(_WEEKS * 7 * 86_400 / model.step_s)
    wave = 30 + 20 * np.sin(2 * np.pi * np.arange(steps) * model.step_s / 86_400)
    return _digest(np.round(model.begin(Series(0.0, model.step_s, wave)).quantiles, 6).tolist())


def _digest(what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()[:12]
