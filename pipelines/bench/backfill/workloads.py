"""Row: whether a table is what the generator's records come to, exactly, while a drawn plan of faults is carried out.

Hot keys, drift, disorder, retractions and faults are drawn from one seed (`models/workload`), and so is the truth: it
does not go through the broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.workload.disorder import DisorderShape
from models.workload.faults import FaultShape
from models.workload.generator import WorkloadShape
from models.workload.keys import HotEpisode, KeyShape
from models.workload.rates import RateShape, Spike
from pipelines.bench.backfill.arrangement import EXECUTORS, SERVICE_MS, live_contract, seed_of
from pipelines.bench.backfill.cells import Found, MeasuredCell, of_row, take_turns
from pipelines.bench.backfill.faults import EXACT, SAMPLED
from pipelines.bench.backfill.loads import HOT_SHARE, KEYS
from pipelines.bench.backfill.outages import MERGE_S, OFFSETS, TARGET_S

ROW, GENERATED = "workload", "generated"
LOADS = (GENERATED,)
MINUTES, TURNS = 2.0, 1
"""Minutes of the load, and sessions of each: of exact counts, and of such from a sample."""
BASE_RPS, DELAY_MS = 30.0, 20_000
"""Mean rate without noise and spikes; how long records are expected to be late: longer than any of them is."""
FAULTS_PER_HOUR, FAULT_S = 300.0, 8.0
"""How often faults begin, and how long those of them last on average that do."""
PATIENCE_S = 900.0
"""Seconds that are waited for the last records' batch: results are judged, whatever a busy computer takes for them."""
LEAST = 2
"""Executors that the job has at least: one is left where one is killed."""


@dataclass(frozen=True)
class WorkloadSession:
    """What a session runs: a job that merges, a workload, and its faults.

    Attributes:
        seconds: of the workload; retractions may come later.
        seed: of all that is drawn.
        sampled: whether the job counts approximately.
    """

    seconds: float
    seed: int
    sampled: bool
    offsets = OFFSETS

    @property
    def expected_s(self) -> float:
        """About how long it lasts, seconds."""
        return self.seconds

    @property
    def most_s(self) -> float:
        """The longest that it lasts, seconds."""
        return self.seconds + PATIENCE_S

    def shape(self) -> WorkloadShape:
        """Return the shape of the workload, its begin at 0."""
        part_s = self.seconds / 4
        hot = (HotEpisode(part_s, part_s, HOT_SHARE), HotEpisode(2.5 * part_s, part_s, HOT_SHARE, (1, 2)))
        return WorkloadShape(
            self.seconds, begin_ms=0,
            rate=RateShape(BASE_RPS, 0.3, self.seconds, 0.0, (Spike(3 * part_s, 1.0, 10.0),), noise=0.1, noise_s=20.0),
            keys=KeyShape(KEYS, drift_s=20.0, drift_swaps=4, hot=hot),
            disorder=DisorderShape(0.2, 500.0, 1.0, 4_000.0, retracted=0.1, retract_ms=1_000.0),
            faults=FaultShape(
                FAULTS_PER_HOUR, targets=tuple(f"worker-{one}" for one in range(EXECUTORS)), duration_s=FAULT_S
            ),
        )  # fmt: skip

    def contract(self, job: str) -> dict[str, Any]:
        """Return the job's contract as its file says it."""
        return live_contract(job, (LEAST, EXECUTORS), TARGET_S, TARGET_S, SERVICE_MS / 1000, MERGE_S)


def plan_load(load: str, minutes: float) -> list[MeasuredCell]:
    """Plan the sessions of a load."""
    return take_turns(ROW, load, (EXACT, SAMPLED), TURNS, minutes)


def arrange_workload(cell: MeasuredCell) -> WorkloadSession:
    """Arrange a cell; both arms meet the same workload and faults."""
    return WorkloadSession(60 * cell.minutes, seed_of(cell), cell.arm == SAMPLED)


def summarise(kept: Mapping[MeasuredCell, Found], load: str) -> dict[str, Any]:
    """Summarise the sessions of a load.

    Returns:
        `wrong` of `windows`, once TURNS sessions of MINUTES are there; `faults`, how many were carried out, `missed`,
        which met nobody; `operation`, the report of the newest session (`report.operation.MEANINGS`, and
        `executor_h`); `n`, sessions; and `sampled`, the same of counts from a sample, whose `within` is the share of
        windows whose bound holds the truth.
    """
    arms = of_row(kept, ROW, load, MINUTES)
    exact, sampled = (_told(arms.get(arm, [])) for arm in (EXACT, SAMPLED))
    wrong, windows = sampled.pop("wrong"), sampled["windows"]
    return {**exact, "sampled": {**sampled, "within": None if wrong is None or not windows else 1 - wrong / windows}}


def _told(found: list[Found]) -> dict[str, Any]:
    return {
        "wrong": sum(one["wrong"] for one in found) if len(found) >= TURNS else None,
        "windows": sum(one["windows"] for one in found), "n": len(found),
        "faults": sum(len(one["carried"]) for one in found), "missed": sum(len(one["missed"]) for one in found),
        "operation": found[-1]["operation"] if found else None,
    }  # fmt: skip
