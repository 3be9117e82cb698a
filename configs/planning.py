"""What a contract says of executors, and what the scaling policies plan with."""

from __future__ import annotations

import math

from pydantic import Field, model_validator

from configs.bounds import Count, NotNegative, Positive, Section

MOST_EXECUTORS, MOST_CORES = 10_000, 1000
"""Of a job, and of an executor: beyond lies a slip of the keyboard, and each decision looks at every number."""


class Executors(Section):
    """Bounds of the executor target, which the agent refuses to leave.

    Attributes:
        min, max: executors, both included.
        cores: per executor, or rather tasks that it runs at once.
    """

    min: int = Field(1, ge=1, le=MOST_EXECUTORS)
    max: int = Field(4, ge=1, le=MOST_EXECUTORS)
    cores: int = Field(1, ge=1, le=MOST_CORES)

    @model_validator(mode="after")
    def _ordered(self) -> Executors:
        if self.min > self.max:
            raise ValueError(f"min={self.min} is above max={self.max}; swap them")
        return self


BATCH_SHARE = 0.4
"""Share of the latency target that a batch should take where a contract does not say: two of them fit into it."""
UTILISATION = 0.8
"""Busy share of the capacity that is aimed for where a contract states none, until the promise asks for another."""


class Planning(Section):
    """What the scaling policies plan with; all times are wall seconds, because executors start in wall time.

    What a contract leaves out of `quantile`, `hold_s`, `catch_up_s`, `scale_down_delay_s` and `cooldown_s` follows from
    its promise and its lead time (`Contract`); the defaults here are those of a contract that states nothing.

    Attributes:
        target_utilisation: busy share of the capacity to aim for, in (0, 1]; None: by the promise, from 0.8 on.
        quantile: level of the forecast that is provisioned for, in (0, 1).
        lead_s: from the request of an executor to its first useful work; what is believed until it has been learned.
        start_growth: exponent by which `lead_s` grows with the executors that start at once: 0 where each comes to a
            computer of its own, 1 where they share one; what is believed until raises have told.
        hold_s: how long beyond the lead a scale-up should stay right.
        catch_up_s: in which a backlog is to be worked off.
        batch_s: that batches should take; None: 0.4 of the latency target, which two of them then fit into.
        scale_down_delay_s: the target never falls below the highest need of this time; left out, it goes with the
            learned lead time.
        cooldown_s: least time between two changes.
        max_step_up: most executors that start at once; None: as many as are needed and are soonest of use.
        max_step_down: most executors that one change takes.
        forecast_age_s: an older forecast is not used.
        metrics_age_s: with older metrics no decision is made.
        overhead_s: first guess of a batch's fixed time; learned from the batches.
        per_record_s: first guess of the service time of a record on one slot; learned likewise.
        scaling: exponent by which capacity grows with slots (tasks at once): 1 where twice the executors do twice the
            work, less where they wait for each other (0.83 for a measured Kafka mapper); best taken from a fitted twin.
        static_executors: the number that the policy `static` keeps.
        timetable_rps: load that the policy `schedule` goes by, records/s, for equal parts of the day from midnight UTC.
    """

    target_utilisation: float | None = Field(None, gt=0, le=1)
    quantile: float = Field(0.9, gt=0, lt=1)
    lead_s: NotNegative = 10.0
    start_growth: float = Field(0.0, ge=0, le=2)
    hold_s: NotNegative = 6.0
    catch_up_s: Positive = 15.0
    batch_s: Positive | None = None
    scale_down_delay_s: NotNegative = 8.0
    cooldown_s: NotNegative = 3.0
    max_step_up: Count | None = None
    max_step_down: Count = 1
    forecast_age_s: Positive = 12.0
    metrics_age_s: Positive = 5.0
    overhead_s: NotNegative = 0.6
    per_record_s: Positive = 0.0055
    scaling: float = Field(1.0, gt=0, le=1)
    static_executors: Count = 3
    timetable_rps: tuple[NotNegative, ...] = ()

    @property
    def utilisation(self) -> float:
        """Busy share of the capacity to aim for, `UTILISATION` where none is stated."""
        return UTILISATION if self.target_utilisation is None else self.target_utilisation

    @property
    def step_up(self) -> float:
        """Most executors that start at once, infinite where none is stated."""
        return math.inf if self.max_step_up is None else self.max_step_up

    @property
    def in_turns(self) -> bool:
        """Whether executors may start in turns, because they slow each other down or few may start at once."""
        return self.start_growth > 0 or self.max_step_up is not None
