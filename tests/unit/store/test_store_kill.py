"""A writer that is killed at a random point: what it acknowledged is there, what is there is whole."""

import random

import pytest

from pipelines.store import Store
from tests.fakes.store_process import ROOMY, SET, StoreProcess, value_of

pytestmark = pytest.mark.study

KEYS = {
    "event": ("/sample/j/1s", "/state/j/1s", "/forecast/j/1s"),
    "set": SET,
    "decision": ("/decision/j",),
}


def killed(folder, after):
    """What the writer acknowledged before it was killed, so many answers and a moment on: the newest of each kind."""
    acknowledged = {}
    with StoreProcess(ROOMY, folder) as writer:
        writer.start("flood(store)")
        for _ in range(after):
            kind, version = writer.answer()
            acknowledged[kind] = version
        writer.kill()
        with pytest.raises(EOFError):
            while True:
                kind, version = writer.answer()
                acknowledged[kind] = version
    return acknowledged


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost_and_nothing_is_half(tmp_path, seed):
    draw = random.Random(seed)
    newest = {}
    for _ in range(3):
        newest |= killed(tmp_path, draw.randrange(800))
        with Store.open(tmp_path, map_bytes=1 << 30) as store:
            assert not list(tmp_path.glob("*.damaged*"))
            for kind, keys in KEYS.items():
                found = {key: store.history(key, most=10**6) for key in keys}
                for key, records in found.items():
                    assert all(record.value == value_of(key, record.version) for record in records)
                    assert [record.version for record in records] == [v for v, _ in store.list_versions(key)]
                times = {tuple((record.version, record.ts) for record in records) for records in found.values()}
                assert len(times) == 1, "the objects of one transaction have the same versions and times"
                last = [version for version, _ in times.pop()][-1:]
                assert (last or [0])[0] >= newest.get(kind, 0)
            sample = store.get("/sample/j/1s")
            if sample is not None:
                assert store.get_meta("cursor") == b"%d" % sample.version
                entries = [int(entry) for _, entry in store.outbox()]
                assert entries == list(range(sample.version - len(entries) + 1, sample.version + 1))
                assert store.get_at_time("/sample/j/1s", sample.ts) == sample
