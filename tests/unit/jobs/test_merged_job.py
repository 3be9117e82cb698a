"""A job that merges its results begins as its contract says, with the clock that was announced."""

from types import SimpleNamespace

import pytest

import tidecast.backfill
import tidecast.recovery
from configs.contract import Contract
from configs.errors import SettingsError
from configs.sections import Kafka
from configs.settings import load
from pipelines.jobs.launch import Launch
from pipelines.jobs.plans import merged
from tidecast.control import WALL, Clock
from tidecast.recovery.checkpoint import RecoveryError


class Writer:
    """What Spark's writer is told, in order; every call returns it."""

    def __init__(self):
        self.told = []

    def __getattr__(self, name):
        return lambda *given, **named: self.told.append((name, *given, *named.values())) or self


@pytest.fixture
def world(monkeypatch, tmp_path):
    """A launch, and what `recover` was asked for; it begins nothing."""
    made = SimpleNamespace(asked=[], clock=None, fails=None, writer=Writer(), replayed=[])

    def recover(*given, **named):
        made.asked.append((given, named))
        if made.fails is not None:
            raise made.fails
        return SimpleNamespace(
            records="records", text="goes on in order", start=lambda writer: writer,
            replay_into=lambda plan, **options: made.replayed.append((plan, options)) or "replayable",
        )  # fmt: skip

    monkeypatch.setattr(tidecast.recovery, "recover", recover)
    monkeypatch.setattr(merged, "read_clock", lambda *_: made.clock)
    monkeypatch.setattr(merged, "why_not_read_again", lambda spark, job: "")
    settings = load(kafka=Kafka(bootstrap="b:1", prefix="p.").model_dump(), job={"trigger": "3 seconds"})
    made.launch = lambda order: Launch(
        "orders", "spark", settings, tmp_path, {"events": {0: 7}},
        Contract.model_validate({"job": "orders", "backpressure": {"recovery": {"order": order}}}),
    )  # fmt: skip
    made.plan = lambda records: SimpleNamespace(writeStream=made.writer) if records == "records" else None
    return made


@pytest.mark.parametrize("order", ["live_first", "in_order"])
def test_the_order_is_the_contracts(world, tmp_path, order, capsys):
    job = merged.MergedJob(world.plan, ["key"])
    query = job.start(world.launch(order))
    ((given, named),) = world.asked
    spark, name, sink, source, checkpoint, asked = given
    assert (spark, name, asked) == ("spark", "orders", order) and named == {"clock": WALL, "task_s": 0.25}
    assert (sink.table, sink.keys) == (str(tmp_path / "orders.table"), ("key",))
    assert source["subscribe"] == "p.events" and source["startingOffsets"] == '{"p.events": {"0": 7}}'
    assert checkpoint == str(tmp_path / "orders.checkpoint")
    assert query.told == [("queryName", "orders"), ("outputMode", "update"), ("trigger", "3 seconds")]
    assert capsys.readouterr().out == "orders: goes on in order\n"
    assert job.replayable(world.launch(order), query) == "replayable"
    assert world.replayed == [(world.plan, {"output_mode": "update", "trigger": "3 seconds", "ranged": None})]


@pytest.mark.parametrize("apart", [False, True])
def test_a_replay_has_the_plan_for_which_none_of_its_records_is_late(world, tmp_path, monkeypatch, apart):
    job, launch = merged.MergedJob(world.plan, ["key"], again="again"), world.launch("in_order")

    def noted(*given, **named):
        world.replayed.append((given, named))

    if apart:
        monkeypatch.setattr(tidecast.backfill, "replay_into", noted)
        job.apart("orders", "spark", launch.settings, tmp_path)
    else:
        job.replayable(launch, job.start(launch))
    assert world.replayed[0][1]["ranged"] == "again"


def test_a_traces_clock_is_the_jobs(world):
    world.clock = Clock(5.0, 10.0, 200.0)
    merged.MergedJob(world.plan, ["key"]).start(world.launch("live_first"))
    assert world.asked[0][1]["clock"] == world.clock


def test_a_gap_that_cannot_be_filled_is_said_and_no_replay_follows(world):
    world.fails = RecoveryError("records of the gap are gone")
    job = merged.MergedJob(world.plan, ["key"])
    with pytest.raises(SettingsError, match="orders: records of the gap are gone"):
        job.start(world.launch("live_first"))
    with pytest.raises(ValueError, match="start its query first"):
        job.replayable(world.launch("live_first"), None)
