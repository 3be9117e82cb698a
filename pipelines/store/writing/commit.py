"""Transactions: a list of events in one, each with its own ts; the memory changes only once it stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import lmdb

from pipelines.store.disk.environment import LmdbEnvironment, as_store_error
from pipelines.store.disk.errors import BadKey, MissingMember, MustReopen, StoreError, StoreFull
from pipelines.store.disk.layout import HEAD, ID, Head, pack_head
from pipelines.store.disk.limits import check_key
from pipelines.store.disk.retention import delete_oldest
from pipelines.store.writing.event import Event
from pipelines.store.writing.memory import KeyState, WriterMemory
from pipelines.store.writing.transaction import fence, name_keys, put_event, retire_versions

FORGOTTEN = 64
"""Sent entries that one commit deletes, at most: the deletion of many needs more free pages than a full map has."""


def next_ts(now: int, last: int) -> int:
    """Return the time of the next commit (ns since the epoch): the clock's, but at least 1 ns above the last one."""
    return max(now, last + 1)


def commit_events(memory: WriterMemory, persistent: bool, events: Sequence[Event], now: int, low: int = 0) -> None:
    """Write events to one environment in one LMDB transaction, and set each event's `ts` (ns, rising in their order).

    The same transaction deletes up to 64 outbox entries already sent, and versions beyond a key's retention. Without
    events it moves the frontier (newest commit) to `now`. Where map or disk is full, it flushes to the disk and tries
    once more.

    Args:
        memory: the writer's; changed only if the transaction stands.
        persistent: into the durable environment (each commit waits for the disk), else into the hot one (flushed
            later).
        events: what to write; may be empty.
        now: the clock's time, ns since the epoch; events get at least 1 ns more than the newest commit.
        low: oldest time (ns) that as-of reads may ask for from now on; 0 leaves it as it is.

    Raises:
        StoreFull: no space; nothing was written.
        Fenced: a later writer has taken over; nothing was written.
        Closed: the store was closed.
        MustReopen: a write failed half-way, or an interrupt such as ctrl-C fell into an earlier commit, so that nobody
            knows whether that one stands.
        StoreError: LMDB or the disk refuses.
    """
    if memory.commit_unknown:
        raise MustReopen("an interrupt fell into a commit, whose fate is unknown. Close the store and open it again.")
    try:
        _commit(memory, persistent, events, now, low)
    except StoreFull:  # of pages, perhaps, that only wait for the next flush
        memory.synced.sync_and_keep(*memory.synced.pin_newest())
        _commit(memory, persistent, events, now, low)


def _commit(memory: WriterMemory, persistent: bool, events: Sequence[Event], now: int, low: int) -> None:
    memory.commit_unknown = True
    side = memory.side(persistent)
    env, ts = side.env, memory.ts
    try:
        with env.lmdb.begin(write=True) as txn:
            fence(memory, env, txn)
            entry, fresh = side.next_outbox_number, name_keys(txn, side, events)
            for event in events:
                event.ts = ts = next_ts(now, ts)
                entry = put_event(txn, env, event, memory.epoch, entry)
            retired = retire_versions(txn, env, events)
            ts = max(now, ts)
            forgotten = side.sent[:FORGOTTEN]
            for number in forgotten:
                txn.delete(ID.pack(number), db=env.outbox)
            sealed = ts if persistent else memory.durable.head.ts
            head = Head(ts, memory.flushed, max(low, side.head.low), memory.epoch, sealed)
            txn.put(HEAD, pack_head(head), db=env.meta)
    except BaseException as error:
        for event in events:
            for staged in event.staged.values():
                if staged.state.version < 0:
                    staged.state.prefix = b""
        memory.commit_unknown = not isinstance(error, lmdb.Error | StoreError)
        if isinstance(error, lmdb.Error):
            raise as_store_error(error, env.name) from error
        raise
    side.head, side.next_outbox_number, memory.ts = head, entry, ts
    side.next_key += fresh
    del side.sent[: len(forgotten)]
    _note_puts(memory, events)
    for state, gone in retired:
        state.count -= gone
    memory.commit_unknown = False
    if not persistent:
        memory.synced.count_commit()


def _note_puts(memory: WriterMemory, events: Sequence[Event]) -> None:
    for event in events:
        for staged in event.staged.values():
            state = staged.state
            state.version = staged.version
            state.count += 1
            state.puts += 1
            memory.keys[state.key] = state


@contextmanager
def _writing(memory: WriterMemory, env: LmdbEnvironment) -> Iterator[Any]:
    """A transaction, committed at the end unless a later writer has opened the store; errors are the store's."""
    try:
        with env.lmdb.begin(write=True) as txn:
            fence(memory, env, txn)
            yield txn
    except lmdb.Error as error:
        raise as_store_error(error, env.name) from error


def prepare_flush(memory: WriterMemory) -> int:
    """Delete the sent outbox entries, 64 per commit, and return the newest commit's time (ns since the epoch).

    If nothing was committed since the last flush, an empty commit moves the frontier of the idle store to now.

    Raises:
        StoreFull, Fenced, Closed, StoreError: no space, a later writer, a closed store, or the disk refuses.
    """
    idle = memory.ts <= memory.flushed
    while idle or memory.hot.sent:  # of which a commit deletes some
        commit_events(memory, False, (), memory.clock())
        idle = False
    return memory.ts


def declare_set(memory: WriterMemory, affinity: str, members: Iterable[str]) -> None:
    """Store for good which keys make up an affinity set (put together or not at all); the same again does nothing.

    Waits for the disk.

    Args:
        memory: the writer's; knows the set once it is stored.
        affinity: name of the set, a path.
        members: its keys, in any order; repeated ones count once.

    Raises:
        BadKey: the name or a member is no path, the set was declared with other members, or a member belongs to another
            set.
        MissingMember: no members are given.
        Fenced, StoreFull, Closed, StoreError: nothing was written.
    """
    check_key(affinity)
    wanted = frozenset(members)
    for key in wanted:
        check_key(key)
        if memory.affinity_of(key) not in (None, affinity):
            raise BadKey(f"{key} is a member of set {memory.affinity_of(key)} already; a key has one set")
    known = memory.sets.get(affinity)
    if known == wanted:
        return
    if known is not None:
        raise BadKey(f"set {affinity} was declared as {sorted(known)}; declare other members under another name")
    if not wanted:
        raise MissingMember(f"set {affinity}: no members")
    env = memory.durable.env
    with _writing(memory, env) as txn:
        txn.put(affinity.encode(), "\n".join(sorted(wanted)).encode(), db=env.sets)
    memory.sets[affinity] = wanted
    for key in wanted & memory.keys.keys():
        memory.keys[key].affinity = affinity


def forbid_reads_before(memory: WriterMemory, t: int) -> int:
    """Make reads as of a time below `t` raise `Pruned` from now on, in both environments; deletes nothing.

    A bound that is set never falls.

    Args:
        memory: the writer's.
        t: ns since the epoch.

    Returns:
        The bound in ns: `t`, or the time of the newest commit where that is lower.

    Raises:
        StoreFull, Fenced, Closed, StoreError: no space, a later writer, a closed store, or the disk refuses;
            one environment may have the bound already.
    """
    bound = min(t, memory.ts)
    for persistent in (False, True):  # an empty commit writes the head, and the bound with it
        if bound > memory.side(persistent).head.low:
            commit_events(memory, persistent, (), 0, bound)
    return bound


def prune_key(memory: WriterMemory, state: KeyState, before: int) -> None:
    """Delete the key's versions that no read as of `before` (ns since the epoch) or later needs, in one transaction.

    Raises:
        Fenced, StoreError: nothing was deleted.
    """
    env = memory.side(state.persistent).env
    with _writing(memory, env) as txn:
        state.count -= delete_oldest(txn, env, state.prefix, 0, before)
