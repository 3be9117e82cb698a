"""Which of its contract's configurations a managed job takes at a start: by what each has earned in the runs before."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import chain, dropwhile, groupby, pairwise, takewhile
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from configs.configurations import TRIGGER
from configs.contract import Contract
from configs.errors import SettingsError
from models.contract.slow.configurations import DWELL, Configurations, choose_next, reward_of
from pipelines.jobs.progress_log import append_line, kept_files, progress_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WARM = 3
"""First intervals of a run that are not counted: executors load classes, whatever the configuration."""
FAILED = 2
"""Starts without a counted interval after which a configuration is not taken while another is left."""


class EarnedInterval(NamedTuple):
    """What an interval of a run came to.

    Attributes:
        name: of the configuration that it ran under.
        reward: −J.
        kept: whether as many records as promised were within the latency target.
        overloaded: whether more records waited than are read within the target.
    """

    name: str
    reward: float
    kept: bool
    overloaded: bool


class ChosenConfiguration(NamedTuple):
    """The configuration of a start: its name, its settings, and why, for people."""

    name: str
    settings: Mapping[str, str]
    text: str

    @property
    def trigger(self) -> dict[str, str]:
        """The job's settings that it changes."""
        return {TRIGGER: self.settings[TRIGGER]} if TRIGGER in self.settings else {}


class _Batch(NamedTuple):
    """What counts of a batch: when it began, seconds that it took, records that it read and that waited beyond."""

    begin_s: float
    batch_s: float
    rows: int
    behind: float


def choose_configuration(run_dir: Path, job: str, contract: Contract, trigger: str) -> ChosenConfiguration | None:
    """Choose one for a start; None where the contract states none.

    Args:
        run_dir: of the job, with what it has told before. Runs of a configuration whose settings were others count for
            nothing.
        job: its name.
        contract: of it.
        trigger: of its query where a configuration states none, such as "2 seconds".

    Raises:
        OSError: a file cannot be read.
    """
    stated = contract.configurations
    if not stated:
        return None
    logs = kept_files(progress_file(run_dir, job))
    noted = _still_told(list(_read(_runs_file(run_dir, job))), logs)
    noted = [run for run in noted if stated.get(run["name"]) == run["settings"]]
    ran = {run["run_id"]: run["name"] for run in noted}
    intervals = earned_intervals(chain.from_iterable(map(_read, logs)), ran, contract, trigger) if ran else []
    known = _known(list(stated), intervals, list(ran.values()))
    feasible = {name for name in stated if _typically_kept(name, intervals, list(ran.values()))}
    recovering = bool(intervals) and intervals[-1].overloaded
    chosen = choose_next(known, feasible, recovering).running  # all intervals are counted already
    settings = {key: str(value) for key, value in stated[chosen].items()}
    return ChosenConfiguration(chosen, settings, _describe(chosen, known))


def set_configuration(spark: SparkSession, chosen: ChosenConfiguration) -> None:
    """Set a configuration's Spark settings in a session whose query is about to start.

    Raises:
        SettingsError: Spark does not take one of them.
    """
    from pyspark.errors import PySparkException

    for key, value in chosen.settings.items():
        if key == TRIGGER:
            continue
        try:
            spark.conf.set(key, value)
        except PySparkException as error:
            what = f"configurations.{chosen.name}: Spark takes no {key}={value} now: {error.getCondition()}"
            raise SettingsError(f"{what}. State what a session can set, or leave it out.") from None


def note_run(run_dir: Path, job: str, run_id: str, chosen: ChosenConfiguration) -> None:
    """Note under which configuration a query runs, so that its progress counts for that; or that it did not start.

    Raises:
        OSError: it cannot be written.
    """
    noted = {"run_id": run_id, "name": chosen.name, "settings": dict(chosen.settings)}
    append_line(_runs_file(run_dir, job), json.dumps(noted))


def earned_intervals(
    progress: Iterable[Mapping[str, Any]], ran: Mapping[str, str], contract: Contract, trigger: str
) -> list[EarnedInterval]:
    """Return what the intervals of earlier runs came to, in their order, without the first ones of each run.

    Nor with those in which it worked off what had come before it began. While nothing comes Spark makes no batch, so a
    batch counts until the next trigger at most: a record after a silence waits no longer.

    Args:
        progress: of the query, as Spark tells it; none is kept.
        ran: configuration of each run, by its id; others are left out.
        contract: of the job; its controller's interval is what is judged.
        trigger: of the job where a configuration states none.
    """
    # Numba and SciPy, half of what a driver imports, and most starts have nothing to judge.
    from models.contract.promised.derive import derive_terms
    from models.contract.queueing import MicroBatchModel
    from models.policy.core.sustained import sustained_rates

    terms, target_s = derive_terms(contract, sustained_rates(contract)), contract.latency_target_s
    found: list[EarnedInterval] = []
    batches = (one for one in progress if one.get("runId") in ran and "addBatch" in one["durationMs"])
    for run_id, group in groupby(batches, key=lambda one: str(one["runId"])):
        run, own = map(_batch_of, group), []
        first, trigger_s = next(run), _seconds(str(contract.configurations[ran[run_id]].get(TRIGGER, trigger)))
        timed = (
            (early, min(late.begin_s - early.begin_s, max(early.batch_s, trigger_s)))
            for early, late in pairwise(chain([first], run))
            if late.begin_s > early.begin_s
        )
        for number, members in groupby(timed, key=lambda one: int((one[0].begin_s - first.begin_s) / terms.interval_s)):
            if number < WARM:
                continue
            batch_s, period_s, wait_s = _means(list(members))
            batches_now = MicroBatchModel(batch_s, period_s, stable=True)
            within = batches_now.share_within(target_s - wait_s)
            reward = reward_of(terms, batches_now.mean_s + wait_s, within)
            kept = within >= 1 - contract.error_budget
            own.append(EarnedInterval(ran[run_id], reward, kept, wait_s > target_s))
        found += list(dropwhile(lambda one: one.overloaded, own)) or own
    return found


def _seconds(trigger: str) -> float:
    """Infinite where Spark alone can read it: batches then count until the next one begins."""
    import pandas as pd

    try:
        return float(pd.Timedelta(trigger).total_seconds())
    except ValueError:
        return math.inf


def _batch_of(progress: Mapping[str, Any]) -> _Batch:
    begin_s = datetime.fromisoformat(progress["timestamp"]).timestamp()
    seconds = progress["durationMs"]["triggerExecution"] / 1000
    return _Batch(begin_s, seconds, progress["numInputRows"], _records_behind(progress))


def _means(members: Sequence[tuple[_Batch, float]]) -> tuple[float, float, float]:
    """Of an interval's batches: seconds of a batch, of the time for which one counts, and until what waits is read."""
    span_s, rows = sum(period for _, period in members), sum(one.rows for one, _ in members)
    waiting = max(one.behind for one, _ in members)
    wait_s = waiting / (rows / span_s) if rows else 0.0
    return fmean(one.batch_s for one, _ in members), span_s / len(members), wait_s


def _records_behind(progress: Mapping[str, Any]) -> float:
    """Records that its Kafka sources had beyond what the batch read."""
    found = 0.0
    for source in progress["sources"]:
        ends = source["endOffset"] if isinstance(source["endOffset"], dict) else {}
        parts = sum(len(offsets) for offsets in ends.values() if isinstance(offsets, dict))
        found += float((source.get("metrics") or {}).get("avgOffsetsBehindLatest", 0)) * parts
    return found


def _known(names: Sequence[str], intervals: Sequence[EarnedInterval], ran: Sequence[str]) -> Configurations:
    earned = [[one.reward for one in intervals if one.name == name] for name in names]
    counts, means = tuple(map(len, earned)), tuple(fmean(own) if own else 0.0 for own in earned)
    last = ran[-1] if ran else names[0]
    dwelt = sum(1 for _ in takewhile(lambda one: one.name == last, reversed(intervals)))
    if not dwelt and ran.count(last) >= FAILED:
        dwelt = DWELL  # it need not run on
    return Configurations(tuple(names), counts, means, names.index(last), dwelt)


def _typically_kept(name: str, intervals: Sequence[EarnedInterval], ran: Sequence[str]) -> bool:
    """Whether at least half of its intervals kept the promise; of one without any, whether it may yet run."""
    kept = [one.kept for one in intervals if one.name == name]
    return 2 * sum(kept) >= len(kept) if kept else ran.count(name) < FAILED


def _describe(chosen: str, known: Configurations) -> str:
    told = [
        f"{name} {f'{-mean:.3g} in {count} intervals' if count else 'never ran'}"
        for name, count, mean in zip(known.names, known.counts, known.means, strict=True)
    ]
    return f"configuration {chosen}; cost J so far: {', '.join(told)}"


def _still_told(runs: list[dict[str, Any]], logs: Sequence[Path]) -> list[dict[str, Any]]:
    """The runs from the first one on that a log still tells of: one of before would read as failed at once."""
    if len(logs) < 2:  # nothing was ever taken off it
        return runs
    oldest = next((one.get("runId") for one in _read(logs[0])), None)
    return runs[next((n for n, run in enumerate(runs) if run["run_id"] == oldest), 0) :]


def _runs_file(run_dir: Path, job: str) -> Path:
    return run_dir / f"{job}.configurations.jsonl"


def _read(file: Path) -> Iterator[Any]:
    """The lines of a file that may be missing, one at a time; one that was cut off by a kill is left out."""
    if not file.is_file():
        return
    with file.open() as lines:  # of weeks it has gigabytes
        for line in lines:
            with suppress(ValueError):
                yield json.loads(line)
