"""A job whose query of many keys moves under load while something is killed, and what its counts come to."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from configs.settings import ROOT, Settings
from models.placement.plan.applications import applications_of
from models.placement.plan.measured import greatest_factor
from models.placement.plan.moved import move_block
from pipelines.bench.placement.moved.faults import FAULTS, MovingQuery, driver_of, stacks_of
from pipelines.bench.placement.moved.summary import longest_gap_s, not_once
from pipelines.jobs.chains.feed import ChainFeed
from pipelines.jobs.chains.truth import Counts, newest_counts, read_count, true_counts, wrong_keys
from pipelines.jobs.chains.words import LineEvent, result_keys
from pipelines.jobs.progress_log import progress_file
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.committed import read_committed
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.tried import TrialError, begin_trial
from pipelines.stack import state
from pipelines.stack.processes import Process
from pipelines.stack.stack import Stack

FILE = ROOT / "configs" / "topologies" / "bench" / "moved" / "words_moved.yaml"
FIRST, LAST, MOVED = "words_moved.parse", "words_moved.count", "count"
"""Topic between the queries, topic of the counts, and the operator whose query moves."""
WORDS, VOCABULARY = 70, 1_000_000
"""Of a line, and that there are: hardly one comes twice while its window is open."""
BEGUN_S, WARM_S, AFTER_S, COUNTED_S = 240.0, 75.0, 30.0, 420.0
"""Seconds: for the queries to begin; of load before the move, and once the query works again; for the last counts."""
QUIET_S, GONE_S, ASK_S = 15.0, 60.0, 0.5
"""Seconds without a further count after which they are read, for what the command had started to end, and between two
looks."""


def draw(seq: int, at: float, random: np.random.Generator) -> LineEvent:
    """Return a line of rare words."""
    return LineEvent(seq, at, " ".join(f"word{one:06d}" for one in random.integers(0, VOCABULARY, WORDS)))


def run_move(stack: Stack, settings: Settings, fault: str, seed: int) -> dict[str, Any]:
    """Run the job by `tidecast job up`, move its query of many keys, kill as a fault says, and count.

    Args:
        stack: with the broker; the command runs in it.
        settings: with its address, and a prefix of this session's topics alone.
        fault: one of `FAULTS`.
        seed: of the records.

    Returns:
        `load`, the share of the highest rate that the queries can take by the model, and `keys` of state when it moved;
        `wrong` of `windows` counts, `between`, records between the queries that are missing or too many; `gap_s`, the
        longest time without a result from the move on; `done_s`, from the last record until all counts were there;
        `cluster` and `epoch` at which it ended, `target`; `records` sent.

    Raises:
        TrialError: a query does not begin, or the phase was over before anything was killed.
        BrokerError: a record was not taken, or the broker does not answer.
        StackError, ProcessError: the command does not start.
    """
    live, folder = begin_trial(settings, FILE, None, lambda line: None)
    file, name = live.var_dir / f"{fault}.yaml", f"up-{fault}"
    file.write_text(yaml.safe_dump(live.model_dump(mode="json"), sort_keys=False))
    topology, placement = folder.topology(), folder.wanted()
    (query,) = (one for one in applications_of(topology, placement) if MOVED in one.operators)
    (target,) = {*topology.clusters} - {query.cluster}
    argv = [str(Path(sys.executable).with_name("tidecast")), "job", "up", str(FILE)]
    up = stack.spawn(name, argv, {"TIDECAST_FILE": str(file)})
    try:
        names = [one.name for one in applications_of(topology, placement)]
        up.wait_until(lambda: all(_works(folder, one) for one in names), "begin its queries", BEGUN_S)
        with ChainFeed(live.kafka, "lines", draw, topology.sources["lines"].rps, seed) as feed:
            _watch(feed, WARM_S)
            keys, before = _keys(folder, query.name), folder.newest(query.name)
            assert before is not None  # it works
            moved_s = time.time()
            folder.want(move_block(topology, placement, MOVED, target))
            after = FAULTS[fault](MovingQuery(folder, query.name, before.number, query.cluster, target, up))
            if not up.running():
                up = _begun_again(stack, folder, name)
            up.wait_until(lambda: _works(folder, query.name, after), "move its query", BEGUN_S)
            _watch(feed, AFTER_S)
            sent, ended_s = feed.end(), time.time()
        truth = true_counts(sent, result_keys)
        times, wrong = _counted(live, truth)
    finally:
        _ended(stack, folder, name)
    last = folder.newest(query.name)
    assert last is not None
    between = (json.loads(one.value or b"{}")["seq"] for one in read_committed(live.kafka, FIRST))
    return {
        "load": 1 / greatest_factor(topology, placement), "keys": keys,
        "wrong": len(wrong), "windows": len(truth), "between": not_once((one.seq for one in sent), between),
        "gap_s": longest_gap_s(times, moved_s), "done_s": max(max(times) - ended_s, 0.0),
        "cluster": last.block.cluster, "epoch": last.number, "target": target, "records": len(sent),
    }  # fmt: skip


def _works(folder: JobFolder, name: str, after: int = 0) -> bool:
    """Whether a query works, in an epoch after one."""
    epoch = folder.newest(name)
    return epoch is not None and epoch.number > after and epoch.worked_by() == driver_of(folder, name) is not None


def _watch(feed: ChainFeed[LineEvent], seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        feed.check()
        time.sleep(ASK_S)


def _keys(folder: JobFolder, name: str) -> int:
    """Keys of a query's state as of its last micro-batch."""
    epoch = folder.newest(name)
    lines = progress_file(epoch.folder, name).read_text().splitlines() if epoch is not None else []
    return sum(one["numRowsTotal"] for one in json.loads(lines[-1])["stateOperators"]) if lines else 0


def _begun_again(stack: Stack, folder: JobFolder, name: str) -> Process:
    """Start the command again, as a person does, once what it had started is gone."""
    _await_end(folder, name)
    return stack.respawn(name)


def _ended(stack: Stack, folder: JobFolder, name: str) -> None:
    """End the command, and wait until what it had started is gone."""
    stack.end(name)
    _await_end(folder, name)


def _await_end(folder: JobFolder, name: str) -> None:
    deadline = time.monotonic() + GONE_S
    while any(state.running(one) for one in stacks_of(folder)):
        if time.monotonic() > deadline:
            raise TrialError(f"what {name} had started still runs after {GONE_S:.0f} s")
        time.sleep(ASK_S)


def _counted(live: Settings, truth: Counts) -> tuple[list[float], set[str]]:
    """When counts were written, and those that are not what the records come to once no more come."""
    until = time.monotonic() + COUNTED_S
    while True:
        _quiet(live, until)
        read = [(one.at_s, *read_count(one.key, one.value)) for one in read_committed(live.kafka, LAST)]
        wrong = wrong_keys(newest_counts((key, n, total) for _, key, n, total in read), truth)
        if not wrong or time.monotonic() > until:
            return [at_s for at_s, *_ in read], wrong


def _quiet(live: Settings, until: float) -> None:
    """Wait until no further count has come for a while."""
    known, since = topic_offsets(live.kafka, LAST), time.monotonic()
    while time.monotonic() - since < QUIET_S and time.monotonic() < until:
        time.sleep(ASK_S)
        if (found := topic_offsets(live.kafka, LAST)) != known:
            known, since = found, time.monotonic()
