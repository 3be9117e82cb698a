"""A fitted job as a JSON file: written by `tidecast twin fit`, read by whoever replays the job."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from models.twin.calibration.fit import Fitted
from models.twin.sim.job import TwinError, TwinJob
from pipelines.whole_file import write_text

_NEEDED = ("overhead_s", "per_record_s", "most", "startup_s")


def fit_to_json(fitted: Fitted) -> dict[str, Any]:
    """Convert a fit to JSON values, times in seconds.

    Returns:
        `job` (fields of `TwinJob`; an infinite `batch_rows` or `catch_up` is None), `between` (95 % intervals by
        parameter), `unsure` (names of parameters told apart badly), and the numbers of `batches` and `startups` used.
    """
    job = asdict(fitted.job)
    for name in ("batch_rows", "catch_up"):
        job[name] = job[name] if np.isfinite(job[name]) else None
    return {
        "job": job, "between": fitted.between, "unsure": fitted.unsure,
        "batches": fitted.batches, "startups": fitted.startups,
    }  # fmt: skip


def write_fit(fitted: Fitted, job: str, folder: Path) -> Path:
    """Write the fitted job to `<folder>/<job>.json`, in place of an older one, whole or not at all; makes the folder.

    Returns:
        The file's path.

    Raises:
        OSError: the file cannot be written.
    """
    path = folder / f"{job}.json"
    write_text(path, json.dumps(fit_to_json(fitted), indent=1) + "\n")
    return path


def read_job(path: Path) -> TwinJob:
    """Read a job from a JSON file: the fields of `models.twin.sim.job.TwinJob`, at the top or under "job".

    `overhead_s`, `per_record_s`, `startup_s` (seconds) and `most` (executors) are needed; others, or null, take
    defaults.

    Raises:
        TwinError: the file cannot be read or is no JSON, a needed field is missing (the fit is unfinished), or a field
            is unknown or wrong.
    """
    try:
        data: Any = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise TwinError(f"{path}: no job can be read: {error}") from None
    if isinstance(data, dict) and isinstance(data.get("job"), dict):
        data = data["job"]
    if not isinstance(data, dict):
        raise TwinError(f"{path}: {type(data).__name__} is no job; an object with the job's fields is expected")
    if missing := [name for name in _NEEDED if data.get(name) is None]:
        raise TwinError(f"{path}: {', '.join(missing)} missing: the fit is unfinished. Run `tidecast twin fit` again.")
    names = {field.name for field in fields(TwinJob)}
    if unknown := sorted(set(data) - names):
        raise TwinError(f"{path}: {unknown[0]!r} is no field of a job. There are: {', '.join(sorted(names))}.")
    known: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items() if v is not None}
    try:
        return TwinJob(**known)
    except TypeError as error:
        raise TwinError(f"{path}: {error}") from None
