"""A run is bound to the topics on which it began, by the ids that their broker gave them."""

import json

import pytest

from configs.sections import Kafka
from pipelines.jobs.restarts import same_topics
from pipelines.jobs.restarts.same_topics import OtherTopicsError, refuse_other_topics

KAFKA = Kafka(bootstrap="broker:9092", prefix="t.")
TOPICS = ("events", "results")


@pytest.fixture
def ids(monkeypatch):
    found = {"events": "a", "results": "b"}
    monkeypatch.setattr(same_topics, "topic_id", lambda kafka, topic: found[topic])
    return found


def test_a_run_goes_on_at_its_own_topics_alone(tmp_path, ids):
    refuse_other_topics(KAFKA, tmp_path, "orders", TOPICS)
    refuse_other_topics(KAFKA, tmp_path, "orders", TOPICS)
    refuse_other_topics(KAFKA, tmp_path, "rides", TOPICS[:1])  # of another job beside it
    ids["events"] = "c"
    with pytest.raises(OtherTopicsError, match=rf"orders: t\.events at broker:9092: .*\n  mv {tmp_path} {tmp_path}\."):
        refuse_other_topics(KAFKA, tmp_path, "orders", TOPICS)
    (tmp_path / "orders.topics.json").unlink()
    refuse_other_topics(KAFKA, tmp_path, "orders", TOPICS)


def test_a_topic_that_the_job_reads_since_is_noted_beside_the_others(tmp_path, ids):
    refuse_other_topics(KAFKA, tmp_path, "orders", TOPICS[:1])
    refuse_other_topics(KAFKA, tmp_path, "orders", TOPICS)
    assert json.loads((tmp_path / "orders.topics.json").read_text()) == ids
