"""Configurations of a job: sets of Spark settings, of which one is in force from a start of its query to the next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from configs.bounds import Name

MOST_CONFIGURATIONS = 8
"""More are not tried in the life of a contract: each costs a restart and 30 intervals."""
TRIGGER = "trigger"
"""Key of a configuration's processing time, such as "2 seconds"; all others are Spark's own."""
IN_CHECKPOINT = (
    "spark.sql.shuffle.partitions", "providerClass", "multipleWatermarkPolicy", "ormatVersion", "OperatorVersion",
    "encodingFormat", "stateStore.compression.codec", "rowChecksum.enabled", "useStrictDistribution",
    "pruneFiltersCanPruneStreamingSubplan",
)  # fmt: skip
"""Ends of settings that a checkpoint keeps, whatever a session says ("ormatVersion" of either case)."""
INTERVAL = re.compile(r"\d+ (milli)?seconds?|\d+ minutes?")


def _stated(settings: Mapping[str, str | int | float | bool]) -> Mapping[str, str]:
    for key in settings:
        if key != TRIGGER and not key.startswith("spark.sql."):
            raise ValueError(f"{key!r}: a query's start takes settings of spark.sql, and {TRIGGER}. State such ones")
        if key.endswith(IN_CHECKPOINT):
            raise ValueError(f"{key!r}: the checkpoint keeps it as it was at the first start. Leave it out")
    if TRIGGER in settings and not INTERVAL.fullmatch(str(settings[TRIGGER])):
        raise ValueError(f"{TRIGGER}={settings[TRIGGER]!r}: a processing time is expected, such as 2 seconds")
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in settings.items()}


Configuration = Annotated[Mapping[Name, str | int | float | bool], AfterValidator(_stated)]
"""Settings by name; none: as the session has them."""
StatedConfigurations = Annotated[Mapping[Name, Configuration], Field(max_length=MOST_CONFIGURATIONS)]
"""By name, the first one to begin with."""
