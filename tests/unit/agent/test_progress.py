import json

import pytest

from tidecast.spark.progress import ProgressReader, parse_offsets, parse_progress


def report(batch_id, rows=60, ran=True, end=120):
    durations = {"latestOffset": 13, "triggerExecution": 1702}
    if ran:
        durations["addBatch"] = 1504
    return {
        "runId": "r",
        "batchId": batch_id,
        "timestamp": "2023-11-14T22:13:20.500Z",
        "batchDuration": 1702,
        "numInputRows": rows,
        "durationMs": durations,
        "eventTime": {"watermark": "2023-11-14T22:13:00.000Z"},
        "stateOperators": [
            {"numRowsTotal": 7, "numShufflePartitions": 2},
            {"numRowsTotal": 3, "numShufflePartitions": 4},
        ],
        "sources": [
            {
                "description": "KafkaV2[Subscribe[events]]",
                "startOffset": {"events": {"0": 60}},
                "endOffset": json.dumps({"events": {"0": end}}),  # older Spark: JSON inside JSON
                "latestOffset": {"events": {"0": end + 5}},
            },
            {"description": "RateStreamV2", "startOffset": 3, "endOffset": 4, "latestOffset": None},
        ],
    }


def test_a_batch_is_read_from_its_report():
    batch = parse_progress(json.dumps(report(4)))
    assert (batch.batch_id, batch.run_id, batch.rows) == (4, "r", 60)
    assert batch.finished == pytest.approx(1_700_000_000.5 + 1.702)
    assert batch.latest_at == pytest.approx(1_700_000_000.5 + 0.013)
    assert (batch.starts, batch.ends, batch.latest) == ({("events", 0): 60}, {("events", 0): 120}, {("events", 0): 125})
    assert batch.watermark == 1_699_999_980.0
    assert batch.state_rows == 10
    assert batch.processed_rps == pytest.approx(60 / 1.702)
    assert batch.span == 60


@pytest.mark.parametrize(
    ("counted", "start", "end", "rows"),
    [
        (120, {"0": 60}, {"0": 120}, 60),  # Spark counts a record as often as it is read
        (60, {"0": 60}, {"0": 120}, 60),
        (45, {"0": 60}, {"0": 120}, 45),  # of a compacted topic, or a transactional one
        (0, {"0": 60}, {"0": 60}, 0),
        (260, {"0": 60}, {"0": 120, "1": 70}, 130),  # a partition that is new
        (90, {"0": 60, "1": 50}, {"0": 90, "1": 0}, 30),  # one that was made anew
        (120, None, {"0": 120}, 120),  # a query's first batch
    ],
)
def test_a_record_that_is_read_again_within_a_batch_counts_once(counted, start, end, rows):
    data = report(4, rows=counted + 7)
    data["sources"][0] |= {
        "numInputRows": counted, "startOffset": start and {"events": start}, "endOffset": {"events": end},
    }  # fmt: skip
    data["sources"][1]["numInputRows"] = 7
    assert parse_progress(json.dumps(data)).rows == rows + 7


def test_rows_that_a_query_counts_of_its_steps_are_read_and_other_observations_are_not():
    assert parse_progress(json.dumps(report(4))).operator_rows is None
    observed = {"tidecast.rows.parse": {"n": 58}, "tidecast.rows.views": {"n": 0}, "events": {"seen": 60}}
    batch = parse_progress(json.dumps({**report(4), "observedMetrics": observed}))
    assert batch.operator_rows == {"parse": 58, "views": 0}


def test_a_report_that_ran_no_batch_is_none():
    assert parse_progress(json.dumps(report(4, ran=False))) is None


def test_no_watermark_yet_is_none():
    data = report(4)
    data["eventTime"] = {"watermark": "1970-01-01T00:00:00.000Z"}
    assert parse_progress(json.dumps(data)).watermark is None
    data["eventTime"], data["stateOperators"] = {}, []
    batch = parse_progress(json.dumps(data))
    assert (batch.watermark, batch.state_rows) == (None, None)


@pytest.mark.parametrize("stamp", ["+58831-06-25T07:06:40.000Z", "58831-06-25T07:06:40.000Z"])
def test_a_watermark_of_a_year_that_python_has_not_is_none_and_the_batch_is_told(stamp):
    data = report(4)
    data["eventTime"] = {"watermark": stamp}
    batch = parse_progress(json.dumps(data))
    assert (batch.batch_id, batch.watermark) == (4, None)
    query = Query()
    query.reports.append(Report(data))
    assert [one.batch_id for one in ProgressReader(query).new_batches()] == [4]


@pytest.mark.parametrize(
    "value", [None, 17, "17", "not json", '"text"', {"a": 1}, {"seq": {"x": 1}}, {"t": {"0": "5"}}, []]
)
def test_offsets_of_other_sources_are_nothing(value):
    assert parse_offsets(value) == {}


class Report:
    def __init__(self, data):
        self.data = data

    def batchId(self):
        return self.data["batchId"]

    def json(self):
        return json.dumps(self.data)


class Query:
    """Spark's ring of recent reports."""

    def __init__(self):
        self.reports = []

    def lastProgress(self):
        return self.reports[-1] if self.reports else None

    def recentProgress(self):
        return list(self.reports)

    def ran(self, batch_id, **rest):
        self.reports.append(Report(report(batch_id, **rest)))


def test_no_batch_is_missed_and_none_comes_twice():
    query, seen = Query(), []
    reader = ProgressReader(query)
    for burst in ([], [0], [1, 2, 3], [], [4], [5, 6]):
        for batch_id in burst:
            query.ran(batch_id)
        seen += [b.batch_id for b in reader.new_batches()]
        assert reader.new_batches() == []
    assert seen == list(range(7))


def test_idle_reports_do_not_hide_the_batch_they_announce():
    query = Query()
    reader = ProgressReader(query)
    query.ran(0)
    assert [b.batch_id for b in reader.new_batches()] == [0]
    query.ran(1, ran=False)
    query.ran(1, ran=False)
    assert reader.new_batches() == []
    query.ran(1)
    query.ran(2, ran=False)
    assert [b.batch_id for b in reader.new_batches()] == [1]
    query.ran(2)
    assert [b.batch_id for b in reader.new_batches()] == [2]


def test_an_agent_that_comes_late_begins_with_the_newest_batch():
    query = Query()
    for batch_id in range(50):
        query.ran(batch_id)
    assert [b.batch_id for b in ProgressReader(query).new_batches()] == [49]
    query.ran(50, ran=False)  # nothing comes any more: what it had committed is known all the same
    assert [b.batch_id for b in ProgressReader(query).new_batches()] == [49]
    query.reports = query.reports[-1:] * 100  # idle since it was started again
    reader, query.recentProgress = ProgressReader(query), None
    assert reader.new_batches() == []  # and it is not looked at all of its reports each time


def test_a_batch_says_where_its_time_went_beside_its_tasks():
    data = report(4)
    data["durationMs"] |= {"queryPlanning": 120, "getBatch": 2, "walCommit": 200, "commitOffsets": 110}
    data["stateOperators"] = [{"numRowsTotal": 7, "commitTimeMs": 300}, {"numRowsTotal": 3, "commitTimeMs": 50}]
    assert parse_progress(json.dumps(data)).phases == pytest.approx((0.12, 0.015, 0.31, 0.35))
    data["stateOperators"] = []
    assert parse_progress(json.dumps(data)).phases.state_commit_s is None
