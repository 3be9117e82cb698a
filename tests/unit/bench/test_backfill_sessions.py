"""What the backfill bench reads of the files of a session, and what it sends: by hand, without broker and Spark."""

import json
from dataclasses import replace

import numpy as np
import pytest

from configs.settings import load
from models.backfill.live.known import PUBLISHED_S
from models.backfill.live.ordered import plan_order, with_plan
from pipelines.bench.backfill.arrangement import arrange
from pipelines.bench.backfill.cells import MeasuredCell
from pipelines.bench.backfill.loads import issued_forecasts
from pipelines.bench.backfill.ratio import NEVER, latency_quantile, latency_ratio
from pipelines.bench.backfill.session import deadline, recorded
from pipelines.bench.backfill.session.merged_job import group_of
from pipelines.bench.backfill.session.merging import count_net, count_outside
from pipelines.bench.backfill.session.producer import forecast_messages
from pipelines.bench.backfill.session.recorded import keeps_up, read_session, replayed_at
from tests.fakes import planned_job
from tidecast.messages import decode, encode

BEGAN = 1_000_000.0


def progress(name, at, ends, n=0, took_ms=500, left=0):
    """A progress of a query that began `at` seconds after the load, and left records of each partition to the next."""
    stamp = np.datetime64(int((BEGAN + at) * 1000), "ms").astype(str) + "Z"
    return {
        "name": name, "id": name, "runId": name, "batchId": int(at), "timestamp": stamp, "numInputRows": n,
        "durationMs": {"triggerExecution": took_ms}, "observedMetrics": {"replayed": {"n": n}},
        "sources": [
            {name: {"events": {str(part): end + more for part, end in enumerate(ends)}}
             for name, more in (("endOffset", 0), ("latestOffset", left))}
        ],
    }  # fmt: skip


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def folder(tmp_path):
    """Two partitions; the replay reads offsets 0 to 4 of each, live records follow from there on."""
    live = [progress("j", at, ends) for at, ends in ((1, (6, 5)), (3, (7, 6)), (5, (7, 7)))]
    replay = [progress("replay", at, ends, n) for at, ends, n in ((2, (2, 3), 5), (4, (4, 5), 3), (6, (7, 7), 0))]
    write_lines(tmp_path / "j.progress.jsonl", [one for pair in zip(live, replay, strict=True) for one in pair])
    np.savez(
        tmp_path / "produced.npz", partition=[0, 0, 1, 1, 1], offset=[5, 6, 5, 6, 7],
        produced_at=BEGAN + np.array([0.25, 1.5, 1.75, 3.0, 9.0]),
    )  # fmt: skip
    told = {
        "job": "j", "began": BEGAN, "ended": BEGAN + 8.0, "limit_s": 4.6,
        "order": {"first": {"0": 0, "1": 0}, "past": {"0": 4, "1": 4}, "records": 8},
    }  # fmt: skip
    (tmp_path / "session.json").write_text(json.dumps(told))
    (tmp_path / "decisions.jsonl").write_text("")
    return tmp_path


def how(**changes):
    made = arrange(MeasuredCell("finish", "steady", "ours", 0, 5.0), True)
    return type(made)(**{**vars(made), "records": 8, **changes})


def test_a_session_is_read_from_the_files_that_it_left(folder):
    found = read_session(folder, how())
    assert found["done_s"] == 4.5 and found["seconds"] == 4.5 and found["exact"] is True
    # committed 1.5, 3.5 (twice) and 5.5 s after the begin; what was produced after the end is not looked at
    assert found["latency"] == [[125], [200, 175], [], [250]]
    assert found["p99_s"] == 2.5 and found["rps"] == pytest.approx(8 / 4.5)
    assert (found["decisions"], found["rates"], found["planned"], found["limit_s"]) == (0, [], None, 4.6)


def test_a_session_of_a_length_ends_with_its_time_and_a_record_that_was_never_committed_is_late(folder):
    found = read_session(folder, how(until_done=False))
    assert found["seconds"] == 8.0 and len(found["latency"]) == 8 and found["rps"] == 1.0
    told = json.loads((folder / "session.json").read_text())
    (folder / "session.json").write_text(json.dumps({**told, "ended": BEGAN + 20}))
    assert read_session(folder, how(until_done=False))["latency"][9] == [NEVER]


def test_rates_are_those_that_were_decided_and_each_is_computed_again(folder, monkeypatch):
    monkeypatch.setattr(recorded, "recompute_rate", lambda inputs: inputs["rate"])
    without = {"wall_time": BEGAN + 1, "inputs": {}}  # a decision's fields that are None are not sent
    decided = [{"wall_time": BEGAN + at, "replay_rps": 50.0, "inputs": {"replay": {"rate": rate}}} for at, rate in
               ((2, 50.0), (3, 50.000000000000007))]  # fmt: skip
    write_lines(folder / "decisions.jsonl", [without, *decided])
    found = read_session(folder, how())
    assert found["rates"] == [(2.0, 50.0), (3.0, 50.0)] and (found["decisions"], found["differing"]) == (2, 1)


def test_a_replay_that_has_not_ended_or_saw_too_much_is_told(folder):
    whole = how(records=9)
    assert read_session(folder, whole)["exact"] is False
    lines = [json.loads(line) for line in (folder / "j.progress.jsonl").read_text().splitlines()]
    write_lines(folder / "j.progress.jsonl", [one for one in lines if one["name"] == "j" or one["batchId"] < 4])
    found = read_session(folder, how())
    assert (found["done_s"], found["exact"], found["seconds"]) == (None, None, 8.0)
    assert found["rps"] == pytest.approx(5 / 8)
    assert replayed_at(folder / "j.progress.jsonl", "replay", {"0": 4, "1": 4}) is None
    assert replayed_at(folder / "missing", "replay", {"0": 4}) is None


def test_a_replay_in_an_application_of_its_own_counts_from_its_first_batch(folder):
    lines = [json.loads(line) for line in (folder / "j.progress.jsonl").read_text().splitlines()]
    write_lines(folder / "j.progress.jsonl", [one for one in lines if one["name"] == "j"])
    write_lines(folder / "j-replay.progress.jsonl", [one for one in lines if one["name"] == "replay"])
    found = read_session(folder, how(apart=(2, 2), agent=False))
    assert found["done_s"] == 2.5 and found["seconds"] == 4.5


def test_a_session_without_a_replay_has_no_rate(folder):
    lines = [json.loads(line) for line in (folder / "j.progress.jsonl").read_text().splitlines()]
    write_lines(folder / "j.progress.jsonl", [one for one in lines if one["name"] == "j"])
    found = read_session(folder, how(records=0, until_done=False, admission="none"))
    assert (found["rps"], found["done_s"], found["exact"]) == (None, None, None)


def test_quantiles_and_ratios_by_hand():
    assert latency_quantile([[[100, 300], []], [[200]]], 0.5) == 2.0
    assert latency_quantile([[list(range(1, 201))]]) == 2.0 - 0.01  # the higher neighbour of place 197.01 of 199
    assert latency_quantile([[], [[]]]) is None
    steady = latency_ratio([[[300]] * 90], [[[200]] * 60])
    assert (steady["ratio"], steady["low"], steady["high"], steady["n"]) == (1.5, 1.5, 1.5, 60)
    assert latency_ratio([], [[[200]]])["ratio"] is None


def test_the_interval_holds_what_differs_between_blocks():
    random = np.random.default_rng(4)
    alone, ours = ([[[int(x)] for x in random.normal(mean, 30, 1800)]] for mean in (400, 440))
    found = latency_ratio(ours, alone)
    assert found["low"] < found["ratio"] < found["high"] and found["low"] > 1.0 and found["high"] < 1.2
    calm_then_wild = [[[400]] * 30 + [[900]] * 30]
    wide = latency_ratio(calm_then_wild, [[[400]] * 60])
    assert (wide["low"], wide["high"]) == (1.0, 2.25)


def test_a_deadline_is_planned_as_a_users_and_told_from_the_orders_time_on(monkeypatch):
    heard = planned_job.moment(now_s=planned_job.NOW + 5)
    silent = heard._replace(known=replace(heard.known, issued=None))
    moments = [silent, heard]
    monkeypatch.setattr(deadline, "read_now", lambda settings, job: moments.pop(0))
    monkeypatch.setattr(deadline, "LOOK_S", 0.0)
    asked = planned_job.order(wall_time=planned_job.NOW)
    made = deadline.plan_session(load(), asked, 3600.0)
    due = replace(asked, by=planned_job.NOW + 3600 + PUBLISHED_S, sure=0.9)  # what is judged is when all is read
    plan = plan_order(due, heard)
    assert made.order.schedule == with_plan(due, plan, heard).schedule == made.told["schedule"] and made.order.schedule
    assert made.told["planned"][0] == pytest.approx(plan.finish.seconds[0] - PUBLISHED_S + 5, abs=1e-3)
    assert made.told["futures"] == len(plan.finish.seconds) and made.told["chance"] >= 0.9

    moments.append(heard)
    refused = deadline.plan_session(load(), asked, 60.0)
    assert refused.order is None and "cannot be met" in refused.told["refused"]


def test_only_a_load_with_a_past_is_forecast_and_for_a_deadline_that_another_one_goes_on():
    assert issued_forecasts("steady", 600.0, 600.0) is None
    issued = issued_forecasts("steady", 600.0, 600.0, 360.0)
    assert issued.step_s == 30 and issued.quantiles.shape == (21, 12, len(issued.levels)) and issued.begins_s == 0
    assert issued.quantiles[7, 5, 3] == 80 == issued.last[0]
    assert (np.diff(issued.quantiles[0, 0]) > 0).all() and issued.quantiles[0, 0, 0] > 75


def test_forecasts_come_in_their_time_with_signs_of_life():
    from models.twin.experiment.foresight import LEVELS, IssuedForecasts

    issued = IssuedForecasts(np.tile(np.arange(7.0), (4, 12, 1)), np.arange(4.0), 10.0, 0.0)
    told = sorted(forecast_messages("j", issued, BEGAN, 25.0), key=lambda one: one[0])
    made = [(at, message(BEGAN + at)) for at, message in told]
    forecasts = [(at, one) for at, (topic, _, one) in made if topic == "forecasts"]
    assert [at for at, _ in forecasts] == [0.0, 10.0, 20.0]
    assert [one.time for _, one in forecasts] == [BEGAN, BEGAN + 10, BEGAN + 20] and forecasts[0][1].levels == [*LEVELS]
    for _, one in forecasts:
        decode(type(one), encode(one))
    beats = [one for _, (topic, _, one) in made if topic == "heartbeats"]
    assert {one.standing for one in beats} == {str(forecasts[0][1].epoch)} and len(beats) == 4


def test_a_job_keeps_up_once_its_batches_hold_what_came_since_the_one_before(tmp_path):
    log = tmp_path / "j.progress.jsonl"
    assert not keeps_up(log, "j", 10.0)
    lines = [progress("j", at, (9, 9), rows) for at, rows in ((0, 5), (8, 500), (16, 500), (24, 104), (32, 90))]
    for many, keeps in ((3, False), (4, False), (5, True)):
        write_lines(log, lines[:many])
        assert keeps_up(log, "j", 10.0) is keeps, many
    write_lines(log, [*lines, progress("j", 34, (9, 9), 60)])  # more than 1.3 x 20, and 8
    assert not keeps_up(log, "j", 10.0)
    write_lines(log, [*lines[:-1], progress("j", 32, (9, 9), 90, left=1)])  # its read limit left one
    assert not keeps_up(log, "j", 10.0)
    assert not keeps_up(log, "other", 10.0)


def test_windows_are_counted_by_what_their_records_come_to_and_may_be_off_by_their_bound():
    records = [("a", 9_999, b"{}"), ("a", 9_999, b"-"), ("a", 10_000, b"{}"), ("b", 10_001, b"{}")]
    truth = count_net(records, str)
    assert truth == {("a", 10_000): 1, ("b", 10_000): 1}
    assert count_outside({window: (1, 0.0) for window in truth}, truth) == 0
    assert count_outside({("a", 10_000): (1.0, 0.0)}, truth) == 1  # the other one is missing
    assert count_outside({("a", 10_000): (3.0, 2.0), ("b", 10_000): (3.5, 2.0), ("c", 0): (1.0, 2.0)}, truth) == 1
    assert count_outside({("a", 10_000): (1.0, 0.0)}, truth, absent=1.0) == 0  # of a sample that held none of it
    assert count_outside({("a", 10_000): (2.0, 0.0)}, truth, absent=1.0) == 1
    assert {group_of(f"key-{number}") for number in range(100)} == {str(group) for group in range(8)}
