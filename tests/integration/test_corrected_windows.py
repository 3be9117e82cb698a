"""The main job's windows on a real broker and a real engine: late records are dropped, and a backfill corrects them."""

import time

import pytest

from configs.settings import load
from pipelines.jobs import word_count
from pipelines.jobs.events import LoadEvent, encode_event
from pipelines.jobs.launch import Launch
from pipelines.jobs.truth import compare_counts, read_counts, true_windows
from pipelines.kafka.broker import read_records, topic_offsets
from pipelines.kafka.publisher import Publisher
from tests.fakes import driver
from tests.fakes.waiting import wait_until
from tidecast.orders import ReplayOrder, ReplayProgress
from tidecast.replay.driver import Replays
from tidecast.replay.dry_run import NAME, WARM_BATCHES
from tidecast.signed import late_dropped

pytestmark = pytest.mark.integration

START, HOUR_S, HOURS = 1_413_950_400, 3600, 6
BEGIN, END = START + HOUR_S, START + 2 * HOUR_S
"""The hour of which every tenth event comes after all others."""


def _events():
    return [LoadEvent(n, float(START + 60 * n), f"key-{n % 3}") for n in range(HOURS * HOUR_S // 60)]


def _is_withheld(event):
    return BEGIN <= event.time < END and event.seq % 10 == 0


class Job:
    """The main job's query, and the side of its agent that runs replays."""

    def __init__(self, spark, kafka, folder):
        self.kafka, self.folder = kafka, folder
        settings = load(
            kafka=kafka.model_dump(),
            job={"service_ms": 0, "trigger": "200 milliseconds", "max_offsets_per_trigger": 400},
        )
        start = {"events": dict.fromkeys(topic_offsets(kafka, "events"), 0)}
        launch = Launch(word_count.JOB, spark, settings, folder, start)
        self.query = word_count.start_query(launch)
        self.job = driver.job(word_count.JOB, topics=(kafka.topic("events"),))
        self.job.mode = "act"
        self.replays = Replays(self.job, word_count.replayable(launch, self.query))

    def send(self, events):
        publisher = Publisher(self.kafka)
        for n, event in enumerate(events):
            publisher.send_bytes("events", event.key.encode(), encode_event(event), partition=n % 4)
        publisher.close()
        self.query.processAllAvailable()

    def backfill(self, name, end=END):
        """Order the hour again and poll until it is over; what was said last."""
        ends = {str(part): past for part, past in self.read().items()}
        topic = self.kafka.topic("events")
        self.job.orders[name] = ReplayOrder(
            name, self.job.name, time.time(), "run", {topic: dict.fromkeys(ends, 0)}, {topic: ends}, most_rps=1e4,
            task_s=60.0, begin_ms=BEGIN * 1000, end_ms=end * 1000,
        )  # fmt: skip
        wait_until(lambda: self.replays.poll() or self._state(name) in ("done", "failed"), "its end", 240.0, 0.25)
        return [one for one in self.job.outbox.of(ReplayProgress) if one.id == name][-1]

    def read(self):
        """Offset after the last record of each partition."""
        return {part: past for part, (_, past) in topic_offsets(self.kafka, "events").items()}

    def _state(self, name):
        said = [one.state for one in self.job.outbox.of(ReplayProgress) if one.id == name]
        return said[-1] if said else ""

    def results(self):
        return list(read_records(self.kafka, "results"))

    def close(self):
        self.replays.close()
        self.query.stop()


def test_what_live_dropped_is_counted_by_a_backfill_of_its_hour_and_each_window_is_told_once(
    spark, empty_topics, tmp_path, caplog, monkeypatch
):
    each = HOURS * HOUR_S // 60 // 4  # records of a partition
    driver.begin_large(monkeypatch, each // 2)  # two batches, of half of the records each
    caplog.set_level("INFO", "tidecast")
    events = _events()
    kept, withheld = [e for e in events if not _is_withheld(e)], [e for e in events if _is_withheld(e)]
    truth = {"produced": len(events), "windows": true_windows(kept, withheld)}
    wrong = {"lost": 0, "duplicated": 0, "late_dropped": len(withheld)}
    job = Job(spark, empty_topics, tmp_path)
    try:
        job.send(kept)
        job.send(withheld)  # each of another key or window
        assert sum(late_dropped(one) for one in job.query.recentProgress) == len(withheld) == 6
        counted = compare_counts(truth, read_counts(empty_topics))
        assert counted == {"produced": len(events), "counted": len(kept), **wrong}

        before = job.results()
        committed = {(empty_topics.topic("events"), part): past for part, past in job.read().items()}
        job.job.ends, job.job.committed, job.job.batches, job.job.rows = committed, committed, WARM_BATCHES, 1
        took = "a dry run of a replay's first batch took"
        wait_until(lambda: job.replays.poll() or took in caplog.text, "it", 120.0, 0.1)
        assert job.results() == before and not (tmp_path / "word_count.backfills" / NAME).exists()

        said = job.backfill("hour")
        assert said.state == "done", said.reason
        after = job.results()
        corrected = [record for record in after if "tidecast-backfill" in record.headers]
        assert len(after) == len(before) + len(corrected)
        assert sorted(record.key for record in corrected) == sorted(truth["windows"]["corrected"])
        right = {"produced": len(events), "counted": len(events), **wrong, "late_dropped": 0}
        assert compare_counts(truth, read_counts(empty_topics)) == right
        assert sorted(path.name for path in (tmp_path / "word_count.backfills").iterdir()) == [".ended", ".lock"]

        said = job.backfill("open", START + HOURS * HOUR_S)
        assert said.state == "failed" and "live records may still change windows" in said.reason
    finally:
        job.close()
