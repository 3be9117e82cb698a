"""How many executors a job asks for in all: for live records, for replays, and on the ladder of relief, in turns.

Where executors slow each other's start down, or few may start at once, a replay's that start beside those of live
records slow these down, too. So there is one order of turns for all, in which what live records need goes first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from configs.contract import Contract
from configs.planning import Planning
from models.policy.planners.turns import at_once, pace_s
from models.policy.received.observation import Observation
from models.policy.replays.executors import kept_running, with_replays
from models.policy.replays.relief import with_relief


class AskedInAll(NamedTuple):
    """Executors to ask for, why, the same for programs, and how many of them are beside live records for replays."""

    executors: int
    reason: str
    codes: list[str]
    added: int


class TotalSoFar(NamedTuple):
    """What a job has of executors.

    Attributes:
        running: by the newest metrics.
        asked: for, by the decision before; None: not known.
        raised_s: seconds since more than before were asked for; infinite for never.
    """

    running: int
    asked: int | None
    raised_s: float


def seconds_since(at: float | None, now: float) -> float | None:
    """Return the seconds since a moment, epoch seconds; None without one, and where a clock was set back behind it."""
    return None if at is None or at > now else now - at


def ask_in_all(
    live: int, reason: str, codes: list[str], decided: Mapping[str, Any] | None, relief: Mapping[str, Any] | None,
    seen: Observation, contract: Contract,
) -> AskedInAll:  # fmt: skip
    """Return what a job asks for in all, by its logged inputs.

    Args:
        live: executors that its policy asks for, for live records.
        reason: of that number, one line for a person.
        codes: the same for programs.
        decided: inputs of the rate of replays (`control.DecidedRate`); None: there is none. Older logs say nothing of
            the last raise of the total, which was then made at once.
        relief: as `relief.relief_of` returns it.
        seen: the job as observed.
        contract: of it, with the lead time that is planned for.
    """
    most = seen.most(contract)
    with_them, reason, codes = with_replays(live, reason, codes, decided, most)
    wanted, reason, codes = with_relief(with_them, reason, codes, relief, most)
    begun = wanted
    if decided is not None and "raised_s" in decided:
        raised_s = decided["raised_s"]
        if raised_s is None:  # before there was a replay live records' executors may have been asked for
            raised_s = seen.since_change_s if seen.target > seen.executors else math.inf
        total = TotalSoFar(decided["signals"]["executors"], decided["standing"], raised_s)
        begun = begin_in_turns(live, wanted, total, contract.planning)
    if begun < wanted:
        reason = f"{reason}; {wanted - begun} of them later, as executors start in turns"
    return AskedInAll(begun, reason, codes, min(with_them, begun) - live)


def begin_in_turns(live: int, wanted: int, total: TotalSoFar, planning: Planning) -> int:
    """Return how many executors to ask for now on the way up to those that are wanted in all.

    As many start at once as are soonest of use, the next ones when these should work, as `mpc` has it for those of live
    records. What that asks for is asked for in any case; executors that are under way for a replay serve it, too.

    Args:
        live: executors of live records.
        wanted: with those for replays and relief, at least `live`.
        total: what there is.
        planning: of the contract, with the lead time that is planned for and its growth.
    """
    asked = total.running if total.asked is None else total.asked
    if not planning.in_turns or wanted <= asked:
        return wanted
    ready, under_way = kept_running(total.running, total.asked), max(asked - total.running, 0)
    missing, growth, step_up = np.array([float(wanted - ready)]), planning.start_growth, planning.step_up
    pace = np.max(pace_s(missing, np.array([float(under_way)]), growth, step_up, planning.lead_s))
    next_up = asked if total.raised_s < pace else ready + int(at_once(missing, growth, step_up)[0])
    return min(max(next_up, asked, live), wanted)
