"""An event: puts, meta and outbox entries that one transaction commits with one ts."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from pipelines.store.disk.errors import BadInput, BadKey, Conflict, MissingMember
from pipelines.store.disk.limits import (
    VALUE_BYTES,
    VERSION_MAX,
    check_event_time,
    check_flags,
    check_value,
    check_version,
)
from pipelines.store.disk.memory import KeyState
from pipelines.store.disk.records import APPLIED, DUPLICATE, STALE, StoredRecord, Verdict

NAME_CHARACTERS = 200


class Staged(NamedTuple):
    """A put that waits for the commit; `event_time` None stands for the ts."""

    state: KeyState
    version: int
    value: bytes
    event_time: int | None
    flags: int


class Book(Protocol):
    """What an event asks the writer; `known` are the keys that were put before."""

    known: dict[str, KeyState]

    def state_of(self, key: str, persistent: bool) -> KeyState: ...  # noqa: D102

    def members_of(self, affinity: str) -> frozenset[str] | None: ...  # noqa: D102

    def get(self, key: str, version: int | None = None) -> StoredRecord | None: ...  # noqa: D102

    def now(self) -> int: ...  # noqa: D102


class Host(Protocol):
    """Who commits an event: the writer, or a batch."""

    def begin(self) -> None: ...  # noqa: D102

    def finish(self, event: Event, good: bool) -> None: ...  # noqa: D102


class Event:
    """What one event writes. Leaving the `with` block commits it; leaving by an exception drops it whole.

    `ts` is set by the commit, `earlier` is what earlier events of the same transaction put, by key.
    """

    __slots__ = ("_book", "_host", "earlier", "entries", "meta", "persistent", "staged", "ts")

    def __init__(self, book: Book, host: Host, persistent: bool, earlier: Mapping[str, list[Staged]]) -> None:
        self._book = book
        self._host = host
        self.earlier = earlier
        self.persistent = persistent
        self.staged: dict[str, Staged] = {}
        self.meta: dict[str, bytes] = {}
        self.entries: list[bytes] = []
        self.ts = 0

    def put(self, key: str, value: bytes, version: int, event_time: int | None = None, flags: int = 0) -> Verdict:
        """Stage one object; the verdict is final, its effect comes with the commit.

        Raises:
            BadInput: a key, value, version or event time no store would take.
            Conflict: the version is stored with other bytes.
            MissingMember: the key belongs to a declared affinity set; put the set.
        """
        known = self._book.known.get(key)
        if (
            known is not None
            and type(version) is int
            and known.version < version <= VERSION_MAX
            and type(value) is bytes
            and len(value) <= VALUE_BYTES
            and event_time is None
            and flags == 0
            and known.affinity is None
            and known.persistent is self.persistent
            and key not in self.earlier
            and key not in self.staged
        ):  # what nearly every put is; all else is looked at with care, and every refusal comes from there
            self.staged[key] = Staged(known, version, value, None, 0)
            return APPLIED
        staged = self._examine(key, value, version, event_time, flags)
        if staged.state.affinity is not None:
            raise MissingMember(f"{key} is a member of set {staged.state.affinity}; put the whole set with put_set")
        verdict = self._verdict(staged)
        if verdict == APPLIED:
            self.staged[key] = staged
        return verdict

    def put_set(self, affinity: str, items: Mapping[str, bytes], version: int) -> Verdict:
        """Stage several objects that belong together, all or none; a declared set has exactly its members.

        Raises:
            MissingMember: a declared set's member is missing, or a stranger is among the items.
            Conflict: the members would meet different verdicts, or one is stored with other bytes.
        """
        members = self._book.members_of(affinity)
        if members is not None and members != items.keys():
            missing, strange = sorted(members - items.keys()), sorted(items.keys() - members)
            raise MissingMember(f"set {affinity}: missing {missing}, not of the set {strange}; put exactly its members")
        if not items:
            raise MissingMember(f"set {affinity}: no members were put")
        found = [self._examine(key, value, version, None, 0) for key, value in items.items()]
        for staged in found:
            if staged.state.affinity not in (None, affinity):
                raise MissingMember(f"{staged.state.key} is a member of set {staged.state.affinity}, not of {affinity}")
        verdicts = {self._verdict(staged) for staged in found}
        if len(verdicts) > 1:
            raise Conflict(f"set {affinity} version {version}: its members meet the verdicts {sorted(verdicts)}")
        (verdict,) = verdicts
        if verdict == APPLIED:
            self.staged.update((staged.state.key, staged) for staged in found)
        return verdict

    def set_meta(self, name: str, value: bytes) -> None:
        """Store bytes under a name (a cursor, partial sums), in the same transaction."""
        if not name or len(name) > NAME_CHARACTERS or not name.isascii() or not name.isprintable():
            raise BadKey(f"meta name {name!r:.120}: 1 to {NAME_CHARACTERS} printable ASCII characters are expected")
        check_value(name, value)
        self.meta[name] = value

    def outbox(self, entry: bytes) -> None:
        """Add an entry to be sent after the commit; it stays until `sent` is told of it."""
        check_value("outbox", entry)
        self.entries.append(entry)

    def _examine(self, key: str, value: bytes, version: int, event_time: int | None, flags: int) -> Staged:
        state = self._state(key)
        check_version(key, version)
        check_value(key, value)
        if flags:
            check_flags(key, flags)
        if event_time is not None:
            check_event_time(key, event_time, self._book.now())
        if key in self.staged:
            raise BadInput(f"{key} is put twice in one event; one ts can hold one version of it")
        return Staged(state, version, value, event_time, flags)

    def _state(self, key: str) -> KeyState:
        earlier = self.earlier.get(key)
        return earlier[-1].state if earlier else self._book.state_of(key, self.persistent)

    def _verdict(self, staged: Staged) -> Verdict:
        key, version, value = staged.state.key, staged.version, staged.value
        newest = staged.state.version
        stored: bytes | None = None
        for one in self.earlier.get(key, ()):
            newest = one.version
            if newest == version:
                stored = one.value
        if version > newest:
            return APPLIED
        if stored is None and version <= staged.state.version:
            record = self._book.get(key, version)
            stored = record.value if record is not None else None
        if stored is None:
            return STALE
        if stored != value:
            raise Conflict(f"{key}: version {version} is stored with other bytes; the first ones stay")
        return DUPLICATE

    def __enter__(self) -> Self:
        self._host.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._host.finish(self, kind is None)
