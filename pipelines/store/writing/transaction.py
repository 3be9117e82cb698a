"""What one transaction writes: ids of new keys, the events' records, and the deletion of what their keys outgrew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.errors import Fenced
from pipelines.store.disk.layout import ID, PAIR
from pipelines.store.disk.records import encode_record
from pipelines.store.disk.retention import delete_oldest
from pipelines.store.writing.event import Event
from pipelines.store.writing.memory import KeyState, Side, WriterMemory


def fence(memory: WriterMemory, env: LmdbEnvironment, txn: Any) -> None:
    """Refuse to write where a later writer has opened the store.

    Raises:
        Fenced: one has.
    """
    newest_writer = env.read_head(txn).epoch
    if newest_writer != memory.epoch:
        raise Fenced(
            f"{env.folder}: writer {newest_writer} has taken over from writer {memory.epoch}; this one must end"
        )


def name_keys(txn: Any, side: Side, events: Sequence[Event]) -> int:
    """Give an id to each key that is put for the first time; returns how many there were."""
    number = side.next_key
    for event in events:
        for key, staged in event.staged.items():
            if not staged.state.prefix:
                staged.state.prefix = ID.pack(number)
                txn.put(key.encode(), staged.state.prefix, db=side.env.keys)
                number += 1
    return number - side.next_key


def put_event(txn: Any, env: LmdbEnvironment, event: Event, epoch: int, entry: int) -> int:
    """Put an event's records at its `ts`, its settings, and its outbox entries from number `entry` on.

    Returns:
        The number of the next entry.
    """
    for state, version, value, event_time in event.staged.values():
        place = state.prefix + PAIR.pack(event.ts, version)
        when = event.ts if event_time is None else event_time
        txn.put(place, encode_record(place, when, epoch, value), db=env.log)
    for name, value in event.meta.items():
        txn.put(name.encode(), value, db=env.meta)
    for waiting in event.entries:
        txn.put(ID.pack(entry), waiting, db=env.outbox)
        entry += 1
    return entry


def retire_versions(txn: Any, env: LmdbEnvironment, events: Sequence[Event]) -> list[tuple[KeyState, int]]:
    """Delete what the keys put here outgrew, each key once in its rule's `slack`; returns (state, how many) of each."""
    puts: dict[KeyState, int] = {}
    for event in events:
        for staged in event.staged.values():
            if staged.state.keep is not None:
                puts[staged.state] = puts.get(staged.state, 0) + 1
    return [
        (state, delete_oldest(txn, env, state.prefix, state.count + more - state.keep.versions, 0))
        for state, more in puts.items()
        if state.keep is not None and state.puts // state.keep.slack != (state.puts + more) // state.keep.slack
    ]
