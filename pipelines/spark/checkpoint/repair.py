"""Bring a damaged checkpoint back to the newest batch from which its query can go on; files are moved, none is deleted.

The next batch is planned already: where it alone is run again it reads the very records that it had read, and any sink
that takes a batch twice ends right. Where more are, those after it are cut otherwise than they were. That is right for
a sink that replaces whole results by key, and wrong for one that skips the numbers of batches that it knows.
"""

from __future__ import annotations

import itertools
import shlex
import time
from pathlib import Path
from typing import NamedTuple

from configs.errors import CorrectableError
from pipelines.spark.checkpoint.files import COMMITS, OFFSETS, Checkpoint

QUIET_S = 5.0
"""Seconds in which something is written where a query is busy; one that waits for records writes nothing for longer."""
SHOWN = 3
ANEW = (
    "Restore the folder from a backup; or move it away, start the query anew, and read again what it had read "
    "(`tidecast backfill`)."
)


class CheckpointError(CorrectableError, RuntimeError):
    """A folder is no checkpoint, is in use, or cannot be repaired; the message says what to do instead."""


class Diagnosis(NamedTuple):
    """What keeps a query from going on.

    Attributes:
        batch: committed one from which it can go on; None: there is none.
        damaged: files that a restart would read and that are damaged or missing.
        moving: files that have to go, in an order in which every part of it can be repeated.
        again: later batches of the offset log or the commit log.
        exact: whether these are one batch, whose plan is kept.
    """

    batch: int | None
    damaged: list[Path]
    moving: list[Path]
    again: list[int]
    exact: bool


def diagnose(folder: Path) -> Diagnosis | None:
    """Look what keeps a query from going on from a checkpoint; None: nothing.

    Raises:
        CheckpointError: it is no checkpoint, one of a format that is not known, or every restart reads a damaged file.
        OSError: a file cannot be read.
    """
    found = Checkpoint(folder)
    if not all((folder / log).is_dir() for log in (OFFSETS, COMMITS)):
        raise CheckpointError(f"{folder}: is no checkpoint of a streaming query: it has no offsets and commits.")
    if found.of_second_format:
        raise CheckpointError(f"{folder}: has state of checkpoint format 2, which cannot be repaired here. {ANEW}")
    if unreadable := found.unreadable():
        raise CheckpointError(f"{folder}: every restart reads {_names(folder, unreadable)}, and cannot. {ANEW}")
    newest = max([*found.commits, *found.offsets], default=None)
    if newest is None or not found.commits:
        return None if newest is None or found.sound(folder / OFFSETS / "0") else _nothing_left(found)
    batch = next((one for one in reversed(found.commits) if found.can_go_on_from(one)), None)
    if batch is None:
        return _nothing_left(found)
    in_the_way = found.in_the_way(batch)
    plan = folder / OFFSETS / str(batch + 1)
    planned_only = batch == found.commits[-1] and newest <= batch + 1 and (newest == batch or found.sound(plan))
    if planned_only:
        return Diagnosis(batch, _damage(found), in_the_way, [], exact=True) if in_the_way else None
    kept = {plan} if found.sound(plan) else set()
    later = [one for one in found.batch_files() if one.batch > batch and one.path not in kept]
    logs = [[one.path for one in sorted(later, key=_newest_first) if one.path.parent.name == log] for log in _LOGS]
    state = [one.path for one in later if one.path.parent.name not in _LOGS]
    moving = [*dict.fromkeys([*in_the_way, *state, *itertools.chain(*logs)])]
    again = sorted({one for one in (*found.offsets, *found.commits) if one > batch})
    return Diagnosis(batch, _damage(found), moving, again, again in ([], [batch + 1]) and (not again or bool(kept)))


def repair_checkpoint(folder: Path, keyed: bool = False) -> tuple[Diagnosis, Path] | None:
    """Move what keeps a query from going on into a folder beside its checkpoint.

    Args:
        folder: of the checkpoint; its query has ended, and what would start it again.
        keyed: whether its sink replaces whole results by key, so that batches may be cut otherwise than they were.

    Returns:
        What was found, and the folder with all that was moved; None: nothing keeps it from going on.

    Raises:
        CheckpointError: as `diagnose`; something writes to it; it has links; or its sink would have to be keyed.
        OSError: a file cannot be read or moved.
    """
    folder = folder.resolve()
    _refuse_links(folder)
    before = _refuse_use(folder)
    found = diagnose(folder)
    if found is None:
        return None
    if found.batch is None:
        raise CheckpointError(f"{folder}: no batch is left from which it can go on ({_told(folder, found)}). {ANEW}")
    if not found.exact and not keyed:
        raise CheckpointError(
            f"{folder}: {_told(folder, found)}. It could go on after batch {found.batch}, but batches "
            f"{found.again[0]} to {found.again[-1]} would not all read what they had read. Where the sink replaces "
            f"whole results by key: tidecast job repair {shlex.quote(str(folder))} --keyed-sink. Any other (Delta, "
            f"files, merged tables, topics between queries) would skip or repeat records. {ANEW}"
        )
    if _last_write(folder) != before:
        raise CheckpointError(f"{folder}: is written to. End its query, and whatever starts it again.")
    aside = free_name(folder)
    for file in found.moving:
        _move(file, folder, aside)
    return found, aside


def describe_repair(folder: Path, done: tuple[Diagnosis, Path] | None) -> str:
    """Say in a few lines what was done, for people."""
    if done is None:
        return f"{folder}: nothing keeps its query from going on; left as it is."
    found, aside = done
    again = "No batch is run again."
    if found.again:
        which = "is run again" if found.exact else f"to {found.again[-1]} are run again, cut otherwise than they were"
        again = f"Batch {found.again[0]} {which}: start the query while its source still has their records."
    return (
        f"{folder}: {_told(folder, found)}.\nThe query goes on after batch {found.batch}. {again}\n"
        f"{len(found.moving)} files were moved to {aside}."
    )


def remedy_of(folder: Path, keyed: bool = False) -> str:
    """Say what helps where a query has failed; nothing where its checkpoint does not keep it from going on.

    Args:
        folder: of the checkpoint.
        keyed: as `repair_checkpoint`.
    """
    try:
        found = diagnose(folder)
    except CheckpointError as error:
        return str(error) if (folder / OFFSETS).is_dir() else ""
    except OSError:  # what the query failed of is told, and matters more
        return ""
    if found is None:
        return ""
    if found.batch is None or not (found.exact or keyed):
        return f"Its checkpoint keeps it from going on: {_told(folder, found)}. {ANEW}"
    option = "" if found.exact else " --keyed-sink"
    return (
        f"Its checkpoint keeps it from going on: {_told(folder, found)}. This goes back to batch {found.batch}, and "
        f"deletes nothing:\n  tidecast job repair {shlex.quote(str(folder))}{option}"
    )


def free_name(folder: Path) -> Path:
    """Return where a damaged folder, or what is damaged of it, can be put beside it: the first name that is free."""
    names = (folder.with_name(f"{folder.name}.damaged-{number}") for number in itertools.count(1))
    return next(name for name in names if not name.exists())


_LOGS = (COMMITS, OFFSETS)
"""In the order in which they are moved: a commit without an offset is refused by Spark, and by a second repair."""


def _newest_first(one: tuple[Path, int]) -> int:
    return -one[1]


def _nothing_left(found: Checkpoint) -> Diagnosis:
    return Diagnosis(None, _damage(found), [], sorted({*found.offsets, *found.commits}), exact=False)


def _damage(found: Checkpoint) -> list[Path]:
    """Files of batches that are damaged, and snapshots that lack a file."""
    files = (one.path for one in found.batch_files())
    return sorted(one for one in files if not (found.whole(one) if one.suffix == ".zip" else found.sound(one)))


def _told(folder: Path, found: Diagnosis) -> str:
    names = _names(folder, found.damaged)
    return f"damaged: {names}" if names else "files of batches are missing"


def _names(folder: Path, files: list[Path]) -> str:
    names = [str(one.relative_to(folder)) for one in files]
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + rest


def _refuse_links(folder: Path) -> None:
    if linked := next((one for one in folder.rglob("*") if one.is_symlink()), None):
        raise CheckpointError(f"{linked}: is a link; repair the checkpoint where its files are.")


def _refuse_use(folder: Path) -> float:
    """When it was last written to, epoch seconds, where that is a while ago."""
    last = _last_write(folder)
    if 0 <= (quiet := time.time() - last) < QUIET_S:
        raise CheckpointError(
            f"{folder}: was written to {quiet:.0f} s ago. End its query, and whatever starts it again, and repeat this "
            f"{QUIET_S:.0f} s later."
        )
    return last


def _last_write(folder: Path) -> float:
    return max((one.stat().st_mtime for one in folder.rglob("*") if one.is_file()), default=0.0)


def _move(file: Path, folder: Path, aside: Path) -> None:
    """Move a file and the checksums of it, Hadoop's and Spark's own, to the same place in another folder."""
    sums = file.with_name(f"{file.name}.crc")
    for one in (file, file.with_name(f".{file.name}.crc"), sums, sums.with_name(f".{sums.name}.crc")):
        if one.exists():
            target = aside / one.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            one.rename(target)
