"""What applied decisions really did: watched until the executors and a batch have shown it, or the time is up.

Pure: everything is given to the tracker with its wall time.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tidecast.control import Clock
from tidecast.messages import Decision, Outcome
from tidecast.spark.progress import Batch

PRIOR_S, TIMES, QUANTILE = 15.0, 4.0, 0.9
"""Start assumed slow before any was seen, seconds; factor on a slow start; quantile of starts taken as slow."""
LEAST_S, MOST_S = 30.0, 7200.0
"""Bounds of `patience_s`, wall seconds; after MOST_S executors are no longer looked for (some take half an hour)."""
USE_S, BATCHES = 120.0, 3.0
"""Longest wait, wall seconds, for a batch that uses new executors; a batch that began before they came cannot. Once one
has run without them, as long as so many like it take, LEAST_S at least."""
ROOM_S = 10.0
"""Wall seconds without the executors after which a cluster manager that can say so is asked whether it has room."""
STARTS = 50  # number of newest starts that `patience_s` is computed from


def patience_s(starts: Sequence[float]) -> float:
    """Return how many wall seconds to wait for requested executors, from how long earlier ones took to start.

    4 times the 0.9 quantile of `starts` (seconds; may be empty) with one of 15 s added, bounded to 30 to 7,200 s.
    """
    ordered = sorted([*starts, PRIOR_S])
    return min(MOST_S, max(LEAST_S, TIMES * ordered[math.ceil(QUANTILE * len(ordered)) - 1]))


@dataclass
class AppliedDecision:
    """An applied decision whose outcome is still open; `before` are the ids of the executors when it was applied.

    Times are wall times, epoch seconds. `passed_s`: seconds of the longest batch that began after the new executors
    came and has finished without them; None: there was none. `overdue`: they had not come after `patience_s`, or the
    cluster manager had no room, and an outcome said so. `no_room`: the queue that had none; "" if that is not known.
    """

    decision: Decision
    before: frozenset[str]
    applied_at: float
    observed: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    confirmed_at: float | None = None
    useful_at: float | None = None
    after: int | None = None
    passed_s: float | None = None
    overdue: bool = False
    no_room: str = ""

    @property
    def target(self) -> int:
        """Executors that the decision asks for."""
        return self.decision.executors

    @property
    def grows(self) -> bool:
        """Whether the decision asks for more executors than there were."""
        return self.target > len(self.before)

    @property
    def use_s(self) -> float:
        """How long to wait for a batch that uses the new executors, wall seconds from their coming."""
        return USE_S if self.passed_s is None else min(max(LEAST_S, BATCHES * self.passed_s), USE_S)


class Tracker:
    """Follows applied decisions until executors and batches show what they did, and returns the outcomes found.

    Executors that do not come within `patience_s`, or for which there is no room, are reported as ineffective, and
    looked for up to MOST_S: a later outcome of the same decision replaces the earlier one. `observed["waited_s"]` is
    how long they took; where they had not come it is a lower bound, and `observed["censored"]` is True. What was waited
    for room says nothing of how long they take to start: then `observed["no_room"]` names the queue.
    """

    def __init__(self) -> None:
        self._open: list[AppliedDecision] = []
        self._starts: list[float] = []
        self._last: Batch | None = None

    def awaits_use(self) -> bool:
        """Return whether a scale-up is open, so that `observe_batch` needs the executors that the next batch used."""
        return any(a.grows for a in self._open)

    def awaits_room(self, live: int, now: float) -> bool:
        """Return whether executors asked for ROOM_S (10 s) ago are not there, so that `note_full` is of use.

        Args:
            live: registered executors, without those asked to leave.
            now: wall time, epoch seconds.
        """
        return any(a.grows and not a.no_room and live < a.target and now - a.applied_at > ROOM_S for a in self._open)

    def note_full(self, queue: str, now: float) -> None:
        """Note that a queue has no room for what is asked for; the next `observe_executors` reports it."""
        for action in self._open:
            if action.grows and action.confirmed_at is None and now - action.applied_at > ROOM_S:
                action.no_room = action.no_room or queue

    def move(self, by_s: float) -> None:
        """Move the times of the open decisions by so many seconds: the wall clock, by which they are told, was set."""
        for action in self._open:
            action.decision = replace(action.decision, wall_time=action.decision.wall_time + by_s)
            action.applied_at += by_s
            action.confirmed_at = None if action.confirmed_at is None else action.confirmed_at + by_s
            action.useful_at = None if action.useful_at is None else action.useful_at + by_s

    def track(
        self, decision: Decision, before: Collection[str], lag: int | None, now: float, clock: Clock
    ) -> list[Outcome]:
        """Start to follow a decision that was just applied; close open ones that it contradicts.

        Args:
            decision: the applied one.
            before: ids of the executors when it was applied, without those asked to leave.
            lag: records not yet processed; None while unknown.
            now: wall time, epoch seconds.
            clock: from wall time to the job's (event) time, which runs faster in a replay; for the outcomes' `time`.

        Returns:
            An outcome `ineffective` for each open decision that the new one supersedes: a scale-up whose target is
            above the new one, a scale-down (or none) whose target is below it. Others stay open, with a note. The list
            may be empty.
        """
        action = AppliedDecision(decision, frozenset(before), now, {"lag_records_before": lag})
        if self._last is not None:
            action.observed["processed_rps_before"] = round(self._last.processed_rps, 3)
        outcomes = []
        for other in list(self._open):
            note = f"superseded after {now - other.applied_at:.1f} s by {decision.id}, which asks for {action.target}"
            if action.target >= other.target if other.grows else action.target <= other.target:
                other.notes.append(note)  # still comes true on the way there
            else:
                self._open.remove(other)
                action.observed |= {"asked_before": True} if other.grows and action.grows else {}
                outcomes.append(self._outcome(other, "ineffective", note, len(before), now, clock))
        self._open.append(action)
        return outcomes

    def observe_executors(
        self, live: Collection[str], leaving: Collection[str], now: float, clock: Clock
    ) -> list[Outcome]:
        """Compare the registered executors with the open decisions and return the outcomes of those that are settled.

        `confirmed` is a scale-down when enough executors have left, a scale-up when a batch has used new ones.
        `ineffective` is a decision whose executors have not come (left) after `patience_s` (30 to 7,200 s, by how
        long the last 50 scale-ups took), and again after MOST_S (7,200 s), when it is closed; and a scale-up whose
        executors no batch used within USE_S (120 s) of their coming, or, once a batch has run without them, as long as
        three such take, LEAST_S (30 s) at least.

        Args:
            live: ids of the registered executors, without those asked to leave.
            leaving: ids of those asked to leave and still registered.
            now: wall time, epoch seconds.
            clock: the job's clock, for the outcomes' `time`.
        """
        outcomes = []
        for action in list(self._open):
            reached = len(live) >= action.target if action.grows else len(live) + len(leaving) <= action.target
            waited, status, closes = now - action.applied_at, "ineffective", True
            if reached and action.confirmed_at is None:
                action.confirmed_at, action.after = now, len(live)
                if action.grows and not action.no_room and "asked_before" not in action.observed:
                    self._starts = [*self._starts, waited][-STARTS:]
            if action.confirmed_at is None:
                closes = waited > MOST_S
                early = waited <= patience_s(self._starts) and not action.no_room
                if not closes and (early or action.overdue):
                    continue
                action.overdue = True
                said = f"{executors_in_words(len(live))} {waited:.0f} s after {action.target} were asked for; "
                said += _why_missing(action)
            elif not action.grows or action.useful_at is not None:
                took, status = action.confirmed_at - action.applied_at, "confirmed"
                said = f"{len(action.before)} -> {executors_in_words(action.target)} after {took:.1f} s"
                if action.useful_at is not None:
                    said += f", used by a batch that finished after {action.useful_at - action.applied_at:.1f} s"
            elif now - action.confirmed_at > action.use_s:
                said = f"the executors came, but no batch has used them within {waited:.0f} s"
            else:
                continue
            if closes:
                self._open.remove(action)
            said = "; ".join([said, *action.notes])
            outcomes.append(self._outcome(action, status, said, len(live), now, clock))
        return outcomes

    def observe_batch(self, batch: Batch, used: Collection[str], lag: int | None) -> None:
        """Note a finished batch in the open decisions: its rate, the lag, and whether it used a scale-up's executors.

        Args:
            batch: the finished batch.
            used: ids of the executors that it ran on and that count for the query, without those that were asked to
                leave; may be empty unless `awaits_use()`.
            lag: records not yet processed after it; None while unknown.
        """
        self._last = batch
        for action in self._open:
            action.observed |= {"processed_rps_after": round(batch.processed_rps, 3), "lag_records_after": lag}
            if action.grows and action.useful_at is None and set(used) - action.before:
                action.useful_at = batch.finished
            elif action.confirmed_at is not None and batch.finished - batch.batch_s >= action.confirmed_at:
                action.passed_s = max(batch.batch_s, action.passed_s or 0.0)

    def _outcome(
        self, action: AppliedDecision, status: str, reason: str, live: int, now: float, clock: Clock
    ) -> Outcome:
        confirmed_at = action.confirmed_at
        observed = action.observed | {
            "waited_s": round((now if confirmed_at is None else confirmed_at) - action.applied_at, 3),
            "censored": confirmed_at is None, "late": action.overdue and confirmed_at is not None,
            "patience_s": patience_s(self._starts), "no_room": action.no_room or None,
        }  # fmt: skip
        return outcome(
            action.decision, status, reason, now, clock,
            executors_before=len(action.before), executors_after=live if action.after is None else action.after,
            applied_at=action.applied_at, confirmed_at=confirmed_at, useful_at=action.useful_at,
            observed={k: v for k, v in observed.items() if v is not None},
        )  # fmt: skip


def _why_missing(action: AppliedDecision) -> str:
    if not (action.grows and action.no_room):
        return "has the cluster room for more?" if action.grows else "do they decommission?"
    return (
        f"YARN's queue {action.no_room} has no room for the others, which wait: free some, or give it more "
        "(`yarn application -list` shows who has it)"
    )


def executors_in_words(many: int) -> str:
    """Return a number of executors as text, "1 executor" or "2 executors"."""
    return f"{many} {'executor' if many == 1 else 'executors'}"


def outcome(decision: Decision, status: str, reason: str, now: float, clock: Clock, **facts: Any) -> Outcome:
    """Build the `Outcome` of a decision at wall time `now` (epoch seconds); `facts` are further fields of `Outcome`."""
    return Outcome(
        decision_id=decision.id, job=decision.job, time=clock.at(now), wall_time=now, time_scale=clock.scale,
        status=status, reason=reason, target=decision.executors, decided_at=decision.wall_time,
        expected=decision.expected, **facts,
    )  # fmt: skip
