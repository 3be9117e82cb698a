"""How long nothing was heard of a part around a change of releases, and what was lost by it, in words."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

SETTLE_S = 25.0
"""Wall seconds after a change that count as after it."""
_BEGUN_ANEW = "begun anew"
"""Said by an autoscaler that cannot read what it knew of a job."""


class ReleaseChange(NamedTuple):
    """A change from one release to another.

    Attributes:
        began: epoch seconds.
        over: when both parts had spoken.
        restarts: of a part that ended by itself, as a service manager makes them.
    """

    began: float
    over: float
    restarts: int


def speaker(topic: str, said: dict[str, Any]) -> str:
    """Which part a record of a topic is of: `autoscaler` or `serving`."""
    return str(said["by"]) if topic == "heartbeats" else {"decisions": "autoscaler", "forecasts": "serving"}[topic]


def longest_gap(moments: Iterable[float], since: float, until: float) -> float:
    """Return the longest time between two moments one after the other, of those that lie in part within [since, until].

    Where there is none before, or none after, the time counts from `since`, or to `until`.

    Args:
        moments: epoch seconds, in any order.
        since: epoch seconds.
        until: likewise.
    """
    ordered = sorted(moments)
    first = max((one for one in ordered if one <= since), default=since)
    last = min((one for one in ordered if one >= until), default=until)
    within = [first, *(one for one in ordered if first < one < last), last]
    return max(later - earlier for earlier, later in pairwise(within))


def describe_change(said: dict[str, list[dict[str, Any]]], job: str, change: ReleaseChange) -> dict[str, Any]:
    """Return what was said of a job around a change, until SETTLE_S after it: keys as `upgrade_and_back` has them."""
    until = change.over + SETTLE_S
    spoken = [
        (speaker(topic, one), one["wall_time"])
        for topic in ("decisions", "heartbeats", "forecasts") for one in said[topic] if one["job"] == job
    ]  # fmt: skip
    silent = {
        part: longest_gap((at for who, at in spoken if who == part), change.began, until)
        for part in ("autoscaler", "serving")
    }
    decided = [one for one in said["decisions"] if one["job"] == job and change.over <= one["wall_time"] <= until]
    return {
        "silent_s": round(silent["autoscaler"], 1), "no_forecast_s": round(silent["serving"], 1),
        "decisions": len(decided), "on_forecasts": sum(_used_forecast(one) for one in decided),
        "restarts": change.restarts,
    }  # fmt: skip


def list_faults(counts: dict[str, int], said: dict[str, list[dict[str, Any]]], job: str, log: str) -> list[str]:
    """Say in words which records, decisions or knowledge were lost.

    Args:
        counts: `produced`, `counted`, `lost` and `duplicated` records.
        said: records of the topics `decisions` and `rejects`, in their order.
        job: whose.
        log: of the autoscaler, of all its starts.
    """
    decided = [one for one in said["decisions"] if one["job"] == job]
    once = {one["id"]: one for one in decided}  # a micro-batch that is tried again writes its decisions twice
    starts = [one["inputs"]["lead"]["starts"] for one in once.values() if "lead" in one["inputs"]]
    asked = {(one["id"], one["executors"]) for one in decided}
    found = {
        f"counts differ: produced {counts['produced']}, counted {counts['counted']}": (
            counts["lost"] or counts["duplicated"] or counts["produced"] != counts["counted"]
        ),
        f"{len(said['rejects'])} records were rejected": said["rejects"],
        "decisions of one id ask for different executors": len(once) < len(asked),
        "raises from which the lead time was learned are forgotten": starts != sorted(starts),
        "a job's state was begun anew": _BEGUN_ANEW in log,
    }
    return [words for words, so in found.items() if so]


def _used_forecast(decision: dict[str, Any]) -> bool:
    return decision["inputs"].get("forecast_version") is not None
