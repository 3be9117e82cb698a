"""A job that is tried: its topics are there before it begins, and what does not begin is said."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from configs.settings import load
from pipelines.bench.placement.real.cases import case_files
from pipelines.placement import tried
from pipelines.placement.tried import TrialError, tried_job

FILE = case_files()["words_light"]


@pytest.fixture
def world(monkeypatch):
    """What is done, in order; whether the queries work in the end."""
    seen = SimpleNamespace(done=[], works=True)

    class Queries:
        def __init__(self, folder, home, masters, say):
            self.say = say

        def start(self):
            seen.done.append("start")
            self.say("words_light.parse: does not begin on east" if not seen.works else "it runs")

        def settled(self):
            return seen.works

    monkeypatch.setattr(tried, "create_topics", lambda kafka: seen.done.append("topics"))
    monkeypatch.setattr(tried, "create_topic", lambda kafka, name: seen.done.append((name, kafka.event_partitions)))
    monkeypatch.setattr(tried, "begin_job", lambda settings, file, say, placement: seen.done.append("begin"))
    monkeypatch.setattr(tried, "started_clusters", lambda topology, settings, folder: nullcontext({}))
    monkeypatch.setattr(tried, "Stack", lambda settings, parts: nullcontext())
    monkeypatch.setattr(tried, "Supervisor", Queries)
    return seen


def test_its_source_is_a_topic_before_it_begins_and_what_it_left_before_is_gone(world, tmp_path):
    settings, said = load(var=tmp_path), []
    left = tmp_path / "jobs" / "words_light" / "placement.json"
    left.parent.mkdir(parents=True)
    left.touch()
    with tried_job(settings, FILE, None, said.append) as job:
        assert job.settings.kafka.event_partitions == 2 and not left.exists()
    assert world.done == ["topics", ("lines", 2), "begin", "start"] and said == ["it runs"]


def test_a_query_that_does_not_begin_is_named(world, tmp_path):
    world.works = False
    with (
        pytest.raises(TrialError, match=r"words_light: a query does not begin: .*parse: does not begin on east"),
        tried_job(load(var=tmp_path), FILE, None, lambda line: None),
    ):
        pass
