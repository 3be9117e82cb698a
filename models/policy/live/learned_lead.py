"""The lead time of one live job as the outcomes of its raises tell it: pure steps, kept in the autoscaler's state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from configs.contract import Contract
from models.policy.core.lead_time import LeadTime, StartUp

LEVEL = 0.9
"""Probability with which a raise is to be of use in time."""
LONGEST_S = 7200.0  # more is no start-up: agents look for executors for a quarter of an hour
SETTLED, OVERDUE = 32, 4  # decisions whose outcome is not taken twice; that may still be told more of


@dataclass(frozen=True)
class LearnedLead:
    """What one job's raises took.

    Attributes:
        settled_lead: learned from the raises of which nothing more is to be told.
        overdue: (decision, what it took so far) of raises that were given up and may still come.
        settled: newest decisions that `settled_lead` holds.
    """

    settled_lead: LeadTime
    overdue: tuple[tuple[str, StartUp], ...] = ()
    settled: tuple[str, ...] = ()

    @classmethod
    def guess(cls, lead_s: float) -> LearnedLead:
        """Create what is known before any outcome: the contract's lead time, in seconds."""
        return cls(LeadTime.guess(lead_s))

    @classmethod
    def from_json_values(cls, kept: dict[str, Any]) -> LearnedLead:
        """Rebuild it from what `dataclasses.asdict` made of it and JSON kept.

        Raises:
            KeyError, TypeError, ValueError: they are not such values.
        """
        overdue = tuple((name, StartUp(**start)) for name, start in kept["overdue"])
        return cls(LeadTime.from_json_values(kept["settled_lead"]), overdue, tuple(kept["settled"]))

    @property
    def lead(self) -> LeadTime:
        """The lead time as learned by now, from the overdue raises too."""
        known = self.settled_lead
        for _, start in self.overdue:
            known = known.learn(start)
        return known

    def learn_outcome(self, outcome: Mapping[str, Any]) -> LearnedLead:
        """Return what is known after an outcome; one that tells of no raise, or that was taken before, changes nothing.

        A raise that was given up counts as censored until a later outcome of the same decision says what it took.

        Args:
            outcome: fields of `tidecast.messages.Outcome`.

        Raises:
            KeyError: a field is missing.
        """
        name, start = outcome["decision_id"], read_start(outcome)
        if start is None or name in self.settled:
            return self
        waiting = tuple(one for one in self.overdue if one[0] != name)
        if start.censored:
            waiting = (*waiting, (name, start))
            if len(waiting) <= OVERDUE:
                return replace(self, overdue=waiting)
            (name, start), *rest = waiting
            waiting = tuple(rest)
        return LearnedLead(self.settled_lead.learn(start), waiting, (*self.settled, name)[-SETTLED:])


def lead_quantiles(known: LearnedLead | None, contract: Contract, busy: float) -> dict[str, float]:
    """Return what is known of the lead time of a raise of one executor, wall seconds to two digits, for the log.

    Args:
        known: what was learned; None before any outcome, where the contract's lead time is what is believed.
        contract: of the job.
        busy: share, 0 to 1, of the executors' time that is work now.

    Returns:
        "median_s", "planned_s" (the quantile LEVEL, which policies plan for), and "starts", the raises learned from.
    """
    lead = (known or LearnedLead.guess(contract.planning.lead_s)).lead
    median, planned = (float(f"{lead.quantile_s(level, 1, busy):.2g}") for level in (0.5, LEVEL))
    return {"median_s": median, "planned_s": planned, "starts": lead.starts}


def read_start(outcome: Mapping[str, Any]) -> StartUp | None:
    """Return what a raise took, from the decision until a batch had used executors that came for it.

    None for what says nothing of the lead time: no raise, refused or failed, executors that came and that no batch had
    need of, a time that is missing, not after the decision, after the outcome or too long ago (a clock that jumped).

    Args:
        outcome: fields of `tidecast.messages.Outcome`.

    Raises:
        KeyError: a field is missing.
    """
    before, target, decided = outcome["executors_before"], outcome["target"], outcome["decided_at"]
    if before is None or target is None or decided is None or target <= before:
        return None
    came, used = outcome["confirmed_at"], outcome["useful_at"]
    if outcome["status"] == "confirmed" and came is not None and used is not None:
        until, censored = max(came, used), False  # executors of the raise before may have been used first
    elif outcome["status"] == "ineffective" and came is None:
        until, censored = outcome["wall_time"], True
    else:
        return None
    seconds, busy = until - decided, outcome["expected"].get("busy")
    if not 0 < seconds <= LONGEST_S or until > outcome["wall_time"] + 1:
        return None
    known = isinstance(busy, int | float) and math.isfinite(busy)
    return StartUp(seconds, target - before, float(busy) if known else 0.0, censored)
