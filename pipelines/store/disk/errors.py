"""What the store refuses, by type: each error leaves the store as it was."""

from __future__ import annotations

from configs.errors import CorrectableError


class StoreError(CorrectableError):
    """Base of all errors of the store: it refuses, or cannot do what was asked."""


class BadInput(StoreError, ValueError):
    """An argument that is not valid, whatever the store holds; the caller is wrong and a retry fails again."""


class BadKey(BadInput):
    """A key or name that is not valid, was put to the other environment, or an affinity set that was never declared."""


class BadValue(BadInput):
    """A value that is not bytes, or is larger than the store takes."""


class BadVersion(BadInput):
    """A version that is no int from 0 to 2^63 - 1."""


class BadTime(BadInput):
    """A time that is no int from 0 to 2^63 - 1 (ns since the epoch), or lies more than 300 s ahead of the clock."""


class MissingMember(BadInput):
    """A put that does not hold exactly the members of its affinity set (keys put together or not at all)."""


class Conflict(StoreError):
    """The version is stored with other bytes, or the members of a set would get different verdicts."""


class NotStable(StoreError):
    """The time asked for is above the newest commit: a later commit could still change the answer."""


class Pruned(StoreError):
    """The time asked for lies below what is kept."""


class WriterPresent(StoreError):
    """Another process holds the lock; `pid` is its process, 0 where it could not be read."""

    def __init__(self, folder: str, pid: int) -> None:
        super().__init__(f"{folder}: process {pid} is the writer. End it first, or read through Reader.open.")
        self.pid = pid


class Fenced(StoreError):
    """A later writer has opened the store: this one can write no more."""


class MustReopen(StoreError):
    """A write failed half-way, or nobody knows whether it stands: only closing and opening the store helps."""


class StoreFull(StoreError):
    """The map or the disk is full; nothing of the transaction was kept and no event was acknowledged."""


class Corrupt(StoreError):
    """A database file or a record that is not what the store wrote."""


class OtherSchema(StoreError):
    """A file that another release wrote, whose values this one would misread."""


class Closed(StoreError):
    """The store or reader was closed."""
