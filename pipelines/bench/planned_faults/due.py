"""What a plan of faults asks for at a moment: which workers stand still, how narrow and how lossy the way is; pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from models.workload.faults import Fault

TURN_S, STILL = 0.4, 0.5
"""Seconds of a turn of a slow worker, and the share of them for which it stands still."""
CAPPED_BYTES_S = 16_000.0
"""Bytes/s that pass a capped way, both directions together."""
LOST, RESENT_S, MOST_RESENT = 0.05, 0.2, 6
"""Share of packets that are lost (a message or piece counts as one), seconds until the first is sent again (Linux's
least), and doublings of that."""


class FaultsHeld(NamedTuple):
    """What holds at a moment: workers that stand still, bytes/s of the way, and the share of packets that it loses."""

    still: frozenset[str] = frozenset()
    bytes_s: float = math.inf
    lost: float = 0.0


def standing_at(plan: Sequence[Fault], at_s: float) -> FaultsHeld:
    """Return what holds so many seconds after a plan's begin; kills hold for no time."""
    held = [one for one in plan if one.at_s <= at_s < one.at_s + one.duration_s]
    kinds = {one.kind for one in held}
    slow = (one for one in held if one.kind == "slow node" and (at_s - one.at_s) % TURN_S < STILL * TURN_S)
    return FaultsHeld(
        frozenset(one.target for one in slow), CAPPED_BYTES_S if "bandwidth cap" in kinds else math.inf,
        LOST if "packet loss" in kinds else 0.0,
    )  # fmt: skip


def begun_between(plan: Sequence[Fault], after_s: float, until_s: float) -> list[Fault]:
    """Return the faults of a plan that begin in (after_s, until_s], in order; a kill is over as soon as it begins."""
    return [one for one in plan if after_s < one.at_s <= until_s]


def ends_s(plan: Sequence[Fault]) -> float:
    """Return when the last fault of a plan is over, seconds after its begin; 0 for an empty one."""
    return max((one.at_s + one.duration_s for one in plan), default=0.0)


def resent_after_s(lost: float, draws: Sequence[float]) -> float:
    """Return for how long a message waits for packets that are lost: doubling timeouts, until one gets through.

    TCP loses nothing: what a reader sees of a lost packet is that everything behind it stalls until it is sent again.

    Args:
        lost: share of packets that are lost, 0 to 1.
        draws: uniform on [0, 1), one for each time that it is sent.
    """
    times = 0
    while times < min(MOST_RESENT, len(draws)) and draws[times] < lost:
        times += 1
    return RESENT_S * float(2**times - 1)
