"""The jobs that are plans: a table, streams of several arrivals with a stop in the middle, and the truth agree."""

import json
import os
import random
import runpy

import pytest

from configs.contract import load_contract
from configs.settings import ROOT, load
from pipelines.jobs.events import LoadEvent
from pipelines.jobs.launch import Launch, fix_first_offsets
from pipelines.jobs.plans import best_keys, corrected_join, key_estimates, key_sessions, launching
from pipelines.jobs.plans.records import signed_events
from pipelines.jobs.plans.results import to_records
from pipelines.jobs.truth import count_windows
from pipelines.jobs.windows import totals_per_key
from pipelines.kafka.broker import read_records
from pipelines.kafka.publisher import Publisher
from tests.fakes.bad_events import BAD_EVENTS
from tests.fakes.plan_truths import (
    SignedEvent,
    encode_signed,
    results_of,
    true_best,
    true_differents,
    true_pairs,
    true_sessions,
)
from tests.fakes.waiting import wait_until
from tidecast.signed import late_dropped

pytestmark = pytest.mark.spark
BEGIN, HOURS, MINUTE = 1_700_000_000_000, 8, 60_000
BATCHES = 3
REFUSED = [b'{"seq":1,"time":5,"key":"a","sign":0}', *(raw for raw, _ in BAD_EVENTS.values() if raw and raw.isascii())]
JOBS = {job.JOB: job for job in (corrected_join, key_sessions, best_keys)}


def draw(seed, many):
    """Events of some hours over four keys, and retractions of a third of them."""
    rng = random.Random(seed)
    events = [
        SignedEvent(rng.randrange(9), BEGIN + rng.randrange(HOURS * 60 * MINUTE), rng.choice("aabc"))
        for _ in range(many)
    ]
    return [*events, *(event._replace(sign=-1) for event in rng.sample(events, many // 3))]


def write(folder, events, seed):
    """The events as they arrive, up to 50 minutes after they happened, in files; refused ones among them."""
    rng = random.Random(seed)
    arrivals = sorted((event.t_e + rng.randrange(50 * MINUTE), n) for n, event in enumerate(events))
    folder.mkdir(parents=True)
    for batch in range(BATCHES):
        part = arrivals[batch * len(arrivals) // BATCHES : (batch + 1) * len(arrivals) // BATCHES]
        rows = [(at, encode_signed(events[n])) for at, n in part] + [(BEGIN, raw) for raw in REFUSED[batch::BATCHES]]
        file = folder / f"{batch}.json"
        file.write_text("\n".join(json.dumps({"value": raw.decode(), "at": at}) for at, raw in rows))
        os.utime(file, (batch, batch))


def read(reader, folder):
    rows = reader.schema("value string, at bigint").json(str(folder))
    return rows.selectExpr("CAST(value AS BINARY) AS value", "timestamp_millis(at) AS timestamp")


def planned(reader, folder):
    """The records of all jobs, of one source each."""
    events = signed_events(read(reader, folder / "events"))
    replies = signed_events(read(reader, folder / "replies"), "replies")
    made = [
        to_records(job.plan(events, replies) if job is corrected_join else job.plan(events), name)
        for name, job in JOBS.items()
    ]
    first, *others = made
    for other in others:
        first = first.unionByName(other)
    return first


@pytest.fixture(scope="module")
def produced():
    return draw(1, 130), draw(2, 60)


@pytest.fixture(scope="module")
def truths(produced):
    events, replies = produced
    return {
        "corrected_join": true_pairs(events, replies), "key_sessions": true_sessions(events),
        "best_keys": true_best(events),
    }  # fmt: skip


def test_the_truth_is_what_was_produced(produced, truths):
    events, _ = produced
    assert all(truths.values())
    left = {(seq, t_e, key): 0 for seq, t_e, key, _ in events}
    for seq, t_e, key, sign in events:
        left[seq, t_e, key] += sign
    there = [event for event in left if left[event]]
    per_key = {
        key: {"n": sum(k == key for *_, k in there), "seq_sum": sum(s for s, _, k in there if k == key)}
        for key in "abc"
    }
    assert totals_per_key(truths["key_sessions"], "key_sessions") == per_key
    windows = count_windows(LoadEvent(seq, t_e / 1000, key) for seq, t_e, key in there)
    [*days] = truths["best_keys"].values()
    assert sum(day["windows"] for day in days) == len(windows)
    assert max(day["best"][0]["n"] for day in days) == max(one["n"] for one in windows.values())


def test_a_table_comes_to_the_truth(one_partition, produced, truths, tmp_path):
    for name, events in zip(("events", "replies"), produced, strict=True):
        write(tmp_path / name, events, 3)
    rows = [(row.key, row.value) for row in planned(one_partition.read, tmp_path).collect()]
    assert {name: results_of(rows, name) for name in JOBS} == truths


def test_a_stream_that_is_stopped_and_goes_on_comes_to_the_truth(one_partition, produced, truths, tmp_path):
    for name, events in zip(("events", "replies"), produced, strict=True):
        write(tmp_path / name, events, 4)
    records = []

    def start(**trigger):
        frame = planned(one_partition.readStream.option("maxFilesPerTrigger", 1), tmp_path)
        write = frame.writeStream.foreachBatch(
            lambda batch, _: records.extend((row.key, row.value) for row in batch.collect())
        )
        return write.option("checkpointLocation", str(tmp_path / "c")).trigger(**trigger).start()

    query = start(processingTime="0 seconds")
    wait_until(lambda: query.recentProgress or not query.isActive, "a micro-batch", 300, every_s=0.1)
    assert query.isActive, query.exception()
    query.stop()  # wherever it is: a batch that this breaks off is run again
    progress = [one for one in query.recentProgress if one.numInputRows]
    assert 0 < len(progress) < BATCHES
    query = start(availableNow=True)
    assert query.awaitTermination(300)
    progress += query.recentProgress
    assert {name: results_of(records, name) for name in JOBS} == truths
    assert sum(map(late_dropped, progress)) == 0
    assert {key.partition(":")[0] for key, value in records if value is None} == {*JOBS}, "results that are taken back"
    metrics = [one.observedMetrics["events"] for one in progress if one.numInputRows]
    assert sum(row.rejected for row in metrics) >= len(REFUSED) - len(REFUSED) // BATCHES


def test_a_plan_of_two_topics_comes_to_the_truth(one_partition, empty_topics, tmp_path, monkeypatch):
    """Events, replies, and corrections of both, some after its first results; on a broker, as its module starts it.

    `test_managed_job` tells how a job's process begins, is killed, goes on and ends.
    """
    handed = {}
    monkeypatch.setattr(launching, "run_job", lambda job, start, **how: handed.update(how, job=job, start=start))
    with pytest.raises(SystemExit):
        runpy.run_path(corrected_join.__file__, run_name="__main__")
    assert (handed["job"], handed["room"]) == ("corrected_join", "plans")
    settings = load(kafka=empty_topics.model_dump(), job={"trigger": "500 milliseconds"})
    first = fix_first_offsets(settings, tmp_path, handed["job"], handed["topics"])
    began, keys = 1_700_000_000_000, ("a", "b", "c")
    events = [SignedEvent(n, began + n * 60_000, keys[n % 3]) for n in range(60)]
    replies = [event._replace(t_e=event.t_e + 90_000, seq=event.seq + 100) for event in events]
    produced = {
        "events": [*events, *(event._replace(sign=-1) for event in events[5:50:7])],
        "replies": [*replies, *(reply._replace(sign=-1) for reply in replies[3:40:6])],
    }
    publisher = Publisher(empty_topics)

    def send(part):
        for topic, whole in produced.items():
            for event in whole[part]:
                publisher.send_bytes(topic, event.key.encode(), encode_signed(event))
        publisher.flush()

    def found():
        assert query.isActive, query.exception()
        records = read_records(empty_topics, "windows")
        return results_of(((record.key, record.value) for record in records), "corrected_join")

    query = handed["start"](Launch(handed["job"], one_partition, settings, tmp_path, first))
    try:
        send(slice(40))
        wait_until(found, "first results", 300, every_s=0.5)
        send(slice(40, None))
        publisher.close()
        truth = true_pairs(produced["events"], produced["replies"])
        wait_until(lambda: found() == truth, "results equal to the truth", 300, every_s=0.5)
    finally:
        query.stop()


def test_estimates_are_within_the_contracts_limit_of_the_truth(one_partition, tmp_path):
    contract = load_contract(key_estimates.JOB, ROOT / "configs" / "contracts" / "plans")
    numbered = [event._replace(seq=n) for n, event in enumerate(draw(5, 400))]
    events = [event for event in numbered if event.sign > 0]
    events += [event._replace(sign=-1) for event in events[::3]]  # each number is inserted once
    write(tmp_path / "events", events, 6)
    made = key_estimates.plan(signed_events(read(one_partition.read, tmp_path / "events")), contract, 200.0)
    told = {row.key: json.loads(row.value) for row in key_estimates.to_records(made).collect() if row.value}
    truth = true_differents(events)
    assert told.keys() == truth.keys()
    limit = contract.backpressure.error["different"]
    assert all(abs(one["estimate"] - truth[key]) <= limit.eps_rel * truth[key] for key, one in told.items())
    assert all(one["low"] <= truth[key] <= one["high"] and one["pf"] <= limit.pf for key, one in told.items())
