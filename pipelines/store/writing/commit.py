"""Writing: a list of events in one LMDB transaction, each with its own ts; the memory changes only once it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lmdb

from pipelines.store.disk.environment import LmdbEnvironment, translated
from pipelines.store.disk.errors import Fenced, StoreError, StoreFull
from pipelines.store.disk.layout import HEAD, ID, PAIR, Head, pack_head
from pipelines.store.disk.memory import KeyState, Side, WriterMemory
from pipelines.store.disk.records import packed
from pipelines.store.disk.retention import SLACK, retire
from pipelines.store.writing.event import Event

FORGOTTEN = 64
"""Sent entries that one commit deletes, at most: the deletion of many needs more free pages than a full map has."""


def fence(txn: Any, env: LmdbEnvironment, epoch: int) -> None:
    """Refuse to write where a later writer has opened the store.

    Raises:
        Fenced: it has.
    """
    found = env.head(txn).epoch
    if found != epoch:
        raise Fenced(f"{env.folder}: writer {found} has taken over from writer {epoch}; this one must end")


def next_ts(now: int, last: int) -> int:
    """The ts of a commit: the clock's time, but always above the last (seed section 5)."""
    return max(now, last + 1)


def commit(memory: WriterMemory, persistent: bool, events: Sequence[Event], now: int, low: int = 0) -> None:
    """Commit the events in order; with no events, move the frontier to `now` and the bound of as-of reads to `low`.

    Raises:
        StoreFull: no space; nothing of it was written.
        Fenced: a later writer has taken over.
        StoreError: an interrupt (as by ctrl-C) fell into an earlier commit.
    """
    if memory.unsure:
        raise StoreError("an interrupt fell into a commit, whose fate is unknown. Close the store and open it again.")
    try:
        _commit(memory, persistent, events, now, low)
    except StoreFull:  # of pages, perhaps, that only wait for the next flush
        memory.synced.keep(*memory.synced.newest())
        _commit(memory, persistent, events, now, low)


def _commit(memory: WriterMemory, persistent: bool, events: Sequence[Event], now: int, low: int) -> None:
    memory.unsure = True
    side = memory.side(persistent)
    env, ts = side.env, memory.ts
    try:
        with env.lmdb.begin(write=True) as txn:
            fence(txn, env, memory.epoch)
            entry, fresh = side.next_entry, _name_keys(txn, side, events)
            for event in events:
                event.ts = ts = next_ts(now, ts)
                _put_objects(txn, env, memory.epoch, event)
                for name, value in event.meta.items():
                    txn.put(name.encode(), value, db=env.meta)
                for waiting in event.entries:
                    txn.put(ID.pack(entry), waiting, db=env.outbox)
                    entry += 1
            retired = _retire(txn, env, events)
            ts = max(now, ts)
            forgotten = len(side.sent[:FORGOTTEN])
            for number in side.sent[:forgotten]:
                txn.delete(ID.pack(number), db=env.outbox)
            sealed = ts if persistent else memory.durable.head.ts
            head = Head(ts, memory.flushed, max(low, side.head.low), memory.epoch, sealed)
            txn.put(HEAD, pack_head(head), db=env.meta)
    except BaseException as error:
        _unname_keys(events)
        memory.unsure = not isinstance(error, lmdb.Error | StoreError)
        if isinstance(error, lmdb.Error):
            raise translated(error, env.name) from error
        raise
    side.head, side.next_entry, memory.ts = head, entry, ts
    side.next_key += fresh
    del side.sent[:forgotten]
    for event in events:
        for staged in event.staged.values():
            state = staged.state
            state.version = staged.version
            state.count += 1
            state.puts += 1
            memory.keys[state.key] = state
    for state, gone in retired:
        state.count -= gone
    memory.unsure = False


def _name_keys(txn: Any, side: Side, events: Sequence[Event]) -> int:
    """Give an id to each key that is put for the first time; how many there were."""
    number = side.next_key
    for event in events:
        for key, staged in event.staged.items():
            if not staged.state.prefix:
                staged.state.prefix = ID.pack(number)
                txn.put(key.encode(), staged.state.prefix, db=side.env.keys)
                number += 1
    return number - side.next_key


def _unname_keys(events: Sequence[Event]) -> None:
    for event in events:
        for staged in event.staged.values():
            if staged.state.version < 0:
                staged.state.prefix = b""


def _put_objects(txn: Any, env: LmdbEnvironment, epoch: int, event: Event) -> None:
    ts, log, put = event.ts, env.log, txn.put
    for state, version, value, event_time, flags in event.staged.values():
        place = state.prefix + PAIR.pack(ts, version)
        put(place, packed(place, ts if event_time is None else event_time, epoch, flags, value), db=log)


def _retire(txn: Any, env: LmdbEnvironment, events: Sequence[Event]) -> list[tuple[KeyState, int]]:
    """Delete what the keys put here outgrew, each key once in SLACK puts; (state, how many went)."""
    puts: dict[KeyState, int] = {}
    for event in events:
        for staged in event.staged.values():
            if staged.state.keep is not None:
                puts[staged.state] = puts.get(staged.state, 0) + 1
    retired = []
    for state, more in puts.items():
        keep = state.keep
        if keep is None or state.puts // SLACK == (state.puts + more) // SLACK:
            continue
        surplus = 0 if keep.versions is None else state.count + more - keep.versions
        before = 0 if keep.seconds is None else events[-1].ts - int(keep.seconds * 1e9)
        retired.append((state, retire(txn, env, state.prefix, surplus, before)))
    return retired
