"""From how many jobs on a part of the pipeline needs a second core, by what a job takes of one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from configs.bounds import HOUR_S

LIVE = ("autoscaler", "serving", "broker")


def shares_of(size: Mapping[str, Any]) -> dict[str, float]:
    """Return the share of a core that a job takes of each part.

    Of what is live as it was measured, with what it takes without jobs divided among them; of an ingest its CPU for a
    record, with its start, times the records that a job sends; of trainings one of each job in an hour, as after each
    ingest.

    Args:
        size: what was measured of one number of jobs: `jobs`, the `cores` of LIVE parts, `records_per_job_s`, and
            `ingest` and `training` as `pipelines.bench.fleet.batch_work.measure_batch_work` returns them.
    """
    ingest = size["ingest"]
    return {
        **{part: size[part]["cores"] / size["jobs"] for part in LIVE},
        "ingest": size["records_per_job_s"] * ingest["cpu_s"] / ingest["records"] if ingest["records"] else 0.0,
        "training": size["training"]["cpu_s"] / HOUR_S,
    }


def second_core_from(shares: Mapping[str, float]) -> dict[str, int | None]:
    """Return the smallest number of jobs whose work is more than a core, by part; None where a job takes nothing.

    Args:
        shares: of a core that a job takes, by part.
    """
    return {part: math.floor(1 / share) + 1 if share > 0 else None for part, share in shares.items()}
