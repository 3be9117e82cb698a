"""What moves under load come to; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

UNDISTURBED = "nothing"
"""Name of the session in which nothing is killed."""


def longest_gap_s(times: Iterable[float], since_s: float) -> float:
    """Return the longest time without a result from a moment on, until the last one; 0 where none came after it.

    Args:
        times: when results were written, epoch seconds, in any order.
        since_s: the moment.
    """
    found = [since_s, *sorted(at for at in times if at > since_s)]
    return max((later - before for before, later in pairwise(found)), default=0.0)


def not_once(sent: Iterable[int], found: Iterable[int]) -> int:
    """Return how many records are missing, or too many.

    Args:
        sent: numbers of those that were sent, each once.
        found: of those that came through.
    """
    expected, seen = Counter(sent), Counter(found)
    return (expected - seen).total() + (seen - expected).total()


def summarise_moves(sessions: Mapping[str, Mapping[str, Any]], missing: int) -> dict[str, Any]:
    """Summarise sessions, by what was killed in each.

    Args:
        sessions: as `session.run_move` each.
        missing: how many were not run yet.

    Returns:
        `n` sessions; `wrong` of `windows` counts, `between`, records between the queries that are missing or too many;
        the least number of `keys` and the least `load` when it moved; `gap_s` and `done_s` where nothing was killed
        (`undisturbed`), and the longest of the others (`killed`, one that comes back among them); `missing`.
    """
    killed = [one for name, one in sessions.items() if name != UNDISTURBED]
    alone = sessions.get(UNDISTURBED, {})
    return {
        "n": len(sessions), "missing": missing,
        **{name: sum(one[name] for one in sessions.values()) for name in ("wrong", "windows", "between")},
        **{name: min((one[name] for one in sessions.values()), default=None) for name in ("keys", "load")},
        **{
            name: {"undisturbed": alone.get(name), "killed": max((one[name] for one in killed), default=None)}
            for name in ("gap_s", "done_s")
        },
    }  # fmt: skip
