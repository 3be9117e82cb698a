"""Queries as their agents measured them: rates, cores and latencies by hand."""

import time
from types import SimpleNamespace

import pytest

from configs.settings import ROOT, load
from configs.topology import load_topology
from models.placement.batches import records_quantile
from models.placement.plan.as_measured import counted_of
from models.placement.plan.measured import Block, Measure, Placement
from models.placement.plan.observed import (
    ArrivedInterval,
    arriving_rps,
    observe_block,
    slowest_path_s,
)
from models.placement.plan.wiring import runs_of
from models.placement.rates import rates_of
from pipelines.cli.placement.measured import describe_observed
from pipelines.placement import observed
from pipelines.placement.job_folder import JobFolder
from tests.fakes.followed_topic import FollowedTopic
from tidecast.messages import MetricSample, encode

ADVERTS = load_topology("adverts", ROOT / "configs" / "topologies")
TWO = Placement((
    Block(("parse", "views", "project"), "east", 1, 1.0, 1.0), Block(("join", "count"), "west", 3, 1.0, 1.5),
), 3.0, 2.5, True)  # fmt: skip


def batch(at, rows, run_s=0.0, latency=(1.0, 1.0, 1.0), operators=None):
    p50, p95, most = latency
    return SimpleNamespace(
        wall_time=at, batch_rows=rows, run_s=run_s, latency_p50_s=p50, latency_p95_s=p95, latency_max_s=most,
        operator_rows=operators,
    )  # fmt: skip


def test_rates_and_cores_are_those_between_the_first_and_the_last_batch():
    batches = [batch(100.0, 900, 9.0), batch(101.0, 500, 0.5), batch(104.0, 1500, 2.5)]
    found = observe_block(ADVERTS, TWO, 0, batches)
    assert (found.said_rps, found.rps, found.cores, found.batches) == (600, 500, 0.75, 2)
    assert found.latency_s == 1.0 and found.block is TWO.blocks[0]
    assert observe_block(ADVERTS, TWO, 1, [], 2.0)[1:] == (
        pytest.approx(396.0), None, None, None, 0, None, None, None, None, None, False,
    )  # fmt: skip


def test_of_batches_whose_stages_spark_has_dropped_nobody_knows_how_busy_they_kept_a_query():
    dropped = [batch(100.0, 900, None), batch(102.0, 900, None), batch(104.0, 900, None)]
    found = observe_block(ADVERTS, TWO, 0, dropped)
    assert (found.rps, found.cores, found.record_s) == (450, None, None)  # 0 is little load, which asks for fewer
    some = observe_block(ADVERTS, TWO, 0, [*dropped[:2], batch(104.0, 900, 3.0)])
    assert (some.rps, some.cores) == (450, 1.5)  # half of it would be little load, too


def test_a_last_batch_without_records_tells_no_rate():
    """Spark does one after the last records of a query with windows, to close these."""
    alone = observe_block(ADVERTS, TWO, 1, [batch(100.0, 900, 2.0), batch(100.5, 0, 0.2)])
    assert (alone.rps, alone.cores, alone.batches) == (None, None, 1)  # 0 asks for fewer executors
    more = [batch(100.0, 900, 2.0), batch(100.5, 0, 0.2), batch(102.0, 400, 0.8), batch(102.5, 0, 0.2)]
    found = observe_block(ADVERTS, TWO, 1, more)
    assert (found.rps, found.cores, found.batches) == (200, 0.5, 2)


def test_what_comes_is_told_of_a_query_that_reads_sources_alone_with_what_waits_worked_off_in_five_minutes():
    batches = [batch(100.0, 900), batch(101.0, 500), batch(104.0, 1500)]
    arrived = [ArrivedInterval(101.0, 1.0, 1_200.0, 900), ArrivedInterval(104.0, 3.0, 800.0, 31_350)]
    found = observe_block(ADVERTS, TWO, 0, batches, arrived=arrived)
    assert (found.rps, found.come_rps, found.offered_rps) == (500, 900 + (31_350 - 1.5 * 900) / 300, 1_000)
    assert found.arrival_rps == 900
    unheard = ArrivedInterval(105.0, 1.0, 900.0, None)  # of a query that has just begun again
    assert observe_block(ADVERTS, TWO, 0, batches, arrived=[*arrived, unheard]).come_rps == 1_000
    later = observe_block(ADVERTS, TWO, 1, batches, arrived=arrived)  # its topics hold marks of transactions
    assert (later.come_rps, later.offered_rps) == (None, 500)
    assert observe_block(ADVERTS, TWO, 0, batches).offered_rps == 500
    assert arriving_rps(arrived, 100.0, 500.0) == 900  # it waits for the next trigger
    assert arriving_rps([arrived[0]._replace(lag_records=330_000)], 100.0, 500.0) == 1_200 + 150_000 / 500


def test_a_backlog_of_hours_counts_for_half_of_what_comes_or_is_read():
    """It is gone long before the next plan; told whole, no cluster would have room for it."""
    hours = ArrivedInterval(101.0, 1.0, 600.0, 8 * 3600 * 600)
    assert arriving_rps([hours], 1.0, 500.0) == 900
    assert arriving_rps([hours._replace(arrival_rps=0.0)], 1.0, 860.0) == 430  # nothing comes, and it still works


def test_what_comes_is_known_also_of_a_query_that_did_no_two_batches():
    arrived = [ArrivedInterval(100.0, 60.0, 1_800.0, 600_000)]
    hangs = observe_block(ADVERTS, TWO, 0, [batch(100.0, 900)], arrived=arrived)
    assert (hangs.rps, hangs.cores, hangs.latency_s, hangs.batches) == (None, None, None, 1)
    assert hangs.come_rps == hangs.offered_rps == 1.5 * 1_800 and hangs.arrival_rps == 1_800
    assert observe_block(ADVERTS, TWO, 1, [], arrived=arrived).offered_rps is None
    rests = observe_block(ADVERTS, TWO, 0, [], arrived=[ArrivedInterval(100.0, 60.0, 0.0, 0)])
    assert rests.offered_rps is None  # as stated: nothing is known of its work
    begins = observe_block(ADVERTS, TWO, 0, [], arrived=[arrived[0]._replace(span_s=59.0)])
    assert begins.offered_rps is None  # in less than a minute it has had no time for two


def test_operators_inside_a_query_have_the_rates_at_which_it_counts_their_rows():
    batches = [
        batch(100.0, 0),
        *(
            batch(100.0 + at, 600, operators={"events": 600, "parse": 540, "views": 108, "project": 108})
            for at in (1, 2)
        ),
        batch(103.0, 900, operators={"events": 900, "parse": 900}),
        batch(104.0, 700),
    ]  # of another plan, older agent
    found = observe_block(ADVERTS, TWO, 0, batches)
    assert found.rps == 700 and found.sent_rps == {"events": 700, "parse": 630, "views": 126, "project": 126}
    assert counted_of(ADVERTS, found) == {"parse": (700, 630), "views": (630, 126), "project": (126, 126)}
    silent = observe_block(ADVERTS, TWO, 0, [batch(100.0, 5), batch(101.0, 5)])
    assert silent.sent_rps is None and counted_of(ADVERTS, silent) == {}
    idle = dict.fromkeys(("events", "parse", "views", "project"), 0)
    assert observe_block(ADVERTS, TWO, 0, [batch(100.0, 0), batch(101.0, 0, operators=idle)]).sent_rps is None


def test_a_quantile_over_batches_counts_each_by_its_records():
    quick, slow = batch(0, 900, latency=(1.0, 1.0, 1.0)), batch(1, 100, latency=(5.0, 5.0, 5.0))
    assert records_quantile([quick, slow], 0.89) == 1.0 and records_quantile([quick, slow], 0.91) == 5.0
    assert records_quantile([batch(0, 40, latency=(1.0, 1.9, 2.0))], 0.5) == pytest.approx(1.0, abs=0.03)
    assert records_quantile([batch(0, 40, latency=(1.0, 1.9, 2.0))], 0.95) == pytest.approx(1.9, abs=0.05)
    assert records_quantile([batch(0, None), batch(0, 5, latency=(None, None, None))], 0.5) is None


def test_a_path_takes_what_its_queries_take_together():
    first = observe_block(ADVERTS, TWO, 0, [batch(0.0, 5), batch(1.0, 5, latency=(2.0, 2.0, 2.0))])
    second = observe_block(ADVERTS, TWO, 1, [batch(0.0, 5), batch(1.0, 5, latency=(3.0, 3.0, 3.0))])
    assert slowest_path_s(ADVERTS, TWO, [first, second]) == 5.0
    assert slowest_path_s(ADVERTS, TWO, [first, observe_block(ADVERTS, TWO, 1, [])]) is None


def test_a_query_that_writes_two_topics_runs_what_is_before_them_twice():
    ranked = load_topology("words_ranked", ROOT / "configs" / "topologies" / "bench")
    blocks = (("parse", "split", "count"), ("top",))
    assert runs_of(ranked, blocks) == {"parse": 2, "split": 2, "count": 1, "top": 1}
    assert set(runs_of(ranked, (("parse",), ("split",), ("count",), ("top",))).values()) == {1}
    rates = rates_of(ranked)
    both, (alone, _, _) = (
        Measure(ranked, rates).wiring(one).loads for one in (blocks, (("parse", "split"), ("count",), ("top",)))
    )
    work = {name: own.work_ms / 1000 * rates.taken[name] for name, own in ranked.operators.items()}
    assert alone == pytest.approx(work["parse"] + work["split"], rel=0.02)
    assert both[0] == pytest.approx(2 * (work["parse"] + work["split"]) + work["count"], rel=0.02)
    placement = Placement(tuple(Block(one, "east", 1, 1.0, 1.0) for one in blocks), 1.0, 1.0, True)
    rows = [70 + 10 * at for at in range(10)]
    batches = [batch(100.0 + 4 * at, many, 1.0 + 0.02 * many) for at, many in enumerate(rows)]  # 30 lines a second
    found = observe_block(ranked, placement, 0, batches)  # agents count a line once, whose work is that of both ways
    assert (found.rps, found.record_s) == (pytest.approx(30.0), pytest.approx(0.02))


def test_what_is_printed_of_a_job_has_a_line_for_each_operator_that_is_counted(tmp_path):
    folder = JobFolder(tmp_path / "job")
    folder.begin(ROOT / "configs" / "topologies" / "adverts.yaml", TWO)
    rows = {"events": 600, "parse": 600, "views": 150, "project": 150}
    first = observe_block(ADVERTS, TWO, 0, [batch(100.0, 600), batch(101.0, 600, operators=rows)])
    second = observe_block(ADVERTS, TWO, 1, [])
    lines = list(describe_observed(folder, [first, second], None, {}))
    told = {line.split()[0]: line.split()[1:] for line in lines[3:7]}
    assert told["operator"] == ["takes", "records/s", "makes", "of", "one", "stated"]
    assert told["views"] == ["600.0", "150.0", "0.250", "0.330"] and "join" not in told
    unread = list(describe_observed(folder, [second, second], None, {}))
    assert len(unread) == 4 and not any(line.startswith("operator") for line in unread)


def test_what_many_other_jobs_send_takes_none_of_the_seconds_that_count(tmp_path, monkeypatch):
    now_s, folder = time.time(), JobFolder(tmp_path / "job")
    folder.begin(ROOT / "configs" / "topologies" / "adverts.yaml", TWO)

    def told(ago_s, job):
        sample = MetricSample(job=job, time=0.0, wall_time=now_s - ago_s, kind="batch", batch_rows=600, run_s=1.0)
        return SimpleNamespace(timestamp=now_s - ago_s, key=job, value=encode(sample))

    others = [told(ago_s, "orders") for ago_s in range(580, 10, -1)] * 100
    own = [told(ago_s, name) for ago_s in (900, 590, 300, 10) for name in ("adverts.parse", "adverts.join")]
    monkeypatch.setattr(observed, "Follower", FollowedTopic(sorted(own + others, key=lambda one: one.timestamp)))
    found, _ = observed.observe_job(load(var=tmp_path), folder, 600)
    assert [(one.batches, one.rps) for one in found] == [(2, pytest.approx(1200 / 580))] * 2


def test_what_agents_saw_arrive_counts_beside_what_their_queries_read(tmp_path, monkeypatch):
    now_s, folder = time.time(), JobFolder(tmp_path / "job")
    folder.begin(ROOT / "configs" / "topologies" / "adverts.yaml", TWO)

    def told(kind, ago_s, span_s=10.0, **more):
        at = now_s - ago_s
        sample = MetricSample(job="adverts.parse", time=at - span_s, wall_time=at, span_s=span_s, kind=kind, **more)
        return SimpleNamespace(timestamp=at, key="adverts.parse", value=encode(sample))

    read = [told("batch", ago_s, batch_rows=8_600, run_s=10.0) for ago_s in range(590, 0, -10)]
    came = [told("interval", ago_s, arrival_rps=1_200.0, lag_records=31_800, executors=1) for ago_s in (595, 300, 5)]
    history = told("interval", 200, arrival_rps=1e6)
    others = sorted([*read, *came, history], key=lambda one: one.timestamp)
    monkeypatch.setattr(observed, "Follower", FollowedTopic(others))
    (first, second), _ = observed.observe_job(load(var=tmp_path), folder, 600)
    assert first.rps == pytest.approx(860) and first.come_rps == 1_200 + (31_800 - 1_800) / 300 == 1_300
    assert second.come_rps is None

    # Eight hours in which the broker was away, told as one interval, count for the five seconds that are looked at.
    away = told("interval", 595, 8 * 3600.0, arrival_rps=0.0, lag_records=0, executors=1)
    monkeypatch.setattr(observed, "Follower", FollowedTopic(sorted([away, *others], key=lambda one: one.timestamp)))
    (first, _), _ = observed.observe_job(load(var=tmp_path), folder, 600)
    assert first.come_rps == pytest.approx(1_200 * 25 / 30 + (31_800 - 1_500) / 300, rel=0.02)


@pytest.mark.parametrize(("trigger_s", "looked_at"), [(0.05, 14_000), (1.0, observed.KEPT)])
def test_as_many_batches_are_looked_at_as_the_triggers_make(tmp_path, monkeypatch, trigger_s, looked_at):
    now_s, folder, file = time.time(), JobFolder(tmp_path / "job"), tmp_path / "adverts.yaml"
    text = (ROOT / "configs" / "topologies" / "adverts.yaml").read_text()
    file.write_text(text.replace("trigger_s: 1", f"trigger_s: {trigger_s}"))
    folder.begin(file, TWO)
    assert folder.topology().trigger_s == trigger_s
    batches = [
        MetricSample(job="adverts.parse", time=0.0, wall_time=now_s - ago / 20, kind="batch", batch_rows=30, run_s=0.01)
        for ago in range(14_000, 0, -1)
    ]
    records = [SimpleNamespace(timestamp=one.wall_time, key=one.job, value=encode(one)) for one in batches]
    monkeypatch.setattr(observed, "Follower", FollowedTopic(records))
    (first, _), _ = observed.observe_job(load(var=tmp_path), folder, 800)
    assert (first.batches, first.rps) == (looked_at - 1, pytest.approx(600))
