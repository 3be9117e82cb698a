"""What the store refuses, by type: each error leaves the store as it was."""

from __future__ import annotations

from configs.errors import CorrectableError


class StoreError(CorrectableError):
    """Anything the store refuses or cannot do."""


class BadInput(StoreError, ValueError):
    """A key, value, version or time that no store would take; the sender is wrong, and a retry changes nothing."""


class BadKey(BadInput):
    """A key that is no path of plain names, is too long, or lives in the other environment."""


class BadValue(BadInput):
    """A value that is not bytes, or is larger than the store takes."""


class BadVersion(BadInput):
    """A version that is no whole number of 0 to 2^63 - 1."""


class BadTime(BadInput):
    """A time that is no number of nanoseconds since the epoch, or lies in the far future."""


class MissingMember(BadInput):
    """An update of a declared affinity set that does not hold exactly the set's members."""


class Conflict(StoreError):
    """The version is stored with other bytes, or the members of a set would meet different verdicts."""


class NotStable(StoreError):
    """The time asked for lies above the frontier: the answer could still change."""


class Pruned(StoreError):
    """The time or version asked for lies below what is kept."""


class WriterPresent(StoreError):
    """Another process holds the lock; `pid` is its process, 0 where it could not be read."""

    def __init__(self, folder: str, pid: int) -> None:
        super().__init__(f"{folder}: process {pid} is the writer. End it first, or read through Reader.open.")
        self.pid = pid


class Fenced(StoreError):
    """A later writer has taken over: this one writes no more."""


class StoreFull(StoreError):
    """The map or the disk is full; nothing of the transaction was kept and no event was acknowledged."""


class Corrupt(StoreError):
    """A database file or a record that is not what the store wrote."""


class OtherSchema(StoreError):
    """A file that another release wrote, whose values this one would misread."""


class Closed(StoreError):
    """The store or reader was closed."""
