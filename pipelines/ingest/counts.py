"""What an ingest counts of each topic, as its task returns it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from configs.settings import Settings
from pipelines.ingest.offsets import OffsetsError, Range
from pipelines.lake import tables as lake
from pipelines.lake.errors import LakeError
from pipelines.lake.folder import lake_folder
from pipelines.lake.tables import Origin

_log = logging.getLogger(__name__)


def count_range(
    r: Range, version: int | None, read: int, stored: int, quarantined: int, warnings: Mapping[str, int]
) -> dict[str, Any]:
    """Return the counts of a range that was taken; `pipelines.ingest.run.ingest` says what each is."""
    return {
        "offsets": {p: [r.start[p], r.end[p]] for p in r.end}, "version": version, "again": r.is_rerun, "read": read,
        "stored": stored, "quarantined": quarantined, "warnings": warnings, "trouble": "",
    }  # fmt: skip


def count_nothing(settings: Settings, r: Range) -> dict[str, Any]:
    """Return the counts of a range in which nothing is: nothing is committed, and the next run may use its name."""
    _log.info("%s %s: no new records since offset %s, nothing to commit", r.topic, r.partition, r.end)
    return count_range(r, lake.newest_version(lake_folder(settings), r.topic), 0, 0, 0, {})


def count_kept(r: Range, kept: Origin, read: int) -> dict[str, Any]:
    """Return the counts of a re-run whose topic has fewer records left than the commit `kept` took: its rows stay."""
    _log.warning(
        "%s %s: the topic has %d of its %d records left, as one does that keeps the newest of each key: its rows stay "
        "as they are", r.topic, r.partition, read, kept.stored + kept.quarantined,
    )  # fmt: skip
    return count_range(r, kept.version, read, kept.stored, kept.quarantined, {})


def no_counts(settings: Settings, topic: str, trouble: str) -> dict[str, Any]:
    """Return the counts of a topic of which nothing was taken, and why; without a version where none can be read."""
    nothing, version = Range(topic, "", "", {}, {}, 0.0, behind=-1), None
    with suppress(LakeError, OSError):  # perhaps the very trouble
        version = lake.newest_version(lake_folder(settings), topic)
    return count_range(nothing, version, 0, 0, 0, {}) | {"trouble": trouble}


def refuse_troubles(counts: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise where an ingest could not take a topic, or look for drifts, by the counts that `ingest` returns.

    Raises:
        OffsetsError: there is a trouble; it names each topic and what was wrong, as `ingest` says.
    """
    if troubles := [f"{topic}: {one['trouble']}" for topic, one in counts.items() if one["trouble"]]:
        raise OffsetsError("\n".join(troubles))
