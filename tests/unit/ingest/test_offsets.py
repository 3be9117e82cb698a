"""Which offsets a partition takes: ranges tile the topic, a re-run takes its own again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.offsets import OffsetsError, Topic, plan_quarantine, plan_range
from pipelines.lake.tables import Origin


def topic(*ends: int, first: int = 0, id: str = "a") -> Topic:
    return Topic("metrics", "team.metrics", id, {p: (first, end) for p, end in enumerate(ends)})


def origin(partition: str, start: dict[int, int], end: dict[int, int], id: str = "a", judged_at: float = 5.0) -> Origin:
    return Origin("metrics", id, partition, start, end, judged_at, sum(end.values()), 0)


def test_the_first_run_takes_everything_and_the_next_what_came_since():
    first = plan_range(topic(10, 4), "h1", [], now=5.0)
    assert (first.start, first.end, first.records, first.is_rerun) == ({0: 0, 1: 0}, {0: 10, 1: 4}, 14, False)
    second = plan_range(topic(12, 4), "h2", [replace(origin("h1", first.start, first.end), version=7)], now=6.0)
    assert (second.start, second.end, second.records) == ({0: 10, 1: 4}, {0: 12, 1: 4}, 2)
    assert (first.behind, second.behind) == (-1, 7)


def test_a_rerun_takes_the_recorded_offsets_and_is_judged_by_the_first_runs_time():
    commits = [origin("h2", {0: 10}, {0: 12}), origin("h1", {0: 0}, {0: 10}, judged_at=5.0)]
    again = plan_range(topic(99), "h1", commits, now=1e9)
    assert (again.start, again.end, again.judged_at, again.is_rerun) == ({0: 0}, {0: 10}, 5.0, True)
    assert again.behind is None
    # A re-run of an old partition is the newest commit then, and moves no offsets back.
    assert plan_range(topic(99), "h3", list(reversed(commits)), now=6.0).start == {0: 12}


def test_a_partition_added_to_the_topic_is_read_from_its_beginning():
    assert plan_range(topic(10, 3), "h2", [origin("h1", {0: 0}, {0: 10})], now=6.0).start == {0: 10, 1: 0}


def test_a_topic_created_anew_starts_at_its_beginning():
    fresh = plan_range(topic(7, id="b"), "h2", [origin("h1", {0: 0}, {0: 10})], now=6.0)
    assert (fresh.start, fresh.end) == ({0: 0}, {0: 7})
    with pytest.raises(OffsetsError, match="new partition name"):
        plan_range(topic(7, id="b"), "h1", [origin("h1", {0: 0}, {0: 10})], now=6.0)


def test_records_beyond_retention_are_named_and_skipped_only_on_demand(caplog):
    commits = [origin("h1", {0: 0}, {0: 10})]
    with pytest.raises(OffsetsError, match=r"^team\.metrics-0: offsets 10 to 14 .*skip_lost"):
        plan_range(topic(20, first=15), "h2", commits, now=6.0)
    assert not caplog.messages
    assert plan_range(topic(20, first=15), "h2", commits, now=6.0, skip_lost=True).start == {0: 15}
    assert [line.partition(" were deleted")[0] for line in caplog.messages] == ["team.metrics-0: offsets 10 to 14"]
    assert caplog.messages[0].endswith("these 5 are skipped")
    with pytest.raises(OffsetsError, match="offsets 0 to 9, the broker has 5 to 19"):
        plan_range(topic(20, first=5), "h1", commits, now=6.0)


def test_an_unfinished_quarantine_takes_its_range_and_on_demand_what_is_left_of_it():
    begun = Origin("metrics", "a", "h1", {0: 2, 1: 0}, {0: 10, 1: 4}, 5.0, 9, 3)
    whole = plan_quarantine(topic(20, 20), begun)
    assert (whole.start, whole.end, whole.judged_at, whole.unfinished) == (begun.start, begun.end, 5.0, begun)
    with pytest.raises(OffsetsError, match=r"h1: its 3 refused .*team.metrics-0 offsets 2 to 9; .* 7 to 19.*lost.* 9 "):
        plan_quarantine(topic(20, 20, first=7), begun)
    some = plan_quarantine(topic(20, 20, first=7), begun, skip_lost=True)
    assert (some.start, some.end, some.records, some.is_due) == ({0: 7, 1: 7}, {0: 10, 1: 7}, 3, True)
    none = plan_quarantine(topic(20, 20, first=15), begun, skip_lost=True)
    assert (none.start, none.end, none.records, none.is_due) == ({0: 15, 1: 15}, {0: 15, 1: 15}, 0, True)
    short = plan_quarantine(topic(5, 1), begun, skip_lost=True)  # of a broker that lost the end
    assert (short.start, short.end) == ({0: 2, 1: 0}, {0: 5, 1: 1})


def test_a_topic_shorter_than_the_lake_is_refused():
    with pytest.raises(OffsetsError, match="holds offsets up to 10, the topic ends at 3"):
        plan_range(topic(3), "h2", [origin("h1", {0: 0}, {0: 10})], now=6.0)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 3)), min_size=1, max_size=12))
def test_ranges_tile_the_topic_whatever_is_run_again(steps):
    """However much arrives between runs, and whichever are repeated: no offset twice, none left out."""
    commits: list[Origin] = []
    ends, seen = [0, 0], []
    for i, (a, b, again) in enumerate(steps):
        ends = [ends[0] + a, ends[1] + b]
        taken = plan_range(topic(*ends), f"h{i}", commits, now=1.0)
        if taken.records:
            commits.insert(0, origin(f"h{i}", taken.start, taken.end))
            seen += [(p, o) for p in taken.end for o in range(taken.start[p], taken.end[p])]
        if again < len(commits):
            repeated = commits.pop(again)
            rerun = plan_range(topic(*ends), repeated.partition, [*commits, repeated], now=2.0)
            assert (rerun.start, rerun.end) == (repeated.start, repeated.end)
            commits.insert(0, repeated)
    assert sorted(seen) == [(p, o) for p in range(2) for o in range(ends[p])]
