"""Events: puts, meta and outbox entries that one transaction commits, with one ts per event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from pipelines.store.disk.errors import BadInput, BadKey, Conflict, MissingMember
from pipelines.store.disk.limits import VALUE_BYTES, VERSION_MAX, check_event_time, check_value, check_version
from pipelines.store.disk.records import APPLIED, DUPLICATE, STALE, StoredRecord, Verdict
from pipelines.store.writing.memory import KeyState, WriterMemory

NAME_CHARACTERS = 200


class Staged(NamedTuple):
    """A put that waits for the commit; `event_time` is in ns since the epoch, None for the commit's own time."""

    state: KeyState
    version: int
    value: bytes
    event_time: int | None


class Host(Protocol):
    """What an `EventBatch` needs of its store: lock, commit and reads."""

    memory: WriterMemory

    def begin(self) -> None: ...  # noqa: D102

    def end(self, events: Sequence[Event], persistent: bool, good: bool) -> None: ...  # noqa: D102

    def get(self, key: str, version: int | None = None) -> StoredRecord | None: ...  # noqa: D102


class EventBatch:
    """Several events, each with its own commit time, that one transaction writes when the `with` block ends.

    An event left by an exception is dropped and the others stay; a batch left by an exception writes nothing.
    """

    def __init__(self, host: Host, persistent: bool) -> None:
        self.host, self.persistent = host, persistent
        self.earlier: dict[str, list[Staged]] = {}
        """What its events have put, by key."""
        self._events: list[Event] = []
        self._busy = False

    def event(self, alone: bool = False) -> Event:
        """Return a new event, for use as a `with` block; with `alone` it commits without the batch's block."""
        return Event(self, alone)

    def begin(self) -> None:
        """Mark an event of the batch as open; called when its `with` block begins.

        Raises:
            BadInput: another event of the batch is open.
        """
        if self._busy:
            raise BadInput("an event of the batch is open; finish it first")
        self._busy = True

    def end_event(self, event: Event, good: bool) -> None:
        """Mark the batch's open event as ended, when its `with` block ends.

        What it staged is kept for the batch's commit if `good`, else dropped; nothing is written yet.
        """
        self._busy = False
        if good:
            self._events.append(event)
            for key, staged in event.staged.items():
                self.earlier.setdefault(key, []).append(staged)

    def __enter__(self) -> Self:
        self.host.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Commit the events that ended well, unless the block is left by an exception; raises as `Store.put`."""
        self.host.end(self._events, self.persistent, kind is None)
        self._events, self.earlier = [], {}  # they know the batch: a circle would wait for the collector


class Event:
    """The writes of one event, committed together when its `with` block ends; leaving by an exception drops them all.

    Its `ts` (commit time, ns since the epoch) is 0 until then. In a batch it commits when the batch's block ends.
    """

    __slots__ = ("_alone", "_batch", "_memory", "entries", "meta", "staged", "ts")

    def __init__(self, batch: EventBatch, alone: bool) -> None:
        self._batch, self._memory, self._alone = batch, batch.host.memory, alone
        self.staged: dict[str, Staged] = {}
        self.meta: dict[str, bytes] = {}
        self.entries: list[bytes] = []
        self.ts = 0

    def put(self, key: str, value: bytes, version: int, event_time: int | None = None) -> Verdict:
        """Stage one version of an object; it is written when the event is committed.

        Args:
            key: a path such as `/sample/orders/all/60`.
            value: at most 64 MiB.
            version: 0 to 2^63 - 1.
            event_time: ns since the epoch, at most 300 s ahead of the clock; None for the commit's time.

        Returns:
            "applied" if the version is above the key's newest, also above those staged in the same batch; "duplicate"
            if it is stored with equal bytes; "stale" if it is older and not stored. Only "applied" writes.

        Raises:
            BadInput: key, value, version or event time is not valid (`BadKey`, `BadValue`, `BadVersion`, `BadTime`),
                the key was put with the other kind (volatile, persistent) before, or is put twice in this event.
            MissingMember: the key belongs to a declared affinity set; use `put_set`.
            Conflict: the version is stored with other bytes.
            Closed, StoreError: a stored version cannot be read to compare with (`Corrupt` where it is damaged).
        """
        known = self._memory.keys.get(key)
        if (
            known is not None
            and type(version) is int
            and known.version < version <= VERSION_MAX
            and type(value) is bytes
            and len(value) <= VALUE_BYTES
            and event_time is None
            and known.affinity is None
            and known.persistent is self._batch.persistent
            and key not in self._batch.earlier
            and key not in self.staged
        ):  # nearly every put; the checks below refuse nothing of it
            self.staged[key] = Staged(known, version, value, None)
            return APPLIED
        staged = self._examine(key, value, version, event_time)
        if staged.state.affinity is not None:
            raise MissingMember(f"{key} is a member of set {staged.state.affinity}; put the whole set with put_set")
        verdict = self._verdict(staged)
        if verdict == APPLIED:
            self.staged[key] = staged
        return verdict

    def put_set(self, affinity: str, items: Mapping[str, bytes], version: int) -> Verdict:
        """Stage one version of several objects that belong together, all or none.

        Args:
            affinity: name of the set; if it was declared, `items` must have exactly its members.
            items: value (`bytes` of at most 64 MiB) by key.
            version: the same for all, 0 to 2^63 - 1.

        Returns:
            The verdict that all members share, "applied", "duplicate" or "stale" as of `put`.

        Raises:
            MissingMember: no items, not exactly the declared members, or a key of another declared set.
            Conflict: the members' verdicts differ, or one is stored with other bytes.
            BadInput: a key, value or version is not valid, a key was put with the other kind before, or twice in this
                event.
            Closed, StoreError: a stored version cannot be read to compare with.
        """
        members = self._memory.sets.get(affinity)
        if members is not None and members != items.keys():
            missing, strange = sorted(members - items.keys()), sorted(items.keys() - members)
            raise MissingMember(f"set {affinity}: missing {missing}, not of the set {strange}; put exactly its members")
        if not items:
            raise MissingMember(f"set {affinity}: no members were put")
        puts = [self._examine(key, value, version, None) for key, value in items.items()]
        for staged in puts:
            if staged.state.affinity not in (None, affinity):
                raise MissingMember(f"{staged.state.key} is a member of set {staged.state.affinity}, not of {affinity}")
        verdicts = {self._verdict(staged) for staged in puts}
        if len(verdicts) > 1:
            raise Conflict(f"set {affinity} version {version}: its members meet the verdicts {sorted(verdicts)}")
        (verdict,) = verdicts
        if verdict == APPLIED:
            self.staged.update((staged.state.key, staged) for staged in puts)
        return verdict

    def set_meta(self, name: str, value: bytes) -> None:
        """Stage an unversioned value, such as a cursor, that replaces the one under its name; read it by `get_meta`.

        Args:
            name: 1 to 200 printable ASCII characters; volatile and persistent events have names of their own.
            value: `bytes` of at most 64 MiB.

        Raises:
            BadKey: no such name.
            BadValue: no bytes, or more than 64 MiB.
        """
        if not name or len(name) > NAME_CHARACTERS or not name.isascii() or not name.isprintable():
            raise BadKey(f"meta name {name!r:.120}: 1 to {NAME_CHARACTERS} printable ASCII characters are expected")
        check_value(name, value)
        self.meta[name] = value

    def outbox(self, entry: bytes) -> None:
        """Stage a message to be sent after the commit; it stays in the outbox until `Store.mark_sent` names its number.

        Raises:
            BadInput: the event is persistent; the outbox is that of volatile events.
            BadValue: no bytes, or more than 64 MiB.
        """
        if self._batch.persistent:
            raise BadInput("the outbox takes entries of volatile events only; nothing would send this one")
        check_value("outbox", entry)
        self.entries.append(entry)

    def _examine(self, key: str, value: bytes, version: int, event_time: int | None) -> Staged:
        earlier = self._batch.earlier.get(key)
        state = earlier[-1].state if earlier else self._memory.state_for_put(key, self._batch.persistent)
        check_version(key, version)
        check_value(key, value)
        if event_time is not None:
            check_event_time(key, event_time, self._memory.now())
        if key in self.staged:
            raise BadInput(f"{key} is put twice in one event; one ts can hold one version of it")
        return Staged(state, version, value, event_time)

    def _verdict(self, staged: Staged) -> Verdict:
        key, version = staged.state.key, staged.version
        earlier = self._batch.earlier.get(key, ())
        if version > max([staged.state.version, *(one.version for one in earlier)]):
            return APPLIED
        stored = next((one.value for one in earlier if one.version == version), None)
        if stored is None and version <= staged.state.version and (record := self._batch.host.get(key, version)):
            stored = record.value
        if stored is None:
            return STALE
        if stored != staged.value:
            raise Conflict(f"{key}: version {version} is stored with other bytes; the first ones stay")
        return DUPLICATE

    def __enter__(self) -> Self:
        (self._batch.host if self._alone else self._batch).begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._alone:
            self._batch.host.end((self,), self._batch.persistent, kind is None)
        else:
            self._batch.end_event(self, kind is None)
