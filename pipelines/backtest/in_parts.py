"""A backtest in parts that run in several processes: forecasts, the oracle, and the policies in groups.

A run comes to the same, bit for bit, whichever part it is in.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, field
from multiprocessing.queues import SimpleQueue
from typing import Any

from models.twin.experiment.benchmark import (
    BenchmarkCase,
    Effort,
    Judged,
    add_oracle,
    build_scenarios,
    compare_contenders,
    forecast_trace,
)
from models.twin.experiment.contenders import Contender, forecasters_of
from models.twin.experiment.evaluation import SweepResults
from models.twin.experiment.results import OPTIMUM, TraceResult
from models.twin.experiment.setup import Setup
from pipelines.backtest.load import NamedLoad
from pipelines.workers import SPAWN, worker_pool

FORECAST, ORACLE, POLICIES = 1.0, 1.5, 20.0
"""What forecasts, oracle and all policies of a trace take, in proportion: for the progress that is told."""
DEAR = {"mpc": 14, "dqn": 14, "forecast": 4, "reactive": 3, "hpa": 3, "keda": 3}
"""What a policy takes as a multiple of the others' time."""
EVERY_S = 0.3
"""Seconds between two reports."""
_reports: SimpleQueue[tuple[int, float]] | None = None


@dataclass
class Parts:
    """The parts that were begun: what each of them weighs, and the share of it that is done."""

    pool: Executor
    weights: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    futures: list[Future[Any]] = field(default_factory=list)

    def begin(self, weight: float, work: Callable[..., Any], *of: Any) -> Future[Any]:
        """Begin a part, which is called with its number and `of`."""
        self.weights.append(weight)
        self.shares.append(0.0)
        self.futures.append(self.pool.submit(work, len(self.futures), *of))
        return self.futures[-1]

    def wait_for(
        self, wanted: Sequence[Future[Any]], reports: SimpleQueue[tuple[int, float]], whole: float,
        report_share: Callable[[float], None],
    ) -> list[Any]:  # fmt: skip
        """Wait for some parts and return what they came to; the share of the `whole` weight that is done is reported.

        Raises:
            BaseException: what one of them raised.
        """
        left = set(wanted)
        while left:
            done, left = wait(left, EVERY_S)
            for future in done:
                future.result()
            while not reports.empty():
                part, share = reports.get()
                self.shares[part] = share
            finished = [1.0 if one.done() else share for one, share in zip(self.futures, self.shares, strict=True)]
            report_share(sum(w * s for w, s in zip(self.weights, finished, strict=True)) / whole)
        return [future.result() for future in wanted]


def run_in_parts(
    traces: Sequence[NamedLoad], setup: Setup, contenders: Sequence[Contender], effort: Effort, processes: int,
    report_share: Callable[[float], None] = lambda share: None,
) -> list[TraceResult]:  # fmt: skip
    """Compute what `benchmark.run_benchmark` does, forecasts included, in several processes.

    Args:
        traces: loads.
        setup: of every replay.
        contenders: who is compared.
        effort: how much is computed.
        processes: at least 1; 1 computes in this one.
        report_share: called now and then with the share of the work, 0 to 1, that is done.

    Returns:
        One result per trace, in their order.

    Raises:
        TwinError: a trace is too short, or a rate is missing or negative, or it cannot be scaled to the job.
        SeriesError: an infinite rate.
        BrokenProcessPool: a worker died.
    """
    reports: SimpleQueue[tuple[int, float]] = SPAWN.SimpleQueue()
    whole = len(traces) * (FORECAST + ORACLE * effort.oracle + POLICIES)
    how = reports, whole, report_share
    with _Here() if processes == 1 else worker_pool(processes, _alone, (reports,)) as pool:
        parts = Parts(pool)
        try:
            heard = forecasters_of(contenders)
            forecast = [parts.begin(FORECAST, _forecast, one, setup, effort.seeds, heard) for one in traces]
            oracles = [parts.begin(ORACLE, _oracle, one, setup) for one in traces if effort.oracle]
            judged: list[Judged] = parts.wait_for(forecast, *how)
            groups = split_contenders(contenders, processes)
            weights = [POLICIES * len(traces) * _work(group) / _work(contenders) for group in groups]
            running = [
                parts.begin(weight, _compare, group, judged, effort)
                for weight, group in zip(weights, groups, strict=True)
            ]
            compared = parts.wait_for(running, *how)
            known = parts.wait_for(oracles, *how)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    found = [TraceResult(each.test, {}) for each in judged]
    for at, result in enumerate(found):
        for name in [one.name for one in contenders]:
            (came,) = (results[at] for results in compared if name in results[at][0])
            result.results[name], result.settings[name] = came[0][name], came[1][name]
        if known:
            result.results[OPTIMUM], bound = known[at]
            result.bound.update(bound)
    return found


def split_contenders(contenders: Sequence[Contender], groups: int) -> list[list[Contender]]:
    """Split contenders into groups of about the same work, at most so many; those of one policy stay together."""
    kinds: dict[str, list[Contender]] = {}
    for one in contenders:
        kinds.setdefault(one.policy, []).append(one)
    found: list[list[Contender]] = [[] for _ in range(groups)]
    for kind in sorted(kinds.values(), key=_work, reverse=True):
        min(found, key=_work).extend(kind)
    return sorted(filter(None, found), key=_work, reverse=True)


def _work(contenders: Sequence[Contender]) -> int:
    """In proportion, as measured per look; more contenders of one policy cost little more than one."""
    return sum(DEAR.get(policy, 1) for policy in {one.policy for one in contenders})


def _forecast(part: int, trace: NamedLoad, setup: Setup, seeds: int, forecasters: Sequence[str]) -> Judged:
    said = forecast_trace(trace.name, trace.series, setup, forecasters)
    return build_scenarios(BenchmarkCase(trace.name, trace.series, said), setup, seeds)


def _oracle(part: int, trace: NamedLoad, setup: Setup) -> tuple[SweepResults, dict[float, float]]:
    """Optimum and lower bound; both are of the first seed."""
    found = TraceResult(build_scenarios(BenchmarkCase(trace.name, trace.series, {}), setup, 1).test, {})
    add_oracle(found)
    return found.results[OPTIMUM], found.bound


def _compare(part: int, contenders: list[Contender], judged: list[Judged], effort: Effort) -> list[Any]:
    """Results and settings by trace; the scenarios stay where they are."""

    def report(share: float) -> None:
        if _reports is not None:
            _reports.put((part, share))

    return [(one.results, one.settings) for one in compare_contenders(contenders, judged, effort, report)]


def _alone(reports: SimpleQueue[tuple[int, float]]) -> None:
    """One thread per process: there are as many processes as cores."""
    global _reports
    os.environ["OMP_NUM_THREADS"] = "1"
    _reports = reports


class _Here(Executor):
    """Runs what it is given at once, in this process."""

    def submit(self, work: Callable[..., Any], /, *of: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*of, **named))
        return done
