"""What an agent still tells when it ends, or its query has."""

import json
from types import SimpleNamespace

import pytest

from tests.fakes import driver
from tidecast.agent import Agent
from tidecast.messages import MetricSample
from tidecast.observer import Observer


class EndedQuery:
    """One that has run a single batch, as with the trigger `availableNow`."""

    def __init__(self):
        self.reports = []

    def end(self):
        report = {
            "runId": "r", "batchId": 0, "timestamp": "2026-11-14T22:13:20.500Z", "numInputRows": 60,
            "durationMs": {"triggerExecution": 500, "addBatch": 400}, "sources": [],
        }  # fmt: skip
        self.reports.append(SimpleNamespace(batchId=lambda: 0, json=lambda: json.dumps(report)))

    def lastProgress(self):
        return self.reports[-1] if self.reports else None

    def recentProgress(self):
        return self.reports

    def isActive(self):
        return not self.reports


class TakingOutbox(driver.Sent):
    """An outbox whose broker takes all at once."""

    def send_next(self):
        pass

    def close(self):
        pass


def watched(**fields):
    """A job, its query, and what watches it."""
    job, query = driver.job(**fields), EndedQuery()
    cluster = SimpleNamespace(
        jquery=query, executors=lambda: {"0": 1, "1": 1}, batch_stages=lambda run_id, batch_id: [],
        jsc=SimpleNamespace(master=lambda: "local"),
    )  # fmt: skip
    return job, query, Observer(job, cluster)


def test_a_batch_that_ended_just_before_the_agent_is_stopped_is_told():
    job, query, observer = watched(outbox=TakingOutbox(), topics=())
    query.end()
    job.stop.set()  # before the agent has looked even once
    idle = SimpleNamespace(sample=None, poll=None, close=lambda: None)
    Agent(job, observer, idle, idle, idle, idle).stop()
    assert [one.batch_rows for one in job.outbox.of(MetricSample)] == [60]


def test_the_agent_ends_with_its_query_also_where_the_last_report_is_of_another_form():
    job, query, observer = watched()
    query.end()
    del observer._cluster.batch_stages
    with pytest.raises(AttributeError):
        observer.poll()
    assert job.stop.is_set()


@pytest.mark.parametrize(
    ("owns", "words"),
    [
        (True, ["2 executors stay, Spark adds none by itself; after starting it again, attach again"]),
        (False, []),
    ],
)
def test_where_the_query_ends_it_is_said_what_becomes_of_executors_that_the_agent_has_set(caplog, owns, words):
    job, query, observer = watched(owns_executors=owns)
    query.end()
    observer.poll()
    warned = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert job.stop.is_set() and [said.split("with it; ")[1] for said in warned] == words
