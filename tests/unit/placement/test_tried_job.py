"""A job that is tried: its topics are there before it begins, all of it works then, and what does not begin is said."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from configs.settings import load
from pipelines.bench.placement.real.cases import case_files
from pipelines.placement import supervisor as supervising
from pipelines.placement import tried
from pipelines.placement.begun import note_tasks
from pipelines.placement.clusters import JobClusters
from pipelines.placement.running import job_folder
from pipelines.placement.supervisor import Supervisor
from pipelines.placement.tried import TrialError, tried_job
from tests.fakes.clock import clock_with
from tests.unit.placement.test_supervisor import FILE as ADVERTS
from tests.unit.placement.test_supervisor import FIRST, SECOND, TWO, FakeHome

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

        def starting(self):
            return False

        def settled(self):
            return seen.works

    monkeypatch.setattr(tried, "create_topics", lambda kafka: seen.done.append("topics"))
    monkeypatch.setattr(tried, "create_topic", lambda kafka, name: seen.done.append((name, kafka.event_partitions)))
    monkeypatch.setattr(tried, "begin_job", lambda settings, file, say, placement: seen.done.append("begin"))
    monkeypatch.setattr(tried, "started_clusters", lambda topology, settings, folder: nullcontext(JobClusters({}, {})))
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


def test_queries_at_their_first_batches_are_waited_for(world, tmp_path, monkeypatch):
    settings, home, now = load(var=tmp_path), FakeHome(), [0.0]
    folder, home.slow = job_folder(settings, "adverts"), {FIRST, SECOND}

    def sleep(seconds):
        now[0] += seconds
        for name, process in home.processes.items():
            note_tasks(folder.newest(name))
            if now[0] > 60:
                folder.newest(name).note_work(process.pid)

    monkeypatch.setattr(tried, "begin_job", lambda settings, file, say, placement: folder.begin(file, placement))
    masters = {name: f"spark://{name}" for name in ("east", "west")}
    there = JobClusters(masters, {})
    monkeypatch.setattr(tried, "started_clusters", lambda topology, settings, folder: nullcontext(there))
    monkeypatch.setattr(tried, "Stack", lambda settings, parts: nullcontext(home))
    monkeypatch.setattr(tried, "Supervisor", Supervisor)
    for module in (tried, supervising):
        monkeypatch.setattr(module, "time", clock_with(monotonic=lambda: now[0], sleep=sleep))
    with tried_job(settings, ADVERTS, TWO, lambda line: None) as job:
        assert job.supervisor.settled() and 60 < now[0] < 65
