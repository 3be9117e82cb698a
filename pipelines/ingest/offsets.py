"""Which offsets a partition takes: recorded ones again, or those since the last commit; ranges tile each topic."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from configs.errors import FinalError
from pipelines.lake.errors import LakeError
from pipelines.lake.folder import Folder
from pipelines.lake.tables import QUARANTINE, Origin, commit_origins

Offsets = dict[int, int]
_log = logging.getLogger(__name__)
_SKIP = 'Begin a run by hand with the field "Skip lost records" (skip_lost)'


class OffsetsError(FinalError):
    """The broker no longer has what the partition needs, or never had it; or nobody knows what that is."""


@dataclass(frozen=True)
class Range:
    """What to read from one topic for one partition.

    Attributes:
        topic: name, without the prefix of the settings.
        topic_id: that the broker gave it at its creation.
        partition: name of the ingest partition.
        start: first offset of every Kafka partition.
        end: offset behind the last one.
        judged_at: epoch seconds of wall time that records are judged by; a re-run takes the first run's, so that it
            refuses the same ones.
        behind: Delta version of the newest ingest's commit to the table, -1 before the first; None where the lake holds
            the partition already.
        unfinished: the commit of a partition of which only the refused rows are to be stored; None for any other.
        recorded: the commit of a partition of which all rows are written again; None for any other.
    """

    topic: str
    topic_id: str
    partition: str
    start: Offsets
    end: Offsets
    judged_at: float
    behind: int | None
    unfinished: Origin | None = None
    recorded: Origin | None = None

    @property
    def is_rerun(self) -> bool:
        """Whether the lake holds the partition already."""
        return self.behind is None

    @property
    def records(self) -> int:
        """How many offsets the range holds."""
        return sum(self.end[p] - self.start[p] for p in self.end)

    @property
    def is_due(self) -> bool:
        """Whether there is anything to commit: an unfinished partition is to be ended even if nothing of it is left."""
        return self.records > 0 or self.unfinished is not None


@dataclass(frozen=True)
class Topic:
    """A topic as it is now: its id and the first and next offset of every Kafka partition.

    `name` is without the prefix of the settings; `full_name` is what the broker knows it by, and what people are told.
    """

    name: str
    full_name: str
    id: str
    offsets: Mapping[int, tuple[int, int]]


def read_history(root: Folder, table: str) -> list[Origin]:
    """Return the origins of a table's commits, newest first (`commit_origins`).

    Raises:
        OffsetsError: the table's log is damaged, or this user may not read it.
        OSError: it cannot be read now, as where the lake does not answer.
    """
    try:
        return commit_origins(root, table)
    except (PermissionError, LakeError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OffsetsError(
            f"the log of {root / table}, which says which records it has, cannot be read ({type(error).__name__}: "
            f"{error}). Give this user the right to read it; where it is damaged, move the table away, and bring it "
            f"back from a backup (of a lake below `var`: `tidecast restore FILE --only lake/{table}`)"
        ) from None


def find_unfinished(root: Folder, topic_id: str, commits: Sequence[Origin]) -> Origin | None:
    """Return the newest partition of a topic where a run ended before it stored the refused rows; None where none did.

    Args:
        root: folder of the lake.
        topic_id: of the topic as the broker has it now; those of an earlier one are left.
        commits: of the topic's table, newest first.

    Raises:
        OffsetsError, OSError: as `read_history`.
    """
    newest = commits[0] if commits else None
    if newest is None or newest.topic_id != topic_id or not newest.quarantined:
        return None
    return None if in_quarantine(root, newest) else newest


def in_quarantine(root: Folder, origin: Origin) -> bool:
    """Return whether the refused rows of a topic's partition are stored.

    Raises:
        OffsetsError, OSError: as `read_history`.
    """
    return (origin.topic, origin.partition) in {(one.topic, one.partition) for one in read_history(root, QUARANTINE)}


def plan_range(topic: Topic, partition: str, history: Sequence[Origin], now: float, skip_lost: bool = False) -> Range:
    """Return the range of offsets that one ingest partition reads from a topic.

    A partition that the lake holds already reads its recorded offsets again (`is_rerun`), judged by the time of its
    first run; a new one reads all since the last commit of the same topic id, or from the topic's first offset.

    Args:
        topic: the topic's id and offsets as the broker has them.
        partition: name of the ingest partition.
        history: origins of the table's commits, in any order.
        now: epoch seconds, wall time; becomes `judged_at` of a new partition.
        skip_lost: where the broker deleted records that were not ingested, a new partition begins at the first it has,
            and it is logged how many they were.

    Raises:
        OffsetsError: the broker deleted records of the range, or the lake knows offsets or a topic id that the topic
            does not have.
    """
    if recorded := next((o for o in history if o.partition == partition), None):
        return _again(topic, recorded)
    committed = _committed(topic, history)
    for p, (first, end) in topic.offsets.items():
        if (lost := first - committed.get(p, first)) > 0:
            said = (
                f"{topic.full_name}-{p}: offsets {committed[p]} to {first - 1} were deleted by the broker's retention "
                "before they were ingested"
            )
            if not skip_lost:
                raise OffsetsError(f"{said}. {_SKIP} to go on without them, and ingest more often.")
            _log.warning("%s: these %d are skipped", said, lost)
        if committed.get(p, first) > end:
            raise OffsetsError(
                f"{topic.full_name}-{p}: the lake holds offsets up to {committed[p]}, the topic ends at {end}. The "
                "broker lost records: bring them back from a replica or a backup. Where there is none, end autoscaler "
                f"and serving, delete the topic {topic.full_name} alone and start them again: the autoscaler makes it "
                "anew, and what was ingested stays."
            )
    starts = {p: max(committed.get(p, first), first) for p, (first, _) in topic.offsets.items()}
    ends = {p: end for p, (_, end) in topic.offsets.items()}
    behind = max((origin.version for origin in history), default=-1)
    return Range(topic.name, topic.id, partition, starts, ends, now, behind)


def plan_quarantine(topic: Topic, unfinished: Origin, skip_lost: bool = False) -> Range:
    """Return the range from which the refused rows of a partition are stored whose other rows the lake holds already.

    Args:
        topic: the topic's id, that of the partition, and offsets as the broker has them.
        unfinished: the partition's commit to the table of its topic.
        skip_lost: where the broker deleted records of the range, take what it still has of it, perhaps nothing.

    Raises:
        OffsetsError: it did, without `skip_lost`.
    """
    start, end = dict(unfinished.start), dict(unfinished.end)
    for p, (first, last) in _lacking(topic, unfinished).items():
        if not skip_lost:
            raise OffsetsError(
                f"{unfinished.partition}: its {unfinished.quarantined} refused records are not in quarantine, which "
                f"takes {topic.full_name}-{p} offsets {start[p]} to {end[p] - 1}; the broker has {first} to "
                f"{last - 1}. {_SKIP} to keep those that are left and go on without the others; the "
                f"{unfinished.stored} accepted ones are stored."
            )
        start[p] = min(max(start[p], first), last)
        end[p] = max(start[p], min(end[p], last))
    return Range(
        topic.name, topic.id, unfinished.partition, start, end, unfinished.judged_at, behind=None,
        unfinished=unfinished,
    )  # fmt: skip


def _lacking(topic: Topic, recorded: Origin) -> dict[int, tuple[int, int]]:
    """Of the Kafka partitions that lack records of a range, the first and next offset that the broker has."""
    there = {p: topic.offsets.get(p, (0, 0)) for p in recorded.start}
    return {
        p: (first, end)
        for p, (first, end) in there.items()
        if recorded.start[p] < recorded.end[p] and (recorded.start[p] < first or recorded.end[p] > end)
    }


def _committed(topic: Topic, history: Sequence[Origin]) -> Offsets:
    """Ends of what was ingested; a topic of the same name on a fresh broker counts from zero again."""
    ends: Offsets = {}
    for origin in history:
        if origin.topic_id == topic.id:
            ends |= {p: max(ends.get(p, 0), end) for p, end in origin.end.items()}
    return ends


def _again(topic: Topic, recorded: Origin) -> Range:
    if recorded.topic_id != topic.id:
        raise OffsetsError(
            f"{recorded.partition} of {topic.full_name} came from another topic of that name (id "
            f"{recorded.topic_id}, now {topic.id}): its rows stay as they are. Give the present topic's records a new "
            "partition name."
        )
    for p, (first, end) in _lacking(topic, recorded).items():
        raise OffsetsError(
            f"{recorded.partition} needs {topic.full_name}-{p} offsets {recorded.start[p]} to {recorded.end[p] - 1}, "
            f"the broker has {first} to {end - 1}. Its rows stay as they are."
        )
    return Range(
        topic.name, topic.id, recorded.partition, recorded.start, recorded.end, recorded.judged_at, behind=None,
        recorded=recorded,
    )  # fmt: skip
