"""The lake on a real HDFS: what ingest writes there is what training, advice and twin read, and upkeep merges."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from configs.contract import load_contract
from configs.settings import ROOT, load
from pipelines.advise.measured import measure_job
from pipelines.advise.read import measure_in_lake
from pipelines.backtest.fit.from_lake import read_measurements
from pipelines.backtest.on_lake import jobs_with_enough_load
from pipelines.bench.site.hadoop import Hdfs
from pipelines.ingest.run import ingest
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topics
from pipelines.lake import tables
from pipelines.lake.errors import LakeAwayError
from pipelines.lake.folder import lake_folder
from pipelines.lake.load import read_lake
from pipelines.lake.upkeep import maintain
from pipelines.stack.ports import HOST
from pipelines.train.forecaster.run import jobs_with_training_data
from tests.fakes.records import bad_records, record
from tests.unit.advise.test_measured_job import NO_ACTION, rows

JOB = "word_count"
HOURS = ("2014-10-22T04", "2014-10-22T05", "2014-10-22T06")
AWAY_S = 30.0


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory):
    with Hdfs(tmp_path_factory.mktemp("hdfs")) as started:
        yield started


@pytest.fixture(scope="module")
def settings(hdfs, broker, tmp_path_factory):
    own = broker.model_copy(update={"prefix": "hdfs."})
    create_topics(own)
    given = {
        "VAR": str(tmp_path_factory.mktemp("var")), "LAKE__ADDRESS": f"{hdfs.filesystem}/tidecast/lake",
        "KAFKA__BOOTSTRAP": own.bootstrap, "KAFKA__PREFIX": own.prefix,
        "TRAINING__STEP_S": "1",
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(f"TIDECAST_{name}", value)
        yield load()


def messages():
    """What the agent of a job of two executors sent in two minutes."""
    for sent in rows().to_dict("records"):
        known = {name: value for name, value in sent.items() if value == value}
        known |= {name: int(known[name]) for name in ("batch_id", "batch_rows", "task_ceiling") if name in known}
        yield json.dumps({"job": JOB, "time": sent["wall_time"], "schema": 1, **known}).encode()


@pytest.fixture(scope="module")
def ingested(settings):
    """Counts of two ingests, the first one of metrics, of which two are bad, and of the first one's repetition."""
    publisher = Publisher(settings.kafka, linger_ms=5)

    def send(topic, *values, job=JOB):
        for value in values:
            publisher.send_bytes(topic, job.encode(), value)
        publisher.flush(30)

    bad = bad_records("metrics")
    send("metrics", *messages(), bad["cut off"][0], bad["NaN"][0])
    first = ingest(HOURS[0])[0]
    send("metrics", record("metrics", job="ride_count"), job="ride_count")
    send("outcomes", record("outcomes"))
    found = [first, ingest(HOURS[1])[0], ingest(HOURS[0])[0]]
    publisher.close()
    return found


def test_ingests_continue_each_other_and_a_repetition_changes_nothing(settings, ingested):
    first, second, again = (counts["metrics"] for counts in ingested)
    sent = len(list(messages()))
    assert (first["read"], first["stored"], first["quarantined"]) == (sent + 2, sent, 2)
    assert second["offsets"] == {0: [sent + 2, sent + 3]} and second["stored"] == 1
    assert again["again"] and again["offsets"] == first["offsets"] and again["stored"] == sent
    assert ingest(HOURS[2])[0]["metrics"]["read"] == 0
    root = lake_folder(settings)
    assert tables.tables(root) == ["metrics", "outcomes", "quarantine"]
    assert {one.partition: one.stored for one in tables.commit_origins(root, "metrics")} == {
        HOURS[0]: sent, HOURS[1]: 1,
    }  # fmt: skip
    assert not (settings.var_dir / "lake").exists()


@pytest.mark.usefixtures("ingested")
def test_training_advice_and_twin_read_what_was_ingested(settings):
    contract = load_contract(JOB, settings.contracts_dir)
    assert jobs_with_training_data([JOB, "nobody"], settings=settings) == [JOB]
    assert jobs_with_enough_load([JOB, "nobody"]) == [JOB]
    source = read_lake(settings, JOB, settings.training.step_s)
    assert source.series.values == pytest.approx(np.full(120, 50.0))
    assert len(source.batches) == 60 and len(source.outcomes) == 1
    seen, told = measure_in_lake(settings, JOB), measure_job(rows(), NO_ACTION, contract)
    assert seen.arrived == pytest.approx(told.arrived) and seen.twin.per_record_s == pytest.approx(
        told.twin.per_record_s
    )
    batches, _, _ = read_measurements(lake_folder(settings), JOB, contract)
    assert len(batches.rows) == 60


def test_upkeep_merges_files_and_keeps_what_the_log_knows(settings, ingested):
    root = lake_folder(settings)
    before = tables.commit_origins(root, "metrics")
    assert maintain(settings) == {"metrics": 1, "outcomes": 1, "quarantine": 1}
    assert tables.commit_origins(root, "metrics") == before
    assert read_lake(settings, JOB, 1.0).known == 120


def test_a_user_without_rights_is_refused_before_anything_is_read(settings, ingested):
    before = tables.newest_version(lake_folder(settings), "metrics")
    done = subprocess.run(
        [sys.executable, "-c", f"from pipelines.ingest.run import ingest; ingest({HOURS[2]!r})"],
        env={**os.environ, "HADOOP_USER_NAME": "stranger"}, cwd=ROOT, capture_output=True, text=True, timeout=AWAY_S,
    )  # fmt: skip
    assert "LakeError" in done.stderr and "user=stranger" in done.stderr and "hdfs dfs -chown" in done.stderr
    assert tables.newest_version(lake_folder(settings), "metrics") == before


def test_a_namenode_that_is_not_there_is_named(settings, monkeypatch):
    monkeypatch.setenv("TIDECAST_LAKE__ADDRESS", f"hdfs://{HOST}:1/lake")
    began = time.monotonic()
    for act in (lambda: ingest(HOURS[2]), maintain, lambda: jobs_with_training_data([JOB])):
        with pytest.raises(LakeAwayError, match=rf"hdfs://{HOST}:1/lake.*TIDECAST_LAKE__ADDRESS"):
            act()
    assert time.monotonic() - began < AWAY_S


def test_safe_mode_is_named_and_reading_goes_on(settings, hdfs, ingested):
    hdfs.stay_safe(True)
    try:
        with pytest.raises(LakeAwayError, match=f"{hdfs.filesystem} is in safe mode"):
            ingest(HOURS[2])
        assert jobs_with_training_data([JOB], settings=settings) == [JOB]
    finally:
        hdfs.stay_safe(False)


def test_a_namenode_that_hangs_is_named(settings, hdfs, ingested):
    os.kill(hdfs.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(LakeAwayError, match=hdfs.filesystem):
            ingest(HOURS[2])
        assert time.monotonic() - began < AWAY_S
    finally:
        os.kill(hdfs.pid, signal.SIGCONT)
    assert ingest(HOURS[2])[0]["metrics"]["read"] == 0
