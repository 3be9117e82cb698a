"""A job whose query of many keys moves under load while something is killed, and what its counts come to."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

from configs.settings import ROOT, Settings
from models.placement.plan.applications import applications_of
from models.placement.plan.measured import greatest_factor
from models.placement.plan.moved import move_block
from pipelines.bench.placement.moved.counted import await_counts, read_numbers
from pipelines.bench.placement.moved.faults import FAULTS, MovingQuery
from pipelines.bench.placement.moved.job_up import begin_job_up, begin_job_up_again, end_job_up, watch, works
from pipelines.bench.placement.moved.summary import longest_gap_s, not_once
from pipelines.jobs.chains.feed import ChainFeed
from pipelines.jobs.chains.truth import true_counts
from pipelines.jobs.chains.words import LineEvent, result_keys
from pipelines.jobs.progress_log import progress_file
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.tried import begin_trial
from pipelines.stack.stack import Stack

FILE = ROOT / "configs" / "topologies" / "bench" / "moved" / "words_moved.yaml"
FIRST, LAST, MOVED = "words_moved.parse", "words_moved.count", "count"
"""Topic between the queries, topic of the counts, and the operator whose query moves."""
WORDS, VOCABULARY = 70, 1_000_000
"""Of a line, and that there are: hardly one comes twice while its window is open."""
BEGUN_S, WARM_S, AFTER_S = 240.0, 75.0, 30.0
"""Seconds: for the queries to begin; of load before the move, and once the query works again."""


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
    name = f"up-{fault}"
    topology, placement = folder.topology(), folder.wanted()
    (query,) = (one for one in applications_of(topology, placement) if MOVED in one.operators)
    (target,) = {*topology.clusters} - {query.cluster}
    up = begin_job_up(stack, live, FILE, name)
    try:
        names = [one.name for one in applications_of(topology, placement)]
        up.wait_until(lambda: all(works(folder, one) for one in names), "begin its queries", BEGUN_S)
        with ChainFeed(live.kafka, "lines", draw, topology.sources["lines"].rps, seed) as feed:
            watch(feed, WARM_S)
            keys, before = _keys(folder, query.name), folder.newest(query.name)
            assert before is not None  # it works
            moved_s = time.time()
            folder.want(move_block(topology, placement, MOVED, target))
            after = FAULTS[fault](MovingQuery(folder, query.name, before.number, query.cluster, target, up, stack))
            if not up.running():
                up = begin_job_up_again(stack, folder, name)
            up.wait_until(lambda: works(folder, query.name, after), "move its query", BEGUN_S)
            watch(feed, AFTER_S)
            sent, ended_s = feed.end(), time.time()
        truth = true_counts(sent, result_keys)
        times, wrong = await_counts(live, LAST, truth)
    finally:
        end_job_up(stack, folder, name)
    last, between = folder.newest(query.name), not_once((one.seq for one in sent), read_numbers(live, FIRST))
    assert last is not None
    return {
        "load": 1 / greatest_factor(topology, placement), "keys": keys,
        "wrong": len(wrong), "windows": len(truth), "between": between,
        "gap_s": longest_gap_s(times, moved_s), "done_s": max(max(times) - ended_s, 0.0),
        "cluster": last.block.cluster, "epoch": last.number, "target": target, "records": len(sent),
    }  # fmt: skip


def _keys(folder: JobFolder, name: str) -> int:
    """Keys of a query's state as of its last micro-batch."""
    epoch = folder.newest(name)
    lines = progress_file(epoch.folder, name).read_text().splitlines() if epoch is not None else []
    return sum(one["numRowsTotal"] for one in json.loads(lines[-1])["stateOperators"]) if lines else 0
