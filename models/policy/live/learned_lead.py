"""The lead time of one live job as the outcomes of its raises tell it: pure steps, kept in the autoscaler's state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from configs.contract import Contract, Planning
from models.policy.core.lead_time import LeadTime, StartUp

LEVEL = 0.9
"""Probability with which a raise is to be of use in time."""
OUTCOMES = 200  # newest ones, from which a lead time is learned anew: of the topic by a new query, or of the lake
LONGEST_S = 7200.0  # more is a clock that jumped: agents look for executors a quarter of an hour
SETTLED = 32  # decisions whose outcome is not taken twice


@dataclass(frozen=True)
class LearnedLead:
    """What one job's raises took.

    Attributes:
        lead: learned from all of them.
        overdue: (decision, what was learned before it) of the newest raise, if that was given up and may still come.
        settled: newest decisions of which nothing more is taken.
        came: what was learned before the first of the newest raises that were all given up; None: the newest has come.
    """

    lead: LeadTime
    overdue: tuple[str, LeadTime] | None = None
    settled: tuple[str, ...] = ()
    came: LeadTime | None = None

    @classmethod
    def guess(cls, planning: Planning) -> LearnedLead:
        """Create what is known before any outcome: the contract's lead time and its growth."""
        return _guessed(planning.lead_s, planning.start_growth)

    @classmethod
    def under(cls, known: LearnedLead | None, planning: Planning) -> LearnedLead:
        """Return what is known with the contract's guess of now, which may have been edited; `known`: None before any.

        It is all that is known before the first raise, and what is believed after a change of the cluster.
        """
        if known is None:
            return cls.guess(planning)
        guess, late = (planning.lead_s, planning.start_growth), known.overdue
        overdue = late and (late[0], late[1].with_prior(*guess))
        came = known.came and known.came.with_prior(*guess)
        return replace(known, lead=known.lead.with_prior(*guess), overdue=overdue, came=came)

    @classmethod
    def from_json_values(cls, kept: dict[str, Any]) -> LearnedLead:
        """Rebuild it from what `dataclasses.asdict` made of it and JSON kept.

        Raises:
            KeyError, TypeError, ValueError: they are not such values.
        """
        overdue = kept["overdue"] and (kept["overdue"][0], LeadTime.from_json_values(kept["overdue"][1]))
        came = kept.get("came") and LeadTime.from_json_values(kept["came"])
        return cls(LeadTime.from_json_values(kept["lead"]), overdue or None, tuple(kept["settled"]), came or None)

    def to_json_values(self) -> dict[str, Any]:
        """Return its fields for JSON, `came` only where it is set: the release before refuses a field that it lacks."""
        return {name: value for name, value in vars(self).items() if name != "came" or value is not None}

    def learn_outcome(self, outcome: Mapping[str, Any]) -> LearnedLead:
        """Return what is known after an outcome; one that tells of no raise, or that was taken before, changes nothing.

        A raise that was given up counts as censored; if the next outcome that tells of a raise is of the same decision,
        that takes its place.

        Args:
            outcome: fields of `tidecast.messages.Outcome`.

        Raises:
            KeyError: a field is missing.
        """
        name, start = outcome["decision_id"], read_start(outcome)
        if start is None or name in self.settled:
            return self
        before, settled = self.lead, self.settled
        if self.overdue is not None:
            if self.overdue[0] == name:
                before = self.overdue[1]
            else:
                settled = (*settled, self.overdue[0])
        if start.censored:
            return LearnedLead(before.learn(start), (name, before), settled[-SETTLED:], self.came or self.lead)
        return LearnedLead(before.learn(start), None, (*settled, name)[-SETTLED:])


@lru_cache(maxsize=1 << 10)  # each step of a job without a raise asks for it twice, and looks up what follows from it
def _guessed(lead_s: float, growth: float) -> LearnedLead:
    return LearnedLead(LeadTime.guess(lead_s, growth))


def without_overdue(known: LearnedLead | None) -> LearnedLead | None:
    """Return what is known without the newest raises, if they were given up: they do not tell when one comes.

    For how long something lasts that begins with a raise: an hour would be taken for what the next one takes.
    """
    return known if known is None or known.came is None else LearnedLead(known.came, None, known.settled)


def lead_quantiles(known: LearnedLead | None, contract: Contract, busy: float) -> dict[str, float]:
    """Return what is known of the lead time of a raise of one executor, wall seconds to two digits, for the log.

    Args:
        known: what was learned; None before any outcome.
        contract: of the job; its lead time is what is believed before any raise.
        busy: share, 0 to 1, of the executors' time that is work now.

    Returns:
        "median_s", "planned_s" (the quantile LEVEL, which policies plan for), each at most LONGEST_S; "growth", the
        exponent by which it grows with the executors that start at once, 0 to 2; and "starts", the raises learned from.
    """
    lead = LearnedLead.under(known, contract.planning).lead
    median, planned = _quantiles_s(lead, round(busy, 2))
    growth = round(min(max(lead.growth, 0.0), 2.0), 2)
    return {"median_s": median, "planned_s": planned, "growth": growth, "starts": lead.starts}


def plan_contract(known: LearnedLead | None, contract: Contract, lead: Mapping[str, float]) -> Contract:
    """Return a job's contract with the lead time and growth of `lead`, as `lead_quantiles` tells them.

    How long an executor is kept that nobody needs goes with the lead time where the contract does not state it: by that
    of a job as busy as is aimed for, which moves with raises alone. A delay that moved from second to second would be
    none.

    Args:
        known: as in `lead_quantiles`.
        contract: of the job.
        lead: what is planned for now.
    """
    kept_s = None
    if not contract.delay_stated:
        kept_s = contract.delay_for(
            lead_quantiles(without_overdue(known), contract, contract.planning.utilisation)["planned_s"]
        )
    return contract.planned_for(lead["planned_s"], lead["growth"], kept_s)


@lru_cache(maxsize=1 << 14)
def _quantiles_s(lead: LeadTime, busy: float) -> tuple[float, float]:
    """Median and LEVEL of a raise of one executor: each second they are asked for, and change with the raises alone."""
    median, planned = (min(float(f"{s:.2g}"), LONGEST_S) for s in lead.quantiles_s([0.5, LEVEL], 1, busy))
    return median, planned


def no_room(outcome: Mapping[str, Any]) -> bool:
    """Return whether an outcome, by its field `observed`, is of a raise for which the cluster had no room."""
    return _observed(outcome, "no_room")


def _observed(outcome: Mapping[str, Any], name: str) -> bool:
    observed = outcome.get("observed")
    return isinstance(observed, Mapping) and bool(observed.get(name))


def read_start(outcome: Mapping[str, Any]) -> StartUp | None:
    """Return what a raise took, from the decision until a batch had used executors that came for it.

    None for what says nothing of the lead time: no raise, refused or failed, one for which the cluster had no room at
    first, one that lowers an earlier raise whose executors were on their way, executors that came and that no batch had
    need of, a time that is missing, not after the decision, after the outcome or too long ago (a clock that jumped).

    Args:
        outcome: fields of `tidecast.messages.Outcome`.

    Raises:
        KeyError: a field is missing.
    """
    before, target, decided = outcome["executors_before"], outcome["target"], outcome["decided_at"]
    if before is None or target is None or decided is None or target <= before:
        return None
    if no_room(outcome) or _observed(outcome, "asked_before"):
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
    known = type(busy) in (int, float) and 0 <= busy <= 1
    return StartUp(seconds, target - before, float(busy) if known else 0.0, censored)
