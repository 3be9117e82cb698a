"""`tidecast bench placement --parts offload`: the autoscaler wants more of a query than its cluster has, later less.

Nothing here moves or scales anything: lines become five times as many, and later as few as before. By the rule a query
stays away for half an hour at least.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from configs.sections import Autoscaler, Serving
from configs.settings import ROOT, Settings
from models.placement.plan.applications import applications_of
from pipelines.bench.placement.moved.counted import await_counts, read_numbers
from pipelines.bench.placement.moved.job_up import begin_command, begin_job_up, end_job_up, watch, works
from pipelines.bench.placement.moved.summary import longest_gap_s, not_once
from pipelines.figures.written import find_commit
from pipelines.jobs.chains.feed import ChainFeed
from pipelines.jobs.chains.truth import true_counts
from pipelines.jobs.chains.words import LineEvent, draw, result_keys
from pipelines.kafka.broker import read_records
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.scaled.contracts import contract_file, write_contracts
from pipelines.placement.tried import TrialError, begin_trial
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.processes import Process
from pipelines.stack.stack import Stack
from tidecast.messages import Decision, decode

FILE = ROOT / "configs" / "topologies" / "bench" / "moved" / "words_offloaded.yaml"
FIRST, LAST, SCALED = "words_offloaded.parse", "words_offloaded.count", "count"
"""Topic between the queries, topic of the counts, and the operator whose query is scaled."""
TIMES = 5
"""As many lines as at first, while there are many."""
BEGUN_S, READY_S, GOES_S, BACK_S = 240.0, 300.0, 900.0, 3600.0
"""Seconds for the queries to begin, for the autoscaler, for the query to go, and to come back."""
WARM_S, AWAY_S, HOME_S = 90.0, 20.0, 60.0
"""Seconds of load before it rises, at its height once the query has gone, and once it has come back."""
UP, SCALER = "up", "autoscale"


class WatchedJob(NamedTuple):
    """The query that is scaled, and who keeps it.

    Attributes:
        folder: of its job.
        query: its name.
        feed: of the job.
        keepers: `tidecast job up` and `tidecast autoscale`.
    """

    folder: JobFolder
    query: str
    feed: ChainFeed[LineEvent]
    keepers: tuple[Process, ...]

    def await_cluster(self, away: bool) -> float:
        """Wait until it works where it is off-loaded to, or at home again, and return when it did; epoch seconds.

        Raises:
            TrialError: it did not in time, it did not begin there, or a keeper has ended.
            BrokerError: a record was not taken.
        """
        wait_s, what = (GOES_S, "gone to the other cluster") if away else (BACK_S, "come back")
        until, began = time.monotonic() + wait_s, self.folder.newest(self.query)
        while time.monotonic() < until:
            watch(self.feed, 1.0)
            for keeper in self.keepers:
                if not keeper.running():
                    raise TrialError(f"{keeper.name} has ended.\n{keeper.last_lines()}")
            epoch, note = self.folder.newest(self.query), self.folder.offloaded().get(self.query)
            if epoch is None or began is None or note is None:
                continue
            if works(self.folder, self.query) and epoch.block.cluster == (note.away if away else note.home):
                print(f"{self.query}: has {what}", flush=True)
                return time.time()
            if epoch.number > began.number + 1:  # it has moved twice, and is not where it was to go
                raise TrialError(f"{self.query}: did not begin there.\n{self.keepers[0].last_lines()}")
        raise TrialError(f"{self.query}: has not {what} after {wait_s:.0f} s.\n{self.keepers[1].last_lines()}")


def measure_offload(settings: Settings) -> dict[str, Any]:
    """Let a query be off-loaded and come back, on services of its own; some forty minutes.

    Args:
        settings: without the address of a broker.

    Returns:
        `went_s`, from the rise of the load until the query worked on the other cluster, and `back_s`, from its fall
        until it worked at home again; `away_s` in between; `decided`, the most executors that were decided; `wrong` of
        `windows` counts; `between`, records between the queries that are missing or too many; `gap_s`, the longest time
        without a result; `records` sent; `commit`.

    Raises:
        SettingsError: the address of a service is set.
        StackError, ProcessError, PortError, JavaError: a service or a command does not start.
        TrialError: the query did not go, or did not come back, in time.
        BrokerError: a record was not taken, or the broker does not answer.
    """
    own = isolated_settings(settings, "bench")
    # As they are shipped: where a person's autoscaler only observes, or forecasts are kept elsewhere, nothing goes.
    own = own.model_copy(update={"var": own.var_dir / "offloaded", "autoscaler": Autoscaler(), "serving": Serving()})
    with Stack(own, {"broker"}) as stack:
        kafka = stack.settings.kafka.model_copy(update={"prefix": f"offload{time.time():.0f}."})
        return {**_run(stack, stack.settings.model_copy(update={"kafka": kafka})), "commit": find_commit()}


def _run(stack: Stack, settings: Settings) -> dict[str, Any]:
    live, folder = begin_trial(settings, FILE, None, lambda line: None)
    live = live.model_copy(update={"contracts": folder.path / "contracts"})
    blocks = applications_of(folder.topology(), folder.wanted())
    (query,) = (one.name for one in blocks if SCALED in one.operators)
    write_contracts(live, folder)
    for one in blocks:
        if one.name != query:
            contract_file(live, one.name).unlink()  # it keeps the executor that it was placed with
    rps = folder.topology().sources["lines"].rps
    up = begin_job_up(stack, live, FILE, UP)
    try:
        up.wait_until(lambda: all(works(folder, one.name) for one in blocks), "begin its queries", BEGUN_S)
        scaler = begin_command(stack, live, ["autoscale", "--checkpoint", str(folder.path / "autoscaler")], SCALER)
        scaler.wait_until(lambda: "autoscaler: ready" in scaler.log.read_text(errors="replace"), "decide", READY_S)
        with ChainFeed(live.kafka, "lines", draw, rps) as feed:
            job = WatchedJob(folder, query, feed, (up, scaler))
            watch(feed, WARM_S)
            feed.rps, rose_s = rps * TIMES, time.time()
            went_s = job.await_cluster(away=True)
            watch(feed, AWAY_S)
            feed.rps, fell_s = rps, time.time()
            back_s = job.await_cluster(away=False)
            watch(feed, HOME_S)
            sent = feed.end()
        truth = true_counts(sent, result_keys)
        times, wrong = await_counts(live, LAST, truth)
    finally:
        end_job_up(stack, folder, UP)
        if SCALER in stack.processes:
            stack.end(SCALER)
    return {
        "went_s": went_s - rose_s, "back_s": back_s - fell_s, "away_s": back_s - went_s,
        "decided": _most_decided(live, query), "wrong": len(wrong), "windows": len(truth),
        "between": not_once((one.seq for one in sent), read_numbers(live, FIRST)),
        "gap_s": longest_gap_s(times, rose_s), "records": len(sent),
    }  # fmt: skip


def _most_decided(live: Settings, query: str) -> int:
    """The most executors that the autoscaler has decided for a query."""
    decided = (decode(Decision, one.value) for one in read_records(live.kafka, "decisions") if one.key == query)
    return max((one.executors for one in decided), default=0)
