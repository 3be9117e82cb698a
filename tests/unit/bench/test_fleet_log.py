"""The log that the autoscaler's query decides on twice: alike each time, and every difference of two runs counts."""

import json

from pipelines.bench.fleet.partitions import BEGUN_S, count_differing, decisions_of, record_log, time_of

UP, HOLD = (3, "up 1 → 3", ("up",)), (3, "hold 3", ("hold",))


def test_each_job_tells_of_itself_in_each_round_and_follows_what_is_decided():
    log, decided = record_log(4, 8)
    assert (log, decided) == record_log(4, 8)
    assert [{row["key"] for row in rows} for rows in log] == [{f"job-{number:04d}" for number in range(4)}] * 8
    assert {row["topic"] for rows in log for row in rows} == {"metrics", "forecasts"}
    assert all(decided[job] for job in decided) and len(decided) == 4
    assert max(json.loads(row["value"]).get("executors") or 0 for row in log[-1]) > 1


def test_the_clock_is_that_of_the_newest_record():
    rows = [{"value": json.dumps({"wall_time": at})} for at in (BEGUN_S + 2, BEGUN_S + 3.5, BEGUN_S)]
    assert time_of(rows) == BEGUN_S + 3.5


def test_every_place_counts_at_which_two_runs_differ():
    assert count_differing({"a": [UP, HOLD]}, {"a": [UP, HOLD]}) == 0
    assert count_differing({"a": [UP, HOLD]}, {"a": [HOLD, UP]}) == 2
    assert count_differing({"a": [UP, HOLD]}, {"a": [UP], "b": [UP]}) == 2
    assert count_differing({"a": [UP]}, {"a": [(3, "up 1 → 3", ("up", "forecast"))]}) == 1


def test_decisions_are_taken_from_what_is_sent():
    value = json.dumps({"executors": 3, "reason": "up 1 → 3", "codes": ["up"]})
    assert decisions_of([("heartbeats", "a", "{}"), ("decisions", "a", value)]) == {"a": [UP]}
