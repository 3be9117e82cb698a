import math

import pytest

from models.relation.records import END_OF_TIME, RelationError, SignedRecord, changes_of, merge, net, records_of
from tests.fakes.signed import minus, plus


def test_the_net_adds_signs_up_and_forgets_what_cancels():
    assert net([plus("a", 1, 10), plus("a", 1, 10), minus("a", 1, 10), plus("a", 1, 11), minus("b", 1, 10)]) == {
        ("a", 1, 10): 1, ("a", 1, 11): 1, ("b", 1, 10): -1,
    }  # fmt: skip
    assert not net([plus("a", 1, 10), minus("a", 1, 10)])


def test_arrival_and_origin_are_no_part_of_what_a_record_says():
    live, replayed = SignedRecord("a", 1, 10, 20), SignedRecord("a", 1, 10, 99, 1, "replay")
    assert net([live]) == net([replayed])
    assert not net([live, SignedRecord("a", 1, 10, 99, -1, "replay")])


def test_changes_become_as_many_records_as_their_net_with_the_newest_arrival():
    changes = merge({}, changes_of([plus("a", 1, 10, 5), plus("a", 1, 10, 9), minus("b", 2, 10, 7)]))
    assert list(records_of(changes.items())) == [plus("a", 1, 10, 9), plus("a", 1, 10, 9), minus("b", 2, 10, 7)]


def test_what_cancels_leaves_no_entry_behind():
    assert merge({}, changes_of([minus("a", 1, 10), plus("a", 1, 10), plus("b", 1, 10)])).keys() == {("b", 1, 10)}


def test_what_a_live_record_had_a_part_in_is_live():
    replayed = SignedRecord("a", 1, 10, 5, 1, "replay")
    (both,) = merge({}, changes_of([replayed, plus("a", 1, 10, 4)])).values()
    (alone,) = merge({}, changes_of([replayed, replayed])).values()
    assert both == (2, 5, "live") and alone == (2, 5, "replay")


@pytest.mark.parametrize("mult", [0, 2, -2, None])
def test_a_multiplicity_is_plus_or_minus_one(mult):
    with pytest.raises(RelationError, match=rf"multiplicity {mult} of record \(key 'a'.*give \+1"):
        SignedRecord("a", 1, 10, 0, mult)


@pytest.mark.parametrize("t_e", [None, math.nan, math.inf, 1.5, 1.0, True, "10", END_OF_TIME + 1, -END_OF_TIME - 1])
def test_an_event_time_is_whole_milliseconds(t_e):
    with pytest.raises(RelationError, match=r"event time .* of key 'a'.*drop or repair"):
        SignedRecord("a", 1, t_e, 0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"t_i": None}, "ingestion time None of record"),
        ({"origin": "batch"}, "origin 'batch' of record .* give 'live' or 'replay'"),
        ({"k": []}, r"key \[\] with value 1: .*give tuples"),
        ({"v": {}}, r"with value {}: .*give tuples"),
        ({"v": math.nan}, "NaN does not equal itself.*None"),
        ({"k": math.nan}, "NaN does not equal itself.*None"),
    ],
)
def test_what_cannot_be_compared_is_refused(wrong, message):
    with pytest.raises(RelationError, match=message):
        SignedRecord(**{"k": "a", "v": 1, "t_e": 10, "t_i": 0, **wrong})
