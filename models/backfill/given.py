"""What a backfill's plan starts from: its work, the executors there may be, and what is expected of the live load."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from configs.errors import FinalError
from models.contract.service_rate import ServiceRate
from models.policy.core.capacity import Floats
from models.policy.planners.turns import turns_of


class BackfillPlanError(FinalError, ValueError):
    """A backfill cannot be planned as asked; the message names the value and what would be right."""


@dataclass(frozen=True)
class ReplayWork:
    """Records to replay.

    Attributes:
        records: that are left, at least 0.
        cost: work of a replayed record ÷ that of a live one, as believed: the median.
        cost_deviation: standard deviation of the logarithm of `cost`, 0 where it is known.

    Raises:
        BackfillPlanError: one of them is out of range.
    """

    records: float
    cost: float = 1.0
    cost_deviation: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.records < math.inf and 0 < self.cost < math.inf and 0 <= self.cost_deviation < 2):
            raise BackfillPlanError(
                f"records={self.records}, cost={self.cost}, cost_deviation={self.cost_deviation}: at least 0, above 0 "
                "and 0 to 2 are expected. Count the range, and measure the cost in a rehearsal"
            )


@dataclass(frozen=True, eq=False)
class Fleet:
    """The executors that live records and the backfill share.

    Attributes:
        worth: (N + 1,) slots that 0 to N executors are worth, never falling (`policy.core.capacity.speed_table`);
            beyond `most` only to say what would be needed.
        least, most: bounds of their number, `most` at most N.
        lead_s: (Q,) quantiles of the seconds from a request until executors work, at levels (i + 0.5)/Q.
        price: of an executor-hour, in any currency.
        growth, step_up: exponent by which `lead_s` grows with the executors that start at once, and most that may; they
            start in turns (`policy.planners.turns`).

    Raises:
        BackfillPlanError: the bounds are not 1 ≤ least ≤ most ≤ N, or a lead time is negative or infinite.
    """

    worth: Floats
    least: int
    most: int
    lead_s: Floats
    price: float = 1.0
    growth: float = 0.0
    step_up: float = math.inf

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most < len(self.worth):
            raise BackfillPlanError(
                f"least={self.least}, most={self.most}, {len(self.worth) - 1} executors in the table of their worth: "
                "1 <= least <= most <= those is expected"
            )
        if not (len(self.lead_s) and np.isfinite(self.lead_s).all() and (self.lead_s >= 0).all()):
            raise BackfillPlanError(f"lead_s={self.lead_s}: finite seconds of at least 0 are expected")

    @property
    def in_turns(self) -> bool:
        """Whether executors may slow each other's start down, or few may start at once."""
        return self.growth > 0 or math.isfinite(self.step_up)

    def with_most(self, most: int) -> Fleet:
        """Return the same fleet with another upper bound."""
        return replace(self, most=most)

    def share_away(self, leads: Floats, steps: int) -> Floats:
        """Return the share of a step that 0 to `most` executors are still away, in each step from their request on.

        Args:
            leads: (Q,) lead time of one, in steps.
            steps: that are looked at, at most.

        Returns:
            (J, Q, most + 1), the mean of those that are asked for when the first step begins; 0 after J steps.
        """
        turns = [np.array(turns_of(many, self.growth, self.step_up)) for many in range(1, self.most + 1)]
        last = max(float(each[-1, 1]) for each in turns) * float(leads.max())
        before = np.arange(min(max(math.ceil(last), 1), steps))[:, None]
        found = np.zeros((len(before), len(leads), self.most + 1))
        for many, each in enumerate(turns, 1):
            away = np.clip(each[:, 1, None, None] * leads - before, 0.0, 1.0)
            found[..., many] = np.tensordot(each[:, 0], away, 1) / many
        return found


@dataclass(frozen=True)
class LivePromise:
    """What the live records need before the replay gets anything.

    Attributes:
        idle: share of the capacity that is left free for their latency (`contract.admission.batch_margin_rps` ÷ μ).
        headroom: executors are held for so many times the rate that really comes, at least 1: what the
            quantile that the live job is provisioned for was in sum ÷ what came.

    Raises:
        BackfillPlanError: a share outside [0, 1), or headroom below 1.
    """

    idle: float = 0.15
    headroom: float = 1.1

    def __post_init__(self) -> None:
        if not (0 <= self.idle < 1 <= self.headroom < math.inf):
            raise BackfillPlanError(
                f"idle={self.idle}, headroom={self.headroom}: a share below 1, and 1 or more expected"
            )


@dataclass(frozen=True, eq=False)
class LiveOutlook:
    """Live records/s to expect, as quantiles per step of the plan.

    Attributes:
        quantiles: (K, L) records/s, mean of each step.
        levels: (L,) of them, rising in (0, 1).
        step_s: seconds per step.

    Raises:
        BackfillPlanError: shapes that do not fit, a rate that is negative or not finite, or a step of 0 s.
    """

    quantiles: Floats
    levels: tuple[float, ...]
    step_s: float

    def __post_init__(self) -> None:
        if self.quantiles.ndim != 2 or self.quantiles.shape[1] != len(self.levels) or not self.step_s > 0:
            raise BackfillPlanError(
                f"quantiles {self.quantiles.shape}, {len(self.levels)} levels, step_s={self.step_s}: a column per "
                "level and a step above 0 s are expected"
            )
        if not (np.isfinite(self.quantiles).all() and (self.quantiles >= 0).all()):
            raise BackfillPlanError(
                "a forecast rate is negative or not finite: without a forecast no deadline is planned"
            )

    @property
    def high(self) -> Floats:
        """(K,) records/s, of the level nearest to 0.9: by which a replay is admitted."""
        return self.quantiles[:, int(np.argmin(np.abs(np.array(self.levels) - 0.9)))]

    @property
    def median(self) -> Floats:
        """(K,) records/s, of the level nearest to 0.5."""
        return self.quantiles[:, int(np.argmin(np.abs(np.array(self.levels) - 0.5)))]


@dataclass(frozen=True)
class SlotRate:
    """What one slot serves, live records per busy second: a log-normal belief.

    Attributes:
        rps: the median.
        deviation: standard deviation of the logarithm.
        held_rps: what the live job's own planner counts a slot with when it holds executors; None: `rps`, of which the
            promise's share stays idle.

    Raises:
        BackfillPlanError: no rate above 0, or a negative deviation.
    """

    rps: float
    deviation: float = 0.0
    held_rps: float | None = None

    def __post_init__(self) -> None:
        if not (0 < self.rps < math.inf and 0 <= self.deviation < 2) or (self.held_rps or 1.0) <= 0:
            raise BackfillPlanError(
                f"rps={self.rps}, deviation={self.deviation}, held_rps={self.held_rps}: rates above 0, and 0 to 2 are "
                "expected"
            )

    @classmethod
    def learned(cls, known: ServiceRate) -> SlotRate:
        """Take the Gamma posterior of a service rate: its median, and the deviation of its logarithm, about 1/√shape.

        The exact one is √ψ′(shape), between 1/√shape and that times √(1 + 1/shape).
        """
        return cls(known.quantile(0.5), min(math.sqrt(1 / known.shape), 1.9))
