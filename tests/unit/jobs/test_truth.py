from hypothesis import given
from hypothesis import strategies as st

from pipelines.jobs.truth import compare_counts

entries = st.dictionaries(
    st.sampled_from("abcd"), st.fixed_dictionaries({"n": st.integers(1, 50), "seq_sum": st.integers(0, 1000)})
)


def truth_of(per_key):
    return {"produced": sum(entry["n"] for entry in per_key.values()), "per_key": per_key}


def entry(n, seq_sum=0):
    return {"n": n, "seq_sum": seq_sum}


@given(entries)
def test_equal_counts_lose_and_double_nothing(per_key):
    found = compare_counts(truth_of(per_key), per_key)
    assert (found["lost"], found["duplicated"]) == (0, 0)
    assert found["produced"] == found["counted"]


@given(entries, entries)
def test_produced_less_lost_plus_doubled_is_counted(want, have):
    found = compare_counts(truth_of(want), have)
    assert found["produced"] - found["lost"] + found["duplicated"] == found["counted"]


def test_lost_and_doubled_are_told_apart_by_key():
    found = compare_counts(truth_of({"a": entry(5), "b": entry(3)}), {"a": entry(3), "b": entry(4), "c": entry(2)})
    assert found == {"produced": 8, "counted": 9, "lost": 2, "duplicated": 3}


def test_equal_counts_of_other_records_are_not_equal():
    found = compare_counts(truth_of({"a": entry(2, 10)}), {"a": entry(2, 11)})
    assert (found["lost"], found["duplicated"]) == (1, 1)
