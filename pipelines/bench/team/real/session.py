"""A session: three real jobs on one real cluster for a compressed day, under one autoscaler."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from configs.sections import Kafka
from configs.settings import Settings
from models.forecast.blend.blend import Blend
from models.forecast.core.forecaster import Task
from models.policy.live.recomputed import parse_contracts
from pipelines.bench.fastpath.champions import add_version, promote_version
from pipelines.bench.team.real.feed import SentLoad, TeamFeed
from pipelines.bench.team.real.job import events_of, results_of
from pipelines.bench.team.real.judged import judge_decisions, judge_latency, most_asked_for
from pipelines.bench.team.real.mix import SPEED, TARGET_S, DayLoad
from pipelines.bench.team.real.sides import write_side
from pipelines.jobs.launch import first_offsets_file
from pipelines.jobs.progress_log import progress_file
from pipelines.jobs.truth import Counted, compare_counts
from pipelines.kafka.broker import read_records
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topic, create_topics
from pipelines.report.recorded.batches import read_batches
from pipelines.report.recorded.dump import dump_topics
from pipelines.report.recorded.lines import json_lines
from pipelines.serve.models.model_set import pack_model
from pipelines.stack.processes import Process, ProcessError
from pipelines.stack.stack import Stack
from tidecast.control import clock_key
from tidecast.messages import Control, MetricSample

PATIENCE_S, DRAIN_S, LOOK_S = 400.0, 600.0, 1.0
"""Seconds that are waited for what is slow and has not failed, and for the last records; and between two looks."""
WARM_BATCHES, HEAD_START_S = 6, 2.0
"""Batches with records of each job before the loads begin; how long before that their clocks are told."""


def run_session(
    stack: Stack, settings: Settings, folder: Path, side: str, loads: Mapping[str, DayLoad], shares: Mapping[str, int]
) -> dict[str, Any]:  # fmt: skip
    """Run a session, and return what it came to; blocks for the loads' time and some minutes.

    Leaves in `folder` what jobs leave, and what was said on the topics as `<topic>.jsonl`.

    Args:
        stack: with broker and Spark.
        settings: of the stack, with a prefix of topics that are this session's alone.
        folder: is made; must not hold another session.
        side: of `sides.SIDES`.
        loads: of the jobs, by name.
        shares: on the static side.

    Returns:
        `jobs`, by name: as `judge_latency` and `judge_decisions`; `produced`, `counted`, `lost` and `duplicated`
        records; `course`, [seconds, executors decided] of each change. `together`, the most that all were to have.

    Raises:
        ProcessError: a process ended, or was not ready in time.
        BrokerError, kafka.errors.KafkaError: the broker does not answer, or has not taken a record.
        RunError, OSError: a file is missing, or cannot be written.
    """
    opened = time.time()
    contracts = write_side(folder, side, shares)
    _create(settings.kafka, loads)
    _send_past(settings.kafka, loads)
    with _running(stack, settings, folder, contracts, list(loads)) as processes, ExitStack() as sending:
        # What is produced from then on is the jobs': they have written down where their topics ended.
        begun = [first_offsets_file(folder, job) for job in loads]
        _watch(processes, lambda: all(file.is_file() for file in begun), PATIENCE_S, "write down where jobs begin")
        feed = sending.enter_context(TeamFeed(settings.kafka, loads))
        _warm_up(processes, folder, list(loads))
        began = _announce(settings.kafka, loads)
        time.sleep(max(began - time.time(), 0.0))
        feed.begin(began)
        _watch(processes, feed.over, PATIENCE_S + max(one.plan.seconds for one in loads.values()), "send its loads")
        sent = feed.end()
        rows = {job: len(one.events) for job, one in sent.items()}
        _watch(processes, lambda: all(_rows(folder, job) >= many for job, many in rows.items()), DRAIN_S, "take all in")
    dump_topics(settings.kafka, folder, opened)
    return _judged(settings, folder, sent, began)


def _create(kafka: Kafka, jobs: Mapping[str, Any]) -> None:
    create_topics(kafka)
    for job in jobs:
        for topic in (events_of(job), results_of(job)):
            create_topic(kafka, topic)


def _send_past(kafka: Kafka, loads: Mapping[str, DayLoad]) -> None:
    """The days before, as a running site's history stands on the topic."""
    with closing(Publisher(kafka, linger_ms=20)) as publisher:
        for job, load in loads.items():
            for begin, rate in zip(*(one.tolist() for one in load.trace.history()), strict=True):
                past = MetricSample(
                    job, "interval", begin, time.time(), SPEED, span_s=load.trace.step_s, arrival_rps=rate
                )
                publisher.send("metrics", job, past)


@contextmanager
def _running(
    stack: Stack, settings: Settings, folder: Path, contracts: Path, jobs: list[str]
) -> Iterator[dict[str, Process]]:  # fmt: skip
    """The processes of a session; all are ended."""
    training, champions = settings.training, folder / "champions"
    add_version(champions, "1", pack_model(Blend(Task(training.step_s, training.horizon, tuple(training.levels)))))
    promote_version(champions, jobs, "1")
    here = {"TIDECAST_KAFKA__PREFIX": settings.kafka.prefix, "TIDECAST_CONTRACTS": str(contracts)}
    commands = {
        "serving": ["-m", "pipelines.bench.fleet.server", str(champions)],
        "autoscaler": ["-m", "tidecast", "autoscale", "--checkpoint", str(folder / "autoscaler")],
        **{job: ["-m", "pipelines.bench.team.real.job", job, "--run-dir", str(folder)] for job in jobs},
    }
    started: dict[str, Process] = {}
    try:
        for name, words in commands.items():
            started[name] = stack.spawn(name, [sys.executable, *words], here)
        yield started
    finally:
        for name in reversed(started):
            stack.end(name)


def _warm_up(processes: Mapping[str, Process], folder: Path, jobs: list[str]) -> None:
    """Wait until every job has taken some batches, and forecasts and decisions can be made."""

    def ready() -> bool:
        served = _log(processes["serving"]).count("champion is version") >= len(jobs)
        return (
            served
            and "autoscaler: ready" in _log(processes["autoscaler"])
            and all(_is_warm(folder, job) for job in jobs)
        )

    _watch(processes, ready, PATIENCE_S, f"begin: no forecasts, no decisions, or fewer than {WARM_BATCHES} batches")


def _log(process: Process) -> str:
    return process.log.read_text(errors="replace")


def _announce(kafka: Kafka, loads: Mapping[str, DayLoad]) -> float:
    """Tell each job's agent its clock, and return when the loads begin, epoch seconds."""
    began = time.time() + HEAD_START_S
    with closing(Publisher(kafka)) as publisher:
        for job, load in loads.items():
            clock = Control(job, time.time(), wall_start=began, trace_start=load.trace.live_start, time_scale=SPEED)
            publisher.send("control", clock_key(job), clock)
    return began


def _watch(processes: Mapping[str, Process], done: Callable[[], bool], patience_s: float, what: str) -> None:
    """Wait until something is done.

    Raises:
        ProcessError: a process ended; or it was not done in time, and `what` says what could not be.
    """
    until = time.monotonic() + patience_s
    while not done():
        for process in processes.values():
            if not process.running():
                raise ProcessError(f"{process.name} ended before the session could {what}.\n{process.last_lines()}")
        if time.monotonic() > until:
            raise ProcessError(f"the session could not {what}, within {patience_s:.0f} s.")
        time.sleep(LOOK_S)


def _progress(folder: Path, job: str) -> list[dict[str, Any]]:
    path = progress_file(folder, job)
    return json_lines(path) if path.is_file() else []


def _is_warm(folder: Path, job: str) -> bool:
    return len([one for one in _progress(folder, job) if one["numInputRows"]]) >= WARM_BATCHES


def _rows(folder: Path, job: str) -> int:
    return sum(one["numInputRows"] for one in _progress(folder, job))


def _judged(settings: Settings, folder: Path, sent: Mapping[str, SentLoad], began: float) -> dict[str, Any]:
    contracts = parse_contracts(json_lines(folder / "contracts.jsonl"))
    decisions = sorted(json_lines(folder / "decisions.jsonl"), key=lambda one: float(one["wall_time"]))
    jobs = {}
    for job, load in sent.items():
        own = [one for one in decisions if one["job"] == job]
        batches = read_batches(progress_file(folder, job), settings.kafka.topic(events_of(job)))
        jobs[job] = {
            **judge_latency(load, batches, began, TARGET_S), **_counts(settings.kafka, job, load),
            **judge_decisions(own, contracts), "course": _course(own, began),
        }  # fmt: skip
    return {"jobs": jobs, "together": most_asked_for(decisions)}


def _counts(kafka: Kafka, job: str, sent: SentLoad) -> dict[str, int]:
    true: dict[str, dict[str, int]] = {}
    for event in sent.events:
        known = true.setdefault(event.key, {"n": 0, "seq_sum": 0})
        known["n"] += 1
        known["seq_sum"] += event.seq
    newest = {record.key: json.loads(record.value) for record in read_records(kafka, results_of(job)) if record.key}
    truth = {"produced": len(sent.events), "windows": {"live": true, "corrected": {}}}
    found = compare_counts(truth, Counted(newest))
    return {name: found[name] for name in ("produced", "counted", "lost", "duplicated")}


def _course(decisions: list[dict[str, Any]], began: float) -> list[list[float]]:
    """[seconds since the loads began, executors] whenever another number was decided."""
    found: list[list[float]] = []
    for one in decisions:
        if not found or found[-1][1] != one["executors"]:
            found.append([round(one["wall_time"] - began, 1), one["executors"]])
    return found
