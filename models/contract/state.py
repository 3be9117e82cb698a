"""What the controller keeps from interval to interval, and the controls that it applies; JSON holds both exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from configs.bounds import Count, Declared, Fraction, NotNegative, Whole
from models.contract.declared import TermsError
from models.contract.fairness import Credits
from models.contract.relief import Relief
from models.contract.service_rate import CERTAIN, ServiceRate
from models.contract.signals import PlannedOperator, SharedPlan
from models.contract.slow.response import Response
from models.contract.terms import Terms


@dataclass(frozen=True)
class Controls(Declared):
    """What is applied in the next interval.

    Attributes:
        replay_rps: a_b, source records/s that the replay is admitted with.
        live_rps: most live source records/s that are admitted; None: all.
        maintenance_rps: what checkpoints and compaction get of the slowest operator, records/s.
        theta: share of their error limits that approximate operators use.
        executors: that the autoscaler is asked for at least; None: no request.
        shed: share of the live records that is dropped.
        quantum: share of its usual rows that a channel takes per turn.
        credits: the slowest operator's capacity by origin, records/s.
        rows: live records of the next interval by tenant, where tenants are known.
        seeds: of the approximate operators, for this interval.
    """

    replay_rps: NotNegative = 0.0
    live_rps: NotNegative | None = None
    maintenance_rps: NotNegative = 0.0
    theta: Fraction = 0.0
    executors: Count | None = None
    shed: Fraction = 0.0
    quantum: Fraction = 1.0
    credits: Credits = field(default_factory=Credits)
    rows: Mapping[str, Whole] = field(default_factory=dict)
    seeds: Mapping[str, Whole] = field(default_factory=dict)


@dataclass(frozen=True)
class KnownOperator(Declared):
    """What was learned of an operator: service rate of an executor, and records that reach it per source record.

    `told_rps` is what an executor certainly serves by an estimate that came with the signals; None: none ever did.
    """

    rate: ServiceRate
    live_ratio: NotNegative
    replay_ratio: NotNegative
    told_rps: NotNegative | None = None

    @property
    def certain_rps(self) -> float:
        """Records/s that an executor certainly serves: as told, else the 5 % quantile of the paper's posterior."""
        return self.rate.quantile(CERTAIN) if self.told_rps is None else self.told_rps

    @classmethod
    def planned(cls, one: PlannedOperator) -> KnownOperator:
        """Return what is believed of an operator before anything was measured."""
        return cls(ServiceRate.prior(one.prior_rps), one.live_ratio, one.replay_ratio)


@dataclass(frozen=True)
class ControllerState(Declared):
    """The controller between two intervals.

    Attributes:
        began_s: t_0, epoch seconds; interval n ends at t_0 + n·Δt.
        interval: the newest one that was closed; 0: none.
        controls: as applied now.
        operators: what was learned, by name.
        multipliers: ν by constraint.
        relief: place on the ladder.
        live_rps: newest live rate that was read, records/s; None: none yet.
        lag_ms, lag_at: newest watermark lag that was read, and in which interval.
        executors: newest number that was read.
        deficits: records owed to tenants.
        response: of the worst limit's ratio to the controls, and whether the newest interval told that it has changed.
    """

    began_s: float
    interval: Whole = 0
    controls: Controls = Controls()
    operators: Mapping[str, KnownOperator] = field(default_factory=dict)
    multipliers: Mapping[str, NotNegative] = field(default_factory=dict)
    relief: Relief = field(default_factory=Relief)
    live_rps: NotNegative | None = None
    lag_ms: NotNegative | None = None
    lag_at: Whole = 0
    executors: Count | None = None
    deficits: Mapping[str, float] = field(default_factory=dict)
    response: Response = field(default_factory=Response)

    def interval_at(self, time_s: float, interval_s: float) -> int:
        """Return the newest interval of such a length that is over at a time, epoch seconds; 0: none."""
        return math.floor((time_s - self.began_s) / interval_s + 1e-9)


def begin(terms: Terms, plan: SharedPlan, time_s: float) -> ControllerState:
    """Return the state of a controller that has seen nothing: no replay yet, priors for the service rates.

    Args:
        terms: the contract.
        plan: operators, among them all that the contract's paths name.
        time_s: t_0, epoch seconds.

    Raises:
        TermsError: a path names an operator that the plan does not have.
    """
    planned = {one.name: one for one in plan.operators}
    for path in terms.paths:
        for name in path.ops:
            if name not in planned:
                known = ", ".join(planned)
                raise TermsError(f"paths: {path.name!r} passes {name!r}, which the plan lacks; it has {known}")
    operators = {name: KnownOperator.planned(planned[name]) for name in sorted(planned)}
    return ControllerState(float(time_s), 0, Controls(theta=terms.controls.theta.min), operators)
