"""Three jobs on one real cluster: loads and shares, what is judged, and how sessions are kept; the cluster is faked."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from configs.contract import read_contracts
from configs.errors import SettingsError
from configs.pool import load_pool
from configs.settings import load
from pipelines.bench.team.real import feed, measure
from pipelines.bench.team.real.feed import SentLoad, TeamFeed
from pipelines.bench.team.real.judged import judge_decisions, judge_latency, most_asked_for
from pipelines.bench.team.real.mix import (
    CARRIED_RPS,
    CORES,
    HOURS,
    PEAK,
    SPEED,
    STEP_S,
    WEIGHTS,
    draw_load,
    known_shares,
    late_fluid_s,
)
from pipelines.bench.team.real.sides import NAME, POOL, STATIC, write_side
from pipelines.bench.team.real.summary import summarise
from pipelines.jobs.events import decode_event
from pipelines.report.recorded.batches import QueryBatches
from pipelines.stack.processes import ProcessError
from tests.fakes.clock import clock_with
from tests.unit.scale.test_pool_division import CONTRACTS, Site
from tidecast.messages import encode


def test_the_peaks_come_one_after_the_other_and_sum_to_more_than_the_cluster_has():
    loads = {job: draw_load(job, 0) for job in WEIGHTS}
    assert 1.3 <= PEAK * len(loads) / CORES <= 1.6
    thirds = set()
    for one in loads.values():
        begins, rates = one.trace.live()
        assert rates.max() == pytest.approx(PEAK * CARRIED_RPS) and len(rates) == HOURS * 3600 / STEP_S
        assert one.plan.seconds == HOURS * 3600 / SPEED
        assert len(one.plan) == pytest.approx(rates.sum() * STEP_S / SPEED, rel=0.05)
        assert one.trace.history()[0][-1] == begins[0] - STEP_S
        thirds.add(int(3 * np.argmax(rates) / len(rates)))
    assert len(thirds) == 3
    again, other = draw_load("rides", 0), draw_load("rides", 1)
    assert (again.plan.send_at == loads["rides"].plan.send_at).all()
    assert again.trace.live_start != other.trace.live_start


def test_a_fluid_is_late_while_more_waits_than_may():
    able = 2 * CARRIED_RPS
    # 5 s at half as much again leave 2.5 s of work, more than the 2 s that may wait; 5 s at half of it take that away.
    assert late_fluid_s(np.array([1.5 * able, 0.5 * able, able]), 5.0, 2) == 5.0
    assert late_fluid_s(np.array([able, able]), 5.0, 2) == 0.0


def test_the_shares_are_all_of_the_cluster_and_go_by_the_days_before():
    def trace(rps):
        return SimpleNamespace(history=lambda: (np.zeros(4), np.full(4, rps)))

    even = known_shares({job: trace(CARRIED_RPS) for job in WEIGHTS})
    busy = known_shares({job: trace(CARRIED_RPS * (4 if job == "rides" else 0.5)) for job in WEIGHTS})
    assert min(even.values()) >= 1 and busy == {"orders": 1, "payments": 1, "rides": 4}


def test_either_side_has_the_same_cores_and_one_of_them_a_pool(tmp_path):
    shares = {"orders": 3, "payments": 2, "rides": 1}
    static, wrong = read_contracts(write_side(tmp_path / "static", STATIC, shares))
    assert not wrong and {job: one.executors.max for job, one in static.items()} == shares
    assert not (tmp_path / "static" / "pools").exists()
    pooled, _ = read_contracts(write_side(tmp_path / "pool", POOL, shares))
    pool = load_pool(NAME, tmp_path / "pool" / "pools", pooled)
    assert pool.cores == CORES == sum(shares.values())
    assert {job: one.weight for job, one in pool.jobs.items()} == WEIGHTS
    for job, one in pooled.items():
        assert one.model_copy(update={"executors": static[job].executors}) == static[job]


def test_late_is_a_second_in_which_any_record_came_out_too_late_or_never():
    produced = 100.0 + np.array([0.1, 0.2, 1.5, 2.5, 3.5])
    sent = SentLoad([], np.array([0, 1, 0, 1, 0]), np.array([0, 0, 1, 1, 2]), produced)
    batches = QueryBatches(
        np.arange(2), ["a", "a"], {"q"}, np.array([101.0, 104.0]), np.array([103.0, 112.0]), np.array([3, 1]),
        {0: np.array([2, 2]), 1: np.array([0, 2])}, np.zeros(2), np.full(2, np.nan),
    )  # fmt: skip
    # The second record (112 - 100.2) and the last, which never came, are late with 10 s; the fourth (9.5 s) is not.
    assert judge_latency(sent, batches, 100.0, 10.0) == {"seconds": 4, "late_s": 2, "longest_s": 11.8}


def test_who_yields_is_counted_and_has_to_say_so(tmp_path, monkeypatch):
    site = Site(tmp_path, monkeypatch)
    site.seconds(60, orders=300.0, payments=20.0)
    site.seconds(60, orders=300.0, payments=900.0)
    contracts = {contract.hash: contract for contract in CONTRACTS.values()}
    orders = [json.loads(encode(one)) for one in site.decided["orders"]]
    found = judge_decisions(orders, contracts)
    assert found["again"] == 0 and found["yields"] > 0 and found["given_up"] > 0 and found["unexplained"] == 0
    assert found["changes"] >= 2 and 1 <= found["most_changes"] <= found["changes"]
    silent = [one | {"reason": one["reason"].split("; pool")[0]} for one in orders]
    told = judge_decisions(silent, contracts)
    assert told["unexplained"] == told["yields"] == told["again"] > 0


def test_the_most_that_all_were_to_have_is_of_one_moment():
    def decided(job, executors):
        return {"job": job, "executors": executors}

    told = [decided("a", 1), decided("b", 4), decided("b", 2), decided("a", 3), decided("b", 1)]
    assert most_asked_for(told) == 5 and most_asked_for([]) == 0


def session(late, **more):
    job = {"lost": 0, "duplicated": 0, "produced": 9, "again": 0, "decisions": 3, "yields": 1, "given_up": 1,
           "unexplained": 0, "most_changes": 2}  # fmt: skip
    return {"jobs": {name: {**job, "late_s": late} for name in WEIGHTS}, "together": 6, "shares": None, **more}


def test_a_pair_is_the_cost_of_late_seconds_by_their_weights():
    shares = {"orders": 2, "payments": 2, "rides": 2}
    pairs = [{POOL: session(late), STATIC: session(20, shares=shares)} for late in (2, 10, 25)]
    found = summarise(pairs)
    assert found["ratio"] == (70 + 1) / (140 + 1) and found["worst"] == (175 + 1) / (140 + 1)
    assert (found["n"], found["wrong"], found["yields"], found["decisions"]) == (3, 0, 9, 54)
    assert found["pairs"][1]["cores"] == "shares 2, 2, 2" and found["pairs"][1]["cost"] == 140
    assert summarise([])["ratio"] is None


def test_sessions_are_run_in_turn_and_those_that_are_kept_are_not_run_again(monkeypatch, tmp_path):
    ran, saved = [], []

    @contextmanager
    def no_stack(settings, parts):
        assert settings.spark.worker_cores == CORES and parts == {"broker", "spark"}
        yield SimpleNamespace(settings=settings)

    def run(stack, settings, folder, side, loads, shares):
        ran.append((settings.kafka.prefix, side))
        if ran[-1] == ("3-static.", STATIC) and len(ran) == 6:
            raise ProcessError("rides ended.")
        return session(3 if side == POOL else 30)

    for name, fake in (("Stack", no_stack), ("run_session", run), ("LOOK_S", 0.0)):
        monkeypatch.setattr(measure, name, fake)
    settings = load(var=str(tmp_path))
    found = measure.measure_real(settings, {}, saved.append, hours=1.0)
    assert [prefix for prefix, _ in ran] == [
        "1-pool.", "1-static.", "2-static.", "2-pool.", "3-pool.", "3-static."
    ]  # fmt: skip
    assert len(saved) == 5 and found["n"] == 2 and "3-static" not in found["kept"]
    found = measure.measure_real(settings, json.loads(json.dumps(found)), hours=1.0)
    assert ran[6:] == [("3-static.", STATIC)] and found["n"] == 3
    measure.measure_real(settings, found, hours=2.0)
    assert len(ran) == 13  # of another length: all anew
    with pytest.raises(SettingsError, match="Unset it for this command"):
        measure.measure_real(load(spark={"master": "spark://elsewhere:7077"}), found)


class Broker:
    """A publisher that keeps what it is sent; of each record only the first so many are acknowledged."""

    def __init__(self, kafka, **options):
        self.sent, self.closed = [], False

    def send_bytes(self, topic, key, value, partition, timestamp_s):
        offset = sum((topic, partition) == one[:2] for one in self.sent)
        self.sent.append((topic, partition, value))
        place = SimpleNamespace(partition=partition, offset=offset)
        return SimpleNamespace(is_done=True, succeeded=lambda: True, value=place)

    def close(self):
        self.closed = True


def test_the_feed_sends_each_load_once_after_a_few_records_before_it(monkeypatch):
    monkeypatch.setattr(feed, "Publisher", Broker)
    loads = {job: draw_load(job, 0, hours=0.01) for job in ("orders", "rides")}
    began = 2_000_000_000.0
    monkeypatch.setattr(feed, "time", clock_with(time=lambda: began))
    with TeamFeed(load().kafka, loads) as team:
        broker = team._publisher
        team._jobs["orders"].warm_up(1.0)
        team.begin(began - 60.0)  # all is due
        team._thread.join(0.3)
        while not team.over():
            team._thread.join(0.05)
        sent = team.end()
    assert broker.closed
    assert len(sent["orders"].events) == len(loads["orders"].plan) + 6 and sent["orders"].events[0].seq == feed.WARM_SEQ
    assert len(sent["rides"].offset) == len(loads["rides"].plan)
    read = [decode_event(value, began) for topic, _, value in broker.sent if topic == "orders.events"]
    assert read == sent["orders"].events
    assert len(set(zip(sent["orders"].partition, sent["orders"].offset, strict=True))) == len(loads["orders"].plan)
