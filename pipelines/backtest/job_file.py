"""A fitted job from a JSON file."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from models.twin.sim.job import TwinError, TwinJob

_NAMES = {field.name for field in fields(TwinJob)}
_NEEDED = ("overhead_s", "per_record_s", "most", "startup_s")


def read_job(path: Path) -> TwinJob:
    """The job in the file: the fields of `models.twin.sim.job.TwinJob`, by themselves or under "job".

    Raises:
        TwinError: no JSON, a field is missing (the fit is unfinished), unknown or wrong.
    """
    try:
        data: Any = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise TwinError(f"{path}: no job can be read: {error}") from None
    if isinstance(data, dict) and isinstance(data.get("job"), dict):
        data = data["job"]
    if not isinstance(data, dict):
        raise TwinError(f"{path}: {type(data).__name__} is no job; an object with the job's fields is expected")
    return job_of(data, str(path))


def job_of(data: dict[str, Any], where: str) -> TwinJob:
    """The job with these fields.

    Raises:
        TwinError: as `read_job`.
    """
    if missing := [name for name in _NEEDED if data.get(name) is None]:
        raise TwinError(f"{where}: {', '.join(missing)} missing: the fit is unfinished. Run `tidecast twin fit` again.")
    if unknown := sorted(set(data) - _NAMES):
        raise TwinError(f"{where}: {unknown[0]!r} is no field of a job. There are: {', '.join(sorted(_NAMES))}.")
    known: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    try:
        return TwinJob(**{name: value for name, value in known.items() if value is not None})
    except TypeError as error:
        raise TwinError(f"{where}: {error}") from None
