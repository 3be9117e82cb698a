"""Versioned, time-indexed objects on LMDB: one writing process, many reading ones; the only importer of lmdb.

The writer: `Store.open(folder, map_bytes, keep=[Keep("/sample", versions=1000)], clock)`
    put(key, value, version, kind, event_time) -> "applied" | "duplicate" | "stale"; raises Conflict
    declare(affinity, members); put_set(affinity, {key: value}, version, kind)
    with event(kind) as e: e.put(...) e.put_set(...) e.set_meta(name, bytes) e.outbox(bytes): one transaction and ts,
        which is e.ts after it; with batch(kind) as b: with b.event() as e: ...: many events, a ts each, one transaction
    outbox() -> [(number, bytes)], mark_sent(numbers); set_meta, get_meta
    watch(prefix, callback): upcalls in the putting thread; trigger(key, value): also to them, nothing is stored
    flush(), prune(t), ahead_s(), close(); `Flusher(store)` flushes every 100 ms
Reading, in the writer and by `Reader.open(folder)` in any other process:
    get(key, version), get_at_time(key, t), snapshot(keys or affinity, t), list_versions(key, lo, hi),
    history(key, lo, hi), frontier() -> (ts, durable ts), low(), members(affinity),
    get_meta(name)
Kinds: "volatile" objects lie in the hot environment, which is not flushed on commit and can be rebuilt; "persistent"
ones in the durable environment, whose commits wait for the disk. Times are ns since the epoch. Keys are paths.
"""

from pipelines.store.disk.errors import BadInput as BadInput
from pipelines.store.disk.errors import Conflict as Conflict
from pipelines.store.disk.errors import Corrupt as Corrupt
from pipelines.store.disk.errors import Fenced as Fenced
from pipelines.store.disk.errors import MissingMember as MissingMember
from pipelines.store.disk.errors import MustReopen as MustReopen
from pipelines.store.disk.errors import NotStable as NotStable
from pipelines.store.disk.errors import OtherSchema as OtherSchema
from pipelines.store.disk.errors import Pruned as Pruned
from pipelines.store.disk.errors import StoreError as StoreError
from pipelines.store.disk.errors import StoreFull as StoreFull
from pipelines.store.disk.errors import WriterPresent as WriterPresent
from pipelines.store.disk.records import StoredRecord as StoredRecord
from pipelines.store.disk.retention import Keep as Keep
from pipelines.store.reading.reader import Reader as Reader
from pipelines.store.writing.event import Event as Event
from pipelines.store.writing.flusher import Flusher as Flusher
from pipelines.store.writing.writer import Store as Store
