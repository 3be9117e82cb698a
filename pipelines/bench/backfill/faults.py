"""Row: whether a table is what its records come to when all goes wrong at once, beside live records and retractions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.bench.backfill.arrangement import seed_of
from pipelines.bench.backfill.cells import Found, MeasuredCell, of_row, take_turns
from pipelines.bench.backfill.loads import CORRECTED
from pipelines.bench.backfill.outages import OFFSETS, merging_contract

ROW, LOADS, EXACT, SAMPLED = "faults", (CORRECTED,), "all", "sampled"
MINUTES, TURNS = 1.0, 1
"""Minutes of the load that are replayed, and sessions of each: of exact counts, and of such from a sample."""
MOST_S = 1500.0
"""Seconds after which replays that are not done are given up."""


@dataclass(frozen=True)
class FaultySession:
    """What a session runs: live records with retractions, a range that is read again, and what ends either.

    Attributes:
        range_s: length of the range, from the load's begin on.
        seed: of the live records.
        sampled: whether the job counts approximately.
    """

    range_s: float
    seed: int
    sampled: bool
    offsets = OFFSETS

    @property
    def expected_s(self) -> float:
        """About how long it lasts, seconds."""
        return 8 * self.range_s

    @property
    def most_s(self) -> float:
        """The longest that it lasts, seconds."""
        return self.range_s + MOST_S

    def contract(self, job: str) -> dict[str, Any]:
        """Return the job's contract as its file says it."""
        return merging_contract(job, "live_first")


def plan_load(load: str, minutes: float) -> list[MeasuredCell]:
    """Plan the sessions of a load."""
    return take_turns(ROW, load, (EXACT, SAMPLED), TURNS, minutes)


def arrange_faults(cell: MeasuredCell) -> FaultySession:
    """Arrange a cell."""
    return FaultySession(60 * cell.minutes, seed_of(cell), cell.arm == SAMPLED)


def summarise(kept: Mapping[MeasuredCell, Found], load: str) -> dict[str, Any]:
    """Summarise the sessions of a load.

    Returns:
        `wrong` of `windows`, once TURNS sessions of MINUTES are there; `faults`, what was done to them; `n`, sessions;
        and `sampled`, `within`, the share of its `windows` whose bound holds the truth, `unlike`, those whose sample is
        not what a batch takes of the same records, and its `n`.
    """
    arms = of_row(kept, ROW, load, MINUTES)
    found, sampled = arms.get(EXACT, []), arms.get(SAMPLED, [])
    windows, outside = (sum(one[name] for one in sampled) for name in ("windows", "wrong"))
    return {
        "wrong": sum(one["wrong"] for one in found) if len(found) >= TURNS else None,
        "windows": sum(one["windows"] for one in found), "faults": [one["faults"] for one in found], "n": len(found),
        "sampled": {
            "within": 1 - outside / windows if len(sampled) >= TURNS and windows else None, "windows": windows,
            "unlike": sum(one["unlike"] for one in sampled) if len(sampled) >= TURNS else None, "n": len(sampled),
        },
    }  # fmt: skip
