"""Building blocks of settings and contracts: forms that refuse unknown keys, bounded numbers, lengths of time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from tidecast.fields import job_name

HOUR_S, DAY_S = 3600.0, 86_400.0
WEEK_S = 7 * DAY_S
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Names that a topic may have."""


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the folder of a continent
        raise ValueError(f"{name!r} is no time zone. Take an IANA name such as Europe/Berlin") from None
    return name


JobName = Annotated[str, AfterValidator(job_name)]
ZoneName = Annotated[str, AfterValidator(_known_zone)]
"""An IANA name of a time zone."""
Port = Annotated[int, Field(ge=0, le=65535)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Level = Annotated[float, Field(gt=0, lt=1)]
"""A number between 0 and 1, both excluded, such as the level of a quantile."""
Fraction = Annotated[float, Field(ge=0, le=1)]
"""A share that may be all."""
Whole = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]
Key = Sequence[int | str]
"""Where a value stands in a file: names of sections, places in lists, the name of the key."""

REMOVED = {
    "serving.publish_s": "a forecast is written once and a heartbeat vouches for it",
    "replay.publish_s": "the deadline is half a minute after all is read, and `replay.backfill_after_s` puts both off",
    "spark.executor_cores": "a contract's `executors.cores` counts",
    "agent_training.tolerance": "an agent serves only if it is cheaper than ours by `agent_training.gain`",
}
"""Settings of earlier releases, and what came in their place."""


_SECRET = re.compile(r"passw|token|secret|jaas|hoo?k|://[^/\s]+/.", re.IGNORECASE)
_PATH = re.compile(r"(?<=://)([^/\s]+/).+", re.DOTALL)


class Section(BaseModel):
    """A frozen pydantic model; an unknown key is an error, and so is a number that is not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Declared:
    """Base of frozen dataclasses: an unknown key is an error, and so is what is not finite."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", allow_inf_nan=False)


def describe_errors(
    error: ValidationError, listed: str | None = None, root: str = "it", line_of: Callable[[Key], int] | None = None
) -> list[str]:
    """Describe pydantic's errors, one line per wrong value: its key, the value seen, and what would be right.

    A key of REMOVED is told as one that may be deleted. What may be a password, a token or a webhook is not repeated.

    Args:
        error: of a section, contract (a job's YAML of latency target and executor bounds) or declared dataclass.
        listed: the file to name as the list of all keys.
        root: what to call the whole, where no key of it is wrong but what it says together.
        line_of: says in which line of its file a key stands; the errors are then told in that order, lines first.
    """
    unknown = f"no such key. Look for a misspelling; {listed} lists every one."
    told = []
    found = error.errors()
    for wrong in found if line_of is None else sorted(found, key=lambda one: line_of(one["loc"])):
        key, kind, seen = ".".join(map(str, wrong["loc"])) or root, wrong["type"], f"={wrong['input']!r}"
        if _SECRET.search(f"{key}{seen}"):
            key, seen = _PATH.sub(r"\1…", key), " (its value is not shown)"
        if kind == "extra_forbidden" and key in REMOVED:
            what = f"{seen}: no longer a setting: {REMOVED[key]}. Delete the line."
        elif kind in ("extra_forbidden", "unexpected_keyword_argument"):
            what = f"{seen}: {unknown if listed else 'no such field. Look for a misspelling.'}"
        elif kind == "missing":
            what = ": missing, and it has no default. State it."
        elif kind == "value_error":  # of values that do not go together
            what = f": {wrong['ctx']['error']}"
        else:
            what = f"{seen}: {wrong['msg']}."
        told.append((f"line {line_of(wrong['loc'])}: " if line_of else "") + key + what)
    return told
