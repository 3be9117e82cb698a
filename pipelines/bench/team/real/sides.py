"""The files of either side of a pair: contracts whose ceilings are shares, or a pool with the same cores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from pipelines.bench.team.real.mix import BATCH_S, CORES, MOST, OVERHEAD_S, SERVICE_S, TARGET_S, WEIGHTS

POOL, STATIC = "pool", "static"
SIDES = (POOL, STATIC)
NAME = "shared"
"""Of the pool."""


def contract_of(job: str, most: int) -> dict[str, Any]:
    """Return a job's contract with so many executors at most."""
    return {
        "job": job, "latency_target_s": TARGET_S, "error_budget": 0.05, "window_days": 1,
        "executors": {"min": 1, "max": most, "cores": 1},
        "planning": {
            "overhead_s": OVERHEAD_S, "per_record_s": SERVICE_S, "batch_s": BATCH_S, "lead_s": 12.0, "hold_s": 8.0,
            "catch_up_s": 12.0, "start_growth": 1.0,
        },
    }  # fmt: skip


def write_side(folder: Path, side: str, shares: Mapping[str, int]) -> Path:
    """Write the contracts of all jobs to a new folder, and the pool to another one beside it where there is one.

    Args:
        folder: of the session.
        side: of SIDES.
        shares: of the jobs, by name; their ceilings on the static side.

    Returns:
        The folder of contracts.

    Raises:
        OSError: a file cannot be written.
    """
    contracts = folder / "contracts"
    contracts.mkdir(parents=True)
    for job in WEIGHTS:
        most = shares[job] if side == STATIC else MOST
        (contracts / f"{job}.yaml").write_text(yaml.safe_dump(contract_of(job, most), sort_keys=False))
    if side == POOL:
        pool = {"name": NAME, "cores": CORES, "jobs": {job: {"weight": weight} for job, weight in WEIGHTS.items()}}
        (folder / "pools").mkdir()
        (folder / "pools" / f"{NAME}.yaml").write_text(yaml.safe_dump(pool, sort_keys=False))
    return contracts
