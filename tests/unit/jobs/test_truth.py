import json

from hypothesis import given
from hypothesis import strategies as st

from configs.sections import Kafka
from models.relation.aggregates import Aggregate
from models.relation.linear import tumbling
from models.relation.reducers import Count, RowOf, Sum
from pipelines.jobs import truth
from pipelines.jobs.events import LoadEvent
from pipelines.jobs.truth import Counted, compare_counts, count_windows, read_counts, true_windows
from pipelines.jobs.windows import WINDOW_MS, result_key, totals_per_key
from pipelines.kafka.broker import Record
from tests.fakes.plan_truths import SignedEvent, named, relation_of, results_of

entries = st.dictionaries(
    st.sampled_from("abcd"), st.fixed_dictionaries({"n": st.integers(1, 50), "seq_sum": st.integers(0, 1000)})
)
events = st.lists(st.builds(LoadEvent, st.integers(0, 99), st.floats(0, 5000), st.sampled_from("ab")), max_size=30)


def truth_of(live, corrected=None):
    right = {**live, **(corrected or {})}
    produced = sum(entry["n"] for entry in right.values())
    return {"produced": produced, "windows": {"live": live, "corrected": corrected or {}}}


def entry(n, seq_sum=0):
    return {"n": n, "seq_sum": seq_sum}


def none_but(**numbers):
    return {"lost": 0, "duplicated": 0, "late_dropped": 0, **numbers}


def test_events_are_counted_per_key_and_window_of_their_time_to_the_ms():
    counted = count_windows(
        [
            LoadEvent(1, 600.0, "a"),
            LoadEvent(2, 1199.999, "a"),
            LoadEvent(4, 1199.9996, "a"),  # its record says 1200
            LoadEvent(8, 599.0, "b"),
        ]
    )
    assert counted == {
        "word_count:a@600000-1200000": entry(2, 3),
        "word_count:a@1200000-1800000": entry(1, 4),
        "word_count:b@0-600000": entry(1, 8),
    }
    assert totals_per_key(counted, "word_count") == {"a": entry(3, 7), "b": entry(1, 8)}


@given(events)
def test_the_truth_is_the_reference_of_the_plan(events):
    signed = [SignedEvent(event.seq, round(round(event.time, 3) * 1000), event.key) for event in events]
    relation = relation_of([one._replace(seq=n * 100 + one.seq) for n, one in enumerate(signed)])  # all of them differ
    sums = Aggregate(RowOf((Count(), Sum()))).apply(tumbling(WINDOW_MS).apply(relation))
    numbered = [event._replace(seq=n * 100 + event.seq) for n, event in enumerate(events)]
    assert count_windows(numbered) == named("word_count", sums, ("n", "seq_sum"))


def test_what_is_withheld_is_missing_live_and_there_in_the_corrected_windows():
    live = [LoadEvent(1, 0.0, "a"), LoadEvent(2, 700.0, "a")]
    withheld = [LoadEvent(4, 1.0, "a"), LoadEvent(8, 2.0, "a"), LoadEvent(16, 3.0, "b")]
    first, second = result_key("word_count", "a", 0, 600_000), result_key("word_count", "a", 600_000, 1_200_000)
    assert true_windows(live, withheld) == {
        "live": {first: entry(1, 1), second: entry(1, 2)},
        "corrected": {first: entry(3, 13), result_key("word_count", "b", 0, 600_000): entry(1, 16)},
    }


@given(entries)
def test_equal_counts_lose_and_double_nothing(live):
    found = compare_counts(truth_of(live), Counted(live))
    assert found["produced"] == found["counted"]
    assert found == {"produced": found["produced"], "counted": found["counted"], **none_but()}


@given(entries, entries, entries)
def test_produced_less_dropped_less_lost_plus_doubled_is_counted(live, more, have):
    corrected = {name: entry(live.get(name, entry(0))["n"] + one["n"], 7) for name, one in more.items()}
    found = compare_counts(truth_of(live, corrected), Counted(have))
    kept = found["produced"] - found["late_dropped"]
    assert kept - found["lost"] + found["duplicated"] == found["counted"]


@given(entries, entries)
def test_both_truths_are_exact_and_each_window_may_be_either(live, more):
    corrected = {name: entry(live.get(name, entry(0))["n"] + one["n"], 7) for name, one in more.items()}
    truth, dropped = truth_of(live, corrected), sum(one["n"] for one in more.values())
    alone = compare_counts(truth, Counted(live))
    assert {name: alone[name] for name in none_but()} == none_but(late_dropped=dropped)
    right = compare_counts(truth, Counted({**live, **corrected}))
    assert {name: right[name] for name in none_but()} == none_but()
    half = dict([*corrected.items()][::2])
    left = sum(one["n"] for name, one in more.items() if name not in half)
    mixed = compare_counts(truth, Counted({**live, **half}))
    assert {name: mixed[name] for name in none_but()} == none_but(late_dropped=left)


def test_a_window_that_is_neither_as_live_nor_as_corrected_is_wrong():
    truth = truth_of({"a": entry(5, 50)}, {"a": entry(8, 80)})

    def told(have):
        found = compare_counts(truth, Counted({"a": have}))
        return found["lost"], found["duplicated"], found["late_dropped"]

    assert told(entry(4, 40)) == (1, 0, 3)
    assert told(entry(5, 51)) == (1, 1, 3)
    assert told(entry(6, 60)) == (2, 0, 0)
    assert told(entry(8, 81)) == (1, 1, 0)
    assert told(entry(9, 90)) == (0, 1, 0)


def test_lost_and_doubled_are_told_apart_by_window():
    found = compare_counts(
        truth_of({"a": entry(5), "b": entry(3)}), Counted({"a": entry(3), "b": entry(4), "c": entry(2)})
    )
    assert found == {"produced": 8, "counted": 9, **none_but(lost=2, duplicated=3)}


def test_equal_counts_of_other_records_are_not_equal():
    found = compare_counts(truth_of({"a": entry(2, 10)}), Counted({"a": entry(2, 11)}))
    assert (found["lost"], found["duplicated"]) == (1, 1)


def test_a_result_that_was_taken_back_is_none(monkeypatch):
    """As it is read: a record without a value has an empty one."""
    kept, gone = (result_key("word_count", key, 0, 600_000) for key in "ab")
    told = [(kept, entry(2, 3)), (gone, entry(1, 1)), (gone, None)]
    records = [
        Record("results", 0, at, key, b"" if one is None else json.dumps(one).encode(), 5.0)
        for at, (key, one) in enumerate(told)
    ]
    monkeypatch.setattr(truth, "read_records", lambda kafka, topic: iter(records))
    assert read_counts(Kafka(bootstrap="here:9092")).windows == {kept: entry(2, 3)}
    assert results_of(((one.key, one.value) for one in records), "word_count") == {kept: entry(2, 3)}
