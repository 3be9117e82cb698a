"""The corpus before every reader: who differs from whom, and whom a record has stopped."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pipelines.bench.borders.corpus import OddRecord, corpus
from pipelines.bench.borders.readers import ingested, readers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def measure(spark: SparkSession | None, seed: int = 7) -> dict[str, Any]:
    """The verdicts on the whole corpus; the lake's gate is asked where there is a session.

    Returns:
        records; verdicts (how many were asked for); stopped, differing and unexpected, each [record, reader, what].
    """
    now = time.time()
    entries = corpus(now, seed)
    found: dict[str, Any] = {"records": len(entries), "stopped": [], "differing": [], "unexpected": []}
    verdicts: list[dict[str, bool]] = [{} for _ in entries]
    with readers() as known:
        for entry, given in zip(entries, verdicts, strict=True):
            for name, (topics, read) in known.items():
                if entry.topic in topics:
                    try:
                        given[name] = read(entry, now)
                    except Exception as error:  # what would end the reader for every job
                        found["stopped"].append([_said(entry), name, repr(error)[:200]])
    if spark is not None:
        for place, verdict in ingested(spark, entries, now).items():
            verdicts[place]["ingest"] = verdict
    for entry, given in zip(entries, verdicts, strict=True):
        wanted = given.get("decode")
        if entry.good is not None and wanted is not entry.good:
            found["unexpected"].append([_said(entry), "decode", wanted])
        found["differing"] += [[_said(entry), name, mine] for name, mine in given.items() if mine is not wanted]
    found["verdicts"] = sum(len(given) for given in verdicts)
    found["readers"] = sorted({name for given in verdicts for name in given})
    return found | {f"n_{name}": len(found[name]) for name in ("stopped", "differing", "unexpected")}


def _said(entry: OddRecord) -> str:
    return f"{entry.topic}: {entry.name}"
