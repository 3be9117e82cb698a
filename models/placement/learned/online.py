"""When another placement is looked for, whether it is put in force, and what becomes of one that did no good.

Pa-Stream paper, "Online scheduling", which it announces without a listing: our rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

from models.placement.graph import Integers
from models.placement.instances.job import Counts
from models.placement.learned.actions import moves_between
from models.placement.learned.reward import PlacementOutcome, RewardWeights
from models.placement.learned.schemes import Proposal

SLOWER, FULL, LOW, LOW_STEPS, USUAL = 1.2, 1.0, 0.5, 5, 30
MARGIN, MOVE_COST, COOL_S, BARRED_S = 0.05, 0.01, 180.0, 1800.0
JUDGED, LEAST_JUDGED = 5, 3
"""Newest steps before a change, and since, whose medians are held against each other, and how many there have to be
since: one step may be an odd one."""
LEAST_MEASURED = 4
"""Measured steps with a new placement in force before which no other one is asked for."""
UNTRUSTED = 1.5
"""Mean error of the last 30 steps over that at which training stopped from which on a model is not trusted."""


class StepOutcome(NamedTuple):
    """What is expected of the placement in force, and was measured: latency in ms and mean load."""

    latency_ms: float
    load: float


class Trigger(NamedTuple):
    """Why another placement is looked for: `why` is "" where none is; `fewer`: whether it may have fewer instances."""

    why: str
    fewer: bool = False


@dataclass(frozen=True)
class Scheduled:
    """What is carried from step to step.

    Attributes:
        measured: of the last steps with the placement in force, the newest last.
        low: steps in turn at which load was low, measured and expected.
        changed_s: when a placement was last put in force.
        before: placement from before it, and what that came to, while it is on trial.
        barred: placements that did no good, with the time until which they are not tried.
    """

    measured: tuple[StepOutcome, ...] = ()
    low: int = 0
    changed_s: float = float("-inf")
    before: tuple[Counts, StepOutcome] | None = None
    barred: tuple[tuple[bytes, float], ...] = ()

    def after_step(self, measured: StepOutcome, expected: StepOutcome) -> Scheduled:
        """Return what is carried on after a step was measured."""
        low = measured.load < LOW and expected.load < LOW
        return replace(self, measured=(*self.measured, measured)[-USUAL:], low=self.low + 1 if low else 0)

    def after_change(self, now_s: float, counts: Counts) -> Scheduled:
        """Return what is carried on after another placement than `counts` was put in force: nothing is usual yet."""
        return replace(self, measured=(), changed_s=now_s, before=(counts, self.recent()), low=0)

    def recent(self) -> StepOutcome:
        """Return the medians of the last steps that were measured, of which there is one at least."""
        return StepOutcome(*(median(values) for values in zip(*self.measured[-JUDGED:], strict=True)))


def expected_step(steps: Sequence[StepOutcome], now: PlacementOutcome, ahead: PlacementOutcome) -> StepOutcome:
    """Return what is expected at the load that is planned for: what was measured, times what the model says of both.

    Args:
        steps: that were measured; none: the model alone tells.
        now: by the model at the load of now.
        ahead: by the model at the load that is planned for.
    """
    if not steps:
        return StepOutcome(ahead.latency_ms, ahead.mean_load)
    usual_ms = median(one.latency_ms for one in steps)
    return StepOutcome(usual_ms * ahead.latency_ms / max(now.latency_ms, 1e-9), ahead.mean_load)


def trigger(state: Scheduled, expected: StepOutcome, limit_ms: float) -> Trigger:
    """Say whether another placement is looked for; only measured low load lets it have fewer instances.

    Args:
        state: with the newest step.
        expected: of the placement in force, at the rate that is forecast.
        limit_ms: of latency.
    """
    usual = median(one.latency_ms for one in state.measured) if state.measured else float("inf")
    if expected.latency_ms > limit_ms:
        return Trigger("expected over the limit")
    if expected.latency_ms > SLOWER * usual:
        return Trigger("expected slower than usual")
    if expected.load > FULL:
        return Trigger("expected to have too much load")
    if state.low >= LOW_STEPS:
        return Trigger("long under little load", fewer=True)
    return Trigger("")


def choose_proposal(
    state: Scheduled, now_s: float, counts: Counts, score: float, proposals: Sequence[Proposal], fewer: bool,
    cores: Integers | int = 1,
) -> Proposal | None:  # fmt: skip
    """Return the placement to put in force: the best less a hundredth a move, where it is better by a margin; or None.

    Args:
        state: carried.
        now_s: time.
        counts: in force.
        score: of it.
        proposals: placements with room.
        fewer: whether one may have fewer instances in all, by their cores.
        cores: (n,) of an instance on each node, where these differ.
    """
    if now_s - state.changed_s < COOL_S:
        return None
    barred = {key for key, until_s in state.barred if until_s > now_s}
    able = [
        one for one in proposals
        if one.counts.tobytes() not in barred and (fewer or (one.counts * cores).sum() >= (counts * cores).sum())
    ]  # fmt: skip

    def worth(one: Proposal) -> tuple[float, int]:
        moves = moves_between(one.counts, counts)
        return one.score - MOVE_COST * moves, -moves

    best = max(able, key=worth, default=None)
    return best if best is not None and worth(best)[0] > score + MARGIN else None


def judge_change(
    state: Scheduled, now_s: float, counts: Counts, weights: RewardWeights, cores: Integers | int = 1
) -> tuple[Scheduled, Counts | None]:  # fmt: skip
    """Return what is carried on, and the placement to go back to where a change did no good.

    That is: by what proposals are scored by, what was measured since is worth less than what was before; where latency
    and load are both worse it is. A change is judged once. None with fewer instances, unless load was low in all steps
    that are judged: where the rate has risen since, more instances are not to blame, and only measured low load lets
    there be fewer.

    Args:
        state: with the newest step.
        now_s: time; before the change is 180 s old, or three steps were measured since, nothing is judged.
        counts: in force.
        weights: by which proposals are scored.
        cores: (n,) of an instance on each node, where these differ: by them, one placement has fewer than another.
    """
    if state.before is None or len(state.measured) < LEAST_JUDGED or now_s - state.changed_s < COOL_S:
        return state, None
    (old, was), now = state.before, state.recent()
    settled = replace(state, before=None)
    worse = weights.score(now.latency_ms - was.latency_ms, now.load) < weights.score(0.0, was.load)
    as_many = (old * cores).sum() >= (counts * cores).sum()
    if worse and (as_many or all(one.load < LOW for one in state.measured[-JUDGED:])):
        barred = (*(one for one in state.barred if one[1] > now_s), (counts.tobytes(), now_s + BARRED_S))
        return replace(settled, measured=(), changed_s=now_s, barred=barred), old
    return settled, None


def is_trusted(errors: Sequence[float], stopped: float) -> bool:
    """Whether a model errs about as in training; where it does not, the twin takes its place."""
    recent = list(errors)[-USUAL:]
    return not recent or sum(recent) / len(recent) <= UNTRUSTED * stopped
