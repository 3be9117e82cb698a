"""Windows of event time, in the trace's time: those of the main job, how long it waits for records, and their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from configs.sections import Replay

if TYPE_CHECKING:
    from pyspark.sql import Column

JOB = "word_count"
"""Name of the main job."""
WINDOW_MS = 600_000
"""Length of its windows, which lie side by side from the epoch on."""
DISORDER_S = 30.0
"""Wall seconds that one partition may be behind another: longer than a broker may be away while its producers hold
records back."""


def watermark_delay_ms(replay: Replay) -> int:
    """Return how far behind the newest event time a record is still expected, ms of trace time.

    Args:
        replay: `late_s` and `speed`. Records are produced up to `late_s` wall seconds late, and out of order by as much
            as partitions lie apart; each wall second of both is `speed` seconds of the trace.
    """
    return round((replay.late_s + DISORDER_S) * replay.speed * 1000)


def result_key(job: str, key: str, start: int, end: int) -> str:
    """Return the key of a result's record, `<job>:<key>@<start>-<end>`, the window's ends in epoch ms."""
    return f"{job}:{key}@{start}-{end}"


def result_key_column(job: str, *keys: str) -> Column:
    """Return the same as a column.

    Args:
        job: name of the job.
        keys: columns of the key, beside those of the window that `tidecast.signed` makes.
    """
    from pyspark.sql import functions as F

    return F.concat(F.lit(f"{job}:"), *keys, F.lit("@"), F.col("_window_start"), F.lit("-"), F.col("_window_end"))


def totals_per_key(results: Mapping[str, Mapping[str, Any]], job: str) -> dict[str, dict[str, int]]:
    """Return each key's `n` and `seq_sum` over all of its windows, sorted by key.

    Args:
        results: columns by name, by the key of the result's record.
        job: name of the job.
    """
    totals: dict[str, dict[str, int]] = {}
    for record, result in results.items():
        key = record.removeprefix(f"{job}:").rpartition("@")[0]
        known = totals.setdefault(key, {"n": 0, "seq_sum": 0})
        totals[key] = {name: known[name] + result[name] for name in known}
    return dict(sorted(totals.items()))
