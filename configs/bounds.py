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


class Section(BaseModel):
    """A frozen pydantic model; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def describe_errors(error: ValidationError, listed: str) -> list[str]:
    """Describe pydantic's errors, one line per wrong value: its key, the value seen, and what would be right.

    Args:
        error: of a section or contract (a job's YAML of latency target and executor bounds).
        listed: the file to name as the list of all keys.
    """
    unknown = f"no such key. Look for a misspelling; {listed} lists every one."
    return [
        f"{'.'.join(map(str, wrong['loc']))}={wrong['input']!r}: "
        + (unknown if wrong["type"] == "extra_forbidden" else f"{wrong['msg']}.")
        for wrong in error.errors()
    ]
