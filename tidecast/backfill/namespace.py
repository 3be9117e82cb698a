"""The folder beside a live table in which its backfills lie: what there is of them, and who runs which.

`<table>.backfills/<id>/` holds the spec, the lease, the shadow table, the replay's checkpoint, what its micro-batches
told and the copy of a range of a table. A lease is a lock that the operating system takes back when its process ends,
however it ends. It holds on one computer, and on a network file system that hands locks on.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidecast.backfill.spec import BackfillError, Spec
from tidecast.replay.replayable import HeldElsewhereError
from tidecast.spark.file_system import write_whole

log = logging.getLogger("tidecast")

SPEC, LEASE, SHADOW, CHECKPOINT, KEPT, RANGE = "spec.json", "lease", "shadow", "position", "kept", "range"
SENT = "sent"
"""Of one that has begun to send its results to a topic."""
_EARLIER = "checkpoint"
"""Of a release whose replays merged each micro-batch: neither goes on from the other's, but begins anew."""
# The spec first: what an interrupted removal leaves is no backfill any more, and goes with the next one of the name.
WRITTEN = (SHADOW, CHECKPOINT, _EARLIER, KEPT, RANGE, SENT)
"""What a replay writes; it begins without them."""
ENDED = ".ended"
"""Of all of them: when each one ended, in a file by its id."""
_OWN = (SPEC, f"{SPEC}.new", *WRITTEN, LEASE)


class LeaseError(BackfillError, HeldElsewhereError):
    """A backfill that another process, or an agent of this one that is ending, has its lease of."""


def namespace(table: Path) -> Path:
    """Return the folder of a table's backfills."""
    return table.with_name(f"{table.name}.backfills")


def folder(table: Path, name: str) -> Path:
    """Return the folder of one of them."""
    return namespace(table) / name


@contextmanager
def alone(table: Path) -> Iterator[None]:
    """Keep all others from beginning and ending backfills of a table meanwhile; waits for its turn.

    Raises:
        OSError: the folder cannot be made or locked.
    """
    namespace(table).mkdir(parents=True, exist_ok=True)
    lock = os.open(namespace(table) / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def take_lease(table: Path, name: str) -> int:
    """Take a backfill's lease; returns the open file, with which it ends.

    Raises:
        LeaseError: it runs elsewhere, or an agent of this process that is ending has it still.
        OSError: the file cannot be made.
    """
    path = folder(table, name) / LEASE
    path.parent.mkdir(parents=True, exist_ok=True)
    lease = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(lease, 100).decode(errors="replace").strip() or "unknown"
        os.close(lease)
        if holder == str(os.getpid()):
            raise LeaseError(f"backfill {name} of {table} is still running in this process: it is waited for") from None
        raise LeaseError(
            f"backfill {name} of {table} is running in process {holder}: wait for it, or end that process"
        ) from None
    os.truncate(lease, 0)
    os.pwrite(lease, str(os.getpid()).encode(), 0)
    return lease


@contextmanager
def for_now(table: Path, name: str) -> Iterator[Path]:
    """Give a folder of a name's own that is empty, and goes with what was written.

    Raises:
        BackfillError: another process has it just now.
        OSError: the folder cannot be made.
    """
    lease = take_lease(table, name)
    try:
        discard(table, name, *WRITTEN)  # of one that was killed
        yield folder(table, name)
    finally:
        remove(table, name)
        os.close(lease)


def runs(table: Path, name: str) -> bool:
    """Return whether a process holds a backfill's lease."""
    try:
        lease = os.open(folder(table, name) / LEASE, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(lease)


def read_spec(table: Path, name: str) -> Spec | None:
    """Return what is known of a backfill; None for nothing.

    Raises:
        BackfillError: its spec is broken.
    """
    path = folder(table, name) / SPEC
    try:
        return Spec.from_json(path.read_text())
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise BackfillError(f"{path} is no spec of a backfill ({error}): remove {path.parent}") from None


def has_begun(table: Path, name: str) -> bool:
    """Return whether a backfill's replay has begun to read by micro-batches, and goes on where it was.

    Raises:
        BackfillError: as `read_spec`.
    """
    known = read_spec(table, name)  # without one, or with that of one that is over, it begins anew
    return known is not None and known.state == "open" and (folder(table, name) / CHECKPOINT).is_dir()


def write_spec(table: Path, spec: Spec) -> None:
    """Put a spec in place of the one before: all of it or nothing, also where the computer fails meanwhile.

    Raises:
        OSError: it cannot be written; the one before stands then.
    """
    write_whole(folder(table, spec.name) / SPEC, spec.to_json())


def specs(table: Path) -> list[Spec]:
    """Return all backfills of a table, by name.

    Raises:
        BackfillError: a spec is broken.
    """
    names = sorted(path.parent.name for path in namespace(table).glob(f"*/{SPEC}"))
    return [spec for name in names if (spec := read_spec(table, name)) is not None]


def note_end(table: Path, name: str, wall_time: float) -> None:
    """Note when a backfill ended, epoch seconds: what orders it from before then orders nothing any more.

    Raises:
        OSError: it cannot be written.
    """
    path = namespace(table) / ENDED / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, repr(wall_time))


def end_of(table: Path, name: str) -> float:
    """Return when a backfill of this id ended last, epoch seconds; 0 where that was never noted."""
    try:
        return float((namespace(table) / ENDED / name).read_text())
    except (OSError, ValueError):
        return 0.0


def remove(table: Path, name: str) -> None:
    """Remove what a backfill has made of its own; whatever else lies in its folder stays, and the folder with it."""
    own = folder(table, name)
    discard(table, name, *_OWN)
    if own.is_dir() and not any(own.iterdir()):
        own.rmdir()


def remove_published(table: Path, name: str) -> None:
    """Remove what a backfill has made whose results are all out; what cannot be removed goes when it begins anew."""
    try:
        with alone(table):
            discard(table, name, SPEC, SENT)  # before all that may be stuck, or a part only would count as sent
            remove(table, name)
    except OSError as error:
        log.warning("what backfill %s has made beside %s stays until it begins anew: %s", name, table, error)


def discard(table: Path, name: str, *parts: str) -> None:
    """Remove parts of what a backfill has made, where they are."""
    for part in parts:
        path = folder(table, name) / part
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def discard_written(table: Path, name: str) -> None:
    """Remove all but the spec of a backfill that is published; what cannot be removed goes when it begins anew."""
    for part in WRITTEN:
        try:
            discard(table, name, part)
        except OSError as error:
            log.warning("%s of backfill %s beside %s stays until it begins anew: %s", part, name, table, error)
