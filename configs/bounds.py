"""Building blocks of settings and contracts: a frozen model that refuses unknown keys, and bounded numbers."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from tidecast.fields import job_name

JobName = Annotated[str, AfterValidator(job_name)]
Port = Annotated[int, Field(ge=0, le=65535)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]

REMOVED = {
    "serving.publish_s": "a forecast is written once and a heartbeat vouches for it",
    "spark.executor_cores": "a contract's `executors.cores` counts",
    "agent_training.tolerance": "an agent serves only if it is cheaper than ours by `agent_training.gain`",
}
"""Settings of earlier releases, and what came in their place."""


class Section(BaseModel):
    """A frozen pydantic model; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def describe_errors(error: ValidationError, listed: str) -> list[str]:
    """Describe pydantic's errors, one line per wrong value: its key, the value seen, and what would be right.

    A key of REMOVED is told as one that may be deleted.

    Args:
        error: of a section or contract (a job's YAML of latency target and executor bounds).
        listed: the file to name as the list of all keys.
    """
    unknown = f"no such key. Look for a misspelling; {listed} lists every one."
    told = []
    for wrong in error.errors():
        key, what = ".".join(map(str, wrong["loc"])), f"{wrong['msg']}."
        if wrong["type"] == "extra_forbidden":
            what = f"no longer a setting: {REMOVED[key]}. Delete the line." if key in REMOVED else unknown
        told.append(f"{key}={wrong['input']!r}: {what}")
    return told
