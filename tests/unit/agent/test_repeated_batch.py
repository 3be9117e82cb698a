"""A batch that Spark repeats after a restart is told once, though no end offset of its topics was ever seen."""

import json
from types import SimpleNamespace

from tests.fakes import driver
from tidecast.messages import MetricSample
from tidecast.observer import Observer


class RestartedQuery:
    """Tells the reports that it is given, as Spark's object of a query does; it stays active."""

    def __init__(self):
        self.reports = []

    def tell(self, batch_id, end, latest, added=True):
        """Report a batch, or an idle trigger; of a repeated batch Spark asks the source for no newest offsets."""
        durations = {"triggerExecution": 500, **({"latestOffset": 3} if latest else {})}
        report = {
            "runId": "after", "batchId": batch_id, "timestamp": "2026-11-14T22:13:20.500Z", "numInputRows": 60,
            "durationMs": {**durations, **({"addBatch": 400} if added else {})},
            "sources": [
                {
                    "startOffset": {"events": {"0": end - 60}}, "endOffset": {"events": {"0": end}},
                    "latestOffset": {"events": {"0": end}} if latest else None,
                }
            ],
        }  # fmt: skip
        self.reports.append(SimpleNamespace(batchId=lambda: batch_id, json=lambda: json.dumps(report)))

    def lastProgress(self):
        return self.reports[-1] if self.reports else None

    def recentProgress(self):
        return self.reports

    def isActive(self):
        return True


def test_a_batch_that_a_restarted_query_repeats_is_told_once_and_those_after_it_too():
    job, query = driver.job(), RestartedQuery()
    cluster = SimpleNamespace(jquery=query, executors=lambda: {"0": 1}, batch_stages=lambda run_id, batch_id: [])
    observer = Observer(job, cluster)
    query.tell(7, 120, latest=False)
    observer.poll()
    assert job.committed == {("events", 0): 120} and job.curves == {}
    query.tell(7, 120, latest=False)  # the same report is the newest one until the next batch ends
    observer.poll()
    query.tell(8, 180, latest=True)
    observer.poll()
    query.tell(9, 180, latest=True, added=False)
    observer.poll()
    told = job.outbox.of(MetricSample)
    assert [(one.batch_id, one.batch_rows) for one in told] == [(7, 60), (8, 60)]
    assert job.committed == {("events", 0): 180} and job.batches == 2
