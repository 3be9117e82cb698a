from collections import Counter

import numpy as np
import pytest

from models.relation.changelog import LogShape, draw_changelog, reorder
from models.relation.records import RelationError

SHAPE = LogShape(records=60, partitions=2, orphaned=0.1)


def drawn(seed=7, shape=SHAPE):
    return draw_changelog(shape, np.random.default_rng(seed))


def test_a_seed_gives_a_log_and_another_one_another():
    assert drawn() == drawn() != drawn(8)


def test_a_log_has_what_an_engine_stumbles_over():
    log = drawn()
    records = [(source, record) for source, record, _ in log.arrivals]
    assert {source for source, _ in records} == {"left", "right"}
    assert {record.origin for _, record in records} == {"live", "replay"}
    assert min(log.disorder_ms.values()) > 100
    seen, before = Counter(), 0
    for source, record in records:
        seen[source, record.fact] += record.mult
        before += seen[source, record.fact] < 0
    assert before > 5, "retractions before their insertions"
    assert any(net < 0 for relation in log.relations.values() for net in relation.values()), "orphans"
    keys = Counter(record.k for _, record in records)
    assert keys[0] > 1.5 * len(records) / SHAPE.keys, "a hot key"
    assert len({partition for *_, partition in log.arrivals}) == 2


def test_time_goes_forward_and_partitions_follow_keys():
    log = drawn()
    times = [record.t_i for _, record, _ in log.arrivals]
    assert times == sorted(times)
    assert len(log.batches) == SHAPE.batches
    assert all(partition == record.k % 2 for _, record, partition in log.arrivals)


def test_another_arrival_is_of_the_same_relations():
    log = drawn()
    other = reorder(log, np.random.default_rng(1))
    assert other.relations == log.relations
    assert [record.fact for _, record, _ in other.arrivals] != [record.fact for _, record, _ in log.arrivals]


def test_without_disorder_and_retractions_it_is_an_append_only_stream():
    log = drawn(shape=LogShape(sources=("only",), disordered=0.0, retracted=0.0, replayed=0.0))
    assert log.disorder_ms == {"only": 0}
    assert {(record.mult, record.origin, record.t_i - record.t_e) for _, record, _ in log.arrivals} == {(1, "live", 0)}


def test_bad_shapes_are_refused():
    with pytest.raises(RelationError, match=r"retracted of a change log, 1\.5: give a share from 0 to 1"):
        LogShape(retracted=1.5)
    with pytest.raises(RelationError, match="records of a change log, 0: give 1 or more"):
        LogShape(records=0)
