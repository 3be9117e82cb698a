"""The autoscaler's query on more cores: what it has learned of the jobs goes with it."""

import pytest

from configs.settings import load
from pipelines.spark.query_session import SpreadError, kept_partitions, spread_state
from tests.integration.test_autoscaler_query import Job, running

pytestmark = pytest.mark.spark
SETTING = "autoscaler.cores"


def test_what_is_known_of_a_job_is_there_on_more_partitions(spark, empty_topics, tmp_path):
    settings, checkpoint = load(kafka=empty_topics.model_dump(), autoscaler={"policy": "reactive"}), tmp_path / "query"
    assert kept_partitions(checkpoint) is None and spread_state(spark, checkpoint, 2, SETTING) == []
    job = Job(empty_topics)
    try:
        with running(spark, settings, checkpoint):
            first = job.until(lambda d: d["inputs"].get("since_change_s", 1e6) < 1e6)[-1]  # the second one
        assert spread_state(spark, checkpoint, 1, SETTING) == []
        said = ["what is known of the jobs is spread over 3 partitions; it was 1"]
        assert spread_state(spark, checkpoint, 3, SETTING) == said
        assert kept_partitions(checkpoint) == 3
        other = load(kafka=empty_topics.model_dump(), autoscaler={"policy": "static"})
        with running(spark, other, checkpoint):
            (*_, made) = job.until(lambda d: d["policy"] == "static")
        changed_at = first["wall_time"] - first["inputs"]["since_change_s"]
        since = made["wall_time"] - made["inputs"]["since_change_s"]  # a million seconds, where nothing is known
        assert since == pytest.approx(changed_at, abs=0.1)
    finally:
        job.close()


def test_a_checkpoint_that_cannot_be_spread_is_left_and_refused_with_a_remedy(spark, tmp_path):
    log = tmp_path / "offsets"
    log.mkdir()
    (log / "0").write_text('v1\n{"conf": {"spark.sql.shuffle.partitions": "1"}}\n{}')
    with pytest.raises(SpreadError, match=r"1 partition.*no committed microbatch.*Set autoscaler\.cores=1"):
        spread_state(spark, tmp_path, 4, SETTING)
    assert kept_partitions(tmp_path) == 1
    (log / "1").write_text("v1\n{")  # a damaged one is the query's to refuse
    assert kept_partitions(tmp_path) is None and spread_state(spark, tmp_path, 4, SETTING) == []
