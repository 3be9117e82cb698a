"""What a writer does beside events: declare sets, flush, prune. The caller holds the lock that a call needs."""

from __future__ import annotations

from collections.abc import Iterable

import lmdb

from pipelines.store.disk.environment import translated
from pipelines.store.disk.errors import BadKey, MissingMember
from pipelines.store.disk.limits import check_key
from pipelines.store.disk.memory import KeyState, WriterMemory
from pipelines.store.disk.retention import retire
from pipelines.store.writing.commit import commit, fence


def declare(memory: WriterMemory, affinity: str, members: Iterable[str]) -> None:
    """Store the members of an affinity set; the same again changes nothing."""
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
    try:
        with env.lmdb.begin(write=True) as txn:
            fence(txn, env, memory.epoch)
            txn.put(affinity.encode(), "\n".join(sorted(wanted)).encode(), db=env.sets)
    except lmdb.Error as error:
        raise translated(error, env.name) from error
    memory.sets[affinity] = wanted
    for key in wanted & memory.keys.keys():
        memory.keys[key].affinity = affinity


def advanced(memory: WriterMemory, now: int) -> int:
    """Move the frontier of an idle store to `now`; the ts that a flush makes safe."""
    idle = memory.ts <= memory.flushed
    while idle or memory.hot.sent:  # of which a commit deletes some
        commit(memory, False, (), now)
        idle = False
    return memory.ts


def lower_bound(memory: WriterMemory, t: int) -> int:
    """Refuse as-of reads below t (at most the frontier) from now on; the bound that holds then, of the hot side."""
    bound = min(t, memory.ts)
    for persistent in (False, True):
        if bound > memory.side(persistent).head.low:
            commit(memory, persistent, (), 0, bound)
    return bound


def prune_key(memory: WriterMemory, state: KeyState, before: int) -> None:
    """Delete the key's versions that no read at or after `before` needs."""
    env = memory.side(state.persistent).env
    try:
        with env.lmdb.begin(write=True) as txn:
            fence(txn, env, memory.epoch)
            state.count -= retire(txn, env, state.prefix, 0, before)
    except lmdb.Error as error:
        raise translated(error, env.name) from error
