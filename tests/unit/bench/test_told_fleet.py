"""A fleet's parts: what its jobs say, how long their answers took, and what processes take."""

import itertools
import subprocess
import sys
from dataclasses import replace

import pytest
from kafka import KafkaProducer

from configs.contract import read_contracts
from configs.sections import Kafka, Training
from pipelines.bench.fastpath.champions import FolderChampions
from pipelines.bench.fleet import jobs as fleet
from pipelines.bench.fleet.measure import format_size
from pipelines.bench.fleet.told_job import CEILING, MEAN_RPS, SWING_S, ToldJob
from pipelines.bench.fleet.usage import usage_of
from pipelines.registry import Champion
from tidecast.messages import decode, encode

NOW = 1.8e9


def test_a_told_job_says_what_an_agent_says():
    job = ToldJob(fleet.contract_of(3), 7, NOW)
    seconds = [job.second(NOW + number) for number in range(40)]
    said = [sample for second in seconds for sample in second]
    assert [decode(type(sample), encode(sample), NOW + 50) for sample in said] == said
    assert [len(second) for second in seconds] == [1, 2] * 20
    ends = [(second[0].time, second[0].time + second[0].span_s) for second in seconds]
    assert all(abs(until - since) < 1e-6 for (_, until), (since, _) in itertools.pairwise(ends))
    assert {sample.job for sample in said} == {"job-0003"} and {sample.executors for sample in said} == {1}


def test_its_load_is_lowest_when_it_begins_and_highest_half_a_swing_later():
    job = ToldJob(fleet.contract_of(0), 7, NOW)
    low, high = (
        sum(job.second(NOW + at + second)[0].arrival_rps for second in range(20)) / 20 for at in (0, SWING_S / 2)
    )
    assert low == pytest.approx(0.3 * MEAN_RPS, rel=0.1) and high == pytest.approx(1.7 * MEAN_RPS, rel=0.1)


def test_its_executors_follow_a_decision_after_the_lead():
    contract = fleet.contract_of(0)
    job, lead = ToldJob(contract, 7, NOW), contract.planning.lead_s
    job.follow(4, NOW)
    before, after = job.second(NOW + lead - 1)[0], job.second(NOW + lead + 1)[0]
    assert (before.executors, before.pending_executors) == (1, 3)
    assert (after.executors, after.pending_executors) == (4, 0)


def test_a_fleet_has_contracts_and_champions(tmp_path):
    fleet.write_contracts(tmp_path / "contracts", 12)
    contracts, wrong = read_contracts(tmp_path / "contracts")
    assert wrong == {} and len(contracts) == 12
    assert all(contracts[f"job-{n:04d}"] == fleet.contract_of(n) for n in range(12))
    assert {contract.executors.max for contract in contracts.values()} == {CEILING}
    fleet.write_champions(tmp_path / "champions", 12, Training())
    source = FolderChampions(tmp_path / "champions")
    assert source.champions() == dict.fromkeys(contracts, Champion("1"))
    assert source.fetch("job-0003", "1")[0].step_s == fleet.STEP_S


def test_its_past_ends_where_the_present_begins(monkeypatch):
    sent = []

    class Past:
        def __init__(self, kafka, **options):
            assert set(options) <= set(KafkaProducer.DEFAULT_CONFIG)

        def send(self, topic, key, sample):
            sent.append((topic, key, replace(sample)))

        def close(self):
            pass

    monkeypatch.setattr(fleet, "Publisher", Past)
    fleet.send_past(Kafka(), 3, NOW + 30)
    assert len(sent) == 3 * fleet.PAST_STEPS
    first, last = sent[0][2], sent[-1][2]
    assert last.time + last.span_s <= NOW + 30 < last.time + 2 * fleet.STEP_S
    assert last.time - first.time == (fleet.PAST_STEPS - 1) * fleet.STEP_S
    assert all(decode(type(sample), encode(sample), NOW + 30) == sample for _, _, sample in sent)


def test_cores_and_memory_of_a_process_and_its_children_are_told(monkeypatch):
    monkeypatch.setattr("pipelines.bench.fleet.usage.EVERY_S", 0.1)
    work = "import time; held = bytearray(50_000_000)\nwhile time.process_time() < 0.5: pass"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {work!r}]); print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script], **pipes) as busy, subprocess.Popen(["sleep", "60"]) as idle:
        with usage_of({"busy": busy.pid, "idle": idle.pid}) as usage:
            busy.stdout.readline()  # its child has ended
        busy.kill()
        idle.kill()
    assert usage["busy"].cores > 0.02 > usage["idle"].cores
    assert usage["busy"].megabytes > 45 > usage["idle"].megabytes


def test_a_size_is_a_line():
    waits = {"p50_s": 0.5, "p95_s": 1.5, "p99_s": 2.0, "count": 9}
    used = {"cores": 0.25, "megabytes": 812.0}
    size = {"jobs": 10, "decision": waits, "forecast": waits, "late_s": 0.0}
    line = format_size({**size, **dict.fromkeys(("autoscaler", "serving", "broker", "agents"), used)})
    assert "10 jobs" in line and "p95 1.5 s (9)" in line and "autoscaler 0.25 cores 812 MB" in line
