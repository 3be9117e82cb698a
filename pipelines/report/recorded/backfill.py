"""The backfill of a run's live day, as it was ordered and as was heard of it: `backfill.json`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pipelines.report.recorded.lines import RunError, json_object

FILE = "backfill.json"
UNORDERED = "not ordered"
"""State of a backfill before its order; then it is that of the newest progress (`tidecast.orders.STATES`)."""


@dataclass(frozen=True)
class RecordedBackfill:
    """What one backfill was to do, and what became of it; moments are epoch seconds of the wall clock.

    Attributes:
        id: of the order; "" before it.
        begin, end: of the range, job time, epoch seconds.
        due_at: when it had to be done.
        planned_at: when it was planned to be done; the deadline, where nothing nearer was planned.
        plan: what was planned, in a sentence; "" where a deadline was all.
        records: of the range, all that is read again; 0 before the order.
        ordered_at, begun_at, done_at: None: it never was.
        state, reason: the newest that was heard of it.
        progress: `wall_time`, `state`, `done` (records), `admitted_rps`, `rps` and `executors` (those beyond the live
            job's) of each word on it, in order.
        windows: results per key and window: `differed` (live records alone came to another result), `corrected` (of
            these, how many are right now), `wrong` (of all, how many are not); None before they were counted.
    """

    id: str
    begin: float
    end: float
    due_at: float
    planned_at: float
    plan: str = ""
    records: int = 0
    ordered_at: float | None = None
    begun_at: float | None = None
    done_at: float | None = None
    state: str = UNORDERED
    reason: str = ""
    progress: list[dict[str, Any]] = field(default_factory=list)
    windows: dict[str, int] | None = None


def write_backfill(run_dir: Path, told: RecordedBackfill) -> None:
    """Write `backfill.json` to a run's folder, replacing an older one.

    Raises:
        OSError: it cannot be written.
    """
    (run_dir / FILE).write_text(json.dumps(asdict(told), indent=1))


def read_backfill(run_dir: Path) -> RecordedBackfill | None:
    """Read `backfill.json` of a run's folder; None where the run had no backfill.

    Raises:
        RunError: it is no JSON, or lacks an entry.
        OSError, TypeError: it cannot be read, or holds no object.
    """
    path = run_dir / FILE
    if not path.exists():
        return None
    found, names = json_object(path), [one.name for one in fields(RecordedBackfill)]
    if missing := [name for name in names if name not in found]:
        raise RunError(f"{path}: {missing[0]!r} is missing; it holds {', '.join(found)}.")
    return RecordedBackfill(**{name: found[name] for name in names})
