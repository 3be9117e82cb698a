"""The Python on the pages runs as it stands there, on a real session, but for what `NOT_RUN` says why not."""

import logging

import numpy as np
import pytest
from pyspark.sql.streaming import StreamingQuery

from models.backfill.given import Fleet, LiveOutlook, LivePromise, ReplayWork, SlotRate
from models.backfill.joint import unknown_errors
from models.backfill.plan import Surroundings
from models.policy.core.capacity import speed_table
from tests.fakes.page_blocks import NOT_RUN, blocks

pytestmark = pytest.mark.spark
NOBODY = "127.0.0.1:9"
"""No broker: what is tried there is that a page's calls are taken; agents go on asking until they are stopped."""


@pytest.fixture
def session(spark, monkeypatch, tmp_path):
    """A query that names no sink writes nowhere; none has a last micro-batch without records."""
    monkeypatch.setenv("TIDECAST_KAFKA__BOOTSTRAP", NOBODY)
    monkeypatch.setenv("KAFKA_PASSWORD", "secret")
    given = {
        "spark.sql.sources.default": "noop", "spark.sql.streaming.checkpointLocation": str(tmp_path / "checkpoints"),
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }  # fmt: skip
    for name, value in given.items():
        spark.conf.set(name, value)
    monkeypatch.setattr(StreamingQuery, "awaitTermination", lambda query: None)  # as a job waits for its end
    yield spark
    logging.getLogger("kafka").setLevel(logging.NOTSET)
    for query in spark.streams.active:
        query.stop()
    for name in given:
        spark.conf.unset(name)


@pytest.fixture(scope="module")
def ended():
    """Agents that have been told to end; they may still wait for a broker, while the next block runs."""
    agents = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidecast.connection.transport.CONNECT_MS", 1000)  # so long they are waited for in the end
        yield agents
        for agent in agents:
            agent.stop()


def attached(session, tmp_path):
    return {"counts": session.readStream.format("rate").load()}


def records(session):
    """A stream of the columns of Spark's Kafka source."""
    value = """to_json(named_struct('shop', 'a', 'amount', 3, 'at', timestamp))"""
    return session.readStream.format("rate").load().selectExpr(
        "CAST('a' AS BINARY) AS key", f"CAST({value} AS BINARY) AS value", "'sales' AS topic", "0 AS partition",
        "value AS offset", "timestamp", "0 AS timestampType",
    )  # fmt: skip


def replayed(session, tmp_path):
    return {"spark": session, "stream": records(session), "checkpoint": str(tmp_path / "live")}


def merged(session, tmp_path):
    from tidecast.signed import count, signed

    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "0.json").write_text('{"shop": "a", "at": "2026-03-01T09:00:00Z"}\n')
    stream = session.readStream.schema("shop string, at timestamp").json(str(tmp_path / "rows"))
    live = signed(stream, "at", delay_ms=0, lateness_ms=0).rekey("shop").window(3_600_000).aggregate(orders=count())
    return {"spark": session, "live": live, "checkpoint": str(tmp_path / "merged")}


def planned(session, tmp_path):
    levels, steps, step_s = (0.05, 0.5, 0.95), 24, 600.0

    def around(n):
        outlook = LiveOutlook(np.full((n, 1), 300.0) * [0.9, 1, 1.1], levels, step_s)
        fleet = Fleet(speed_table(40, 1, 4000, 0.85), 1, 16, np.array([45.0, 60, 75]))
        return Surroundings(outlook, unknown_errors(n), LivePromise(0.125, 1.15), SlotRate(150.0, 0.03), fleet, 4, 0, 0)

    return {
        "work": ReplayWork(4e6, 1.0, 0.05), "surroundings": around(steps), "now_s": 1_795_748_400.0,
        "steps_passed": 1, "records_left": 3.8e6, "surroundings_now": around(steps - 1),
    }  # fmt: skip


SCENES = {
    "README.md": attached, "docs/attach.md": attached, "docs/backfill.md": replayed, "docs/merge.md": merged,
    "docs/deadlines.md": planned,
}  # fmt: skip
"""What the sentences before a page's block presume."""


@pytest.mark.parametrize("block", [one for one in blocks("python") if one.id not in NOT_RUN], ids=lambda one: one.id)
def test_the_block_runs(block, session, ended, tmp_path):
    assert block.page in SCENES, f"{block.id}: say here what it presumes, or in NOT_RUN why it cannot run"
    names = SCENES[block.page](session, tmp_path)
    text = block.text.replace('"/lake/', f'"{tmp_path}/lake/')  # nothing is written to the root of this computer
    (tmp_path / "lake").mkdir()
    agents = []
    import tidecast.agent

    begun = tidecast.agent.Agent.__init__

    def noted(self, *given):
        agents.append(self)
        begun(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tidecast.agent.Agent, "__init__", noted)
        try:
            exec(compile(text, block.id, "exec"), names)
        finally:
            for agent in agents:
                agent.stop(timeout_s=0.0)
            ended += agents
    assert bool(agents) == ("attach(" in text)
