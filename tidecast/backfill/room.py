"""A full disk, said so that a person knows what stands and what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidecast.backfill.spec import BackfillError, Spec

_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_CODES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def refuse_full_disk(spec: Spec, doing: str, place: Path | None = None) -> Iterator[None]:
    """Turn errors of a disk that takes no more into one with a remedy; all others pass as they are.

    Args:
        spec: of the backfill that writes.
        doing: what could not be done, as "published".
        place: beside which it writes, where its results go to a topic; None: beside the table that they go to.

    Raises:
        BackfillError: there was no room.
    """
    try:
        yield
    except BackfillError:
        raise
    except Exception as error:
        full = isinstance(error, OSError) and error.errno in _CODES
        if not full and not any(text in str(error) for text in _FULL):
            raise
        there, stands = (spec.table, "the live table") if place is None else (place, f"topic {spec.table}")
        raise BackfillError(
            f"backfill {spec.words} cannot be {doing}: no room beside {there}; {stands} is as it was: free some space"
            " and go on with the same id"
        ) from error
