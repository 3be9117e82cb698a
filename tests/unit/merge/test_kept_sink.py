"""A sink that is kept in its driver while its query is started again; the table is stood in for."""

from types import SimpleNamespace

import pytest

from tidecast.merge import MergeError, MergeSink, sink

QUERY = SimpleNamespace(sparkContext=SimpleNamespace(getLocalProperty=lambda name: "a query's id"))
BATCH = SimpleNamespace(sparkSession=QUERY, schema=None)


@pytest.fixture
def table(monkeypatch):
    """Its newest version, the micro-batches for which it was looked at, and what was merged, as maybe there already."""
    made = SimpleNamespace(newest=-1, looked=[], merged=[])

    def begin(self, rows, batch_id):
        made.looked.append(batch_id)
        if made.newest > batch_id:
            raise MergeError("the query's checkpoint is an older copy")
        return "its form"

    def upsert(form, rows, version, attempts, whole_from, repeated):
        made.newest = version
        made.merged.append((version, repeated))

    monkeypatch.setattr(MergeSink, "_begin", begin)
    for name, stand_in in (("results", lambda batch, keys: batch), ("check_values", lambda *_: None)):
        monkeypatch.setattr(sink, name, stand_in)
    monkeypatch.setattr(sink, "upsert", upsert)
    return made


def test_where_table_and_checkpoint_are_both_put_back_the_first_batch_alone_is_looked_for(table):
    kept = MergeSink("sales.hourly", ["shop"])
    for number in range(4):
        kept(BATCH, number)
    table.newest = 0
    for number in range(1, 6):
        kept(BATCH, number)
    assert table.looked == [0, 1]
    assert table.merged[4:] == [(1, True), (2, False), (3, False), (4, False), (5, False)]


def test_where_the_checkpoint_alone_is_put_back_it_is_refused_again_and_again(table):
    kept = MergeSink("sales.hourly", ["shop"])
    for number in range(4):
        kept(BATCH, number)
    for _ in range(2):
        with pytest.raises(MergeError, match="older copy"):
            kept(BATCH, 1)
    assert len(table.merged) == 4
