"""All that a plan starts from, out of what the autoscaler has learned of a running job and what was forecast of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from configs.contract import Contract
from models.backfill.climb import Climb
from models.backfill.given import BackfillPlanError, Fleet, LivePromise, SlotRate
from models.backfill.live.issued import IssuedLoad
from models.backfill.plan import OtherBackfill, Surroundings
from models.contract.admission import queue_margin_rps
from models.contract.promised.derive import derive_terms
from models.contract.terms import LIVE, Terms
from models.policy.core.capacity import Floats, speed_table
from models.policy.core.rate_spread import rate_deviation, slot_quantile
from models.policy.core.sustained import sustained_rates
from models.policy.live.learned_lead import LONGEST_S, LearnedLead, lead_quantiles
from models.policy.live.memory import Memory
from models.policy.received.outlook import SMOOTH_S
from models.policy.replays.level import MOST_LEVEL

MOST_STEPS, FEWEST_STEPS = 48, 8
LONGER = 1.5
"""How far a plan looks, in units of its deadline."""
LEADS = 8
"""Quantiles of the lead time."""
WIDER = 4
"""Executors whose worth is known, in units of the most that are allowed: to say what a deadline would take."""
PUBLISHED_S = 30.0
"""Seconds that a plan leaves for what follows once all is read: the last batch's results, a comparison, a merge. Those
of the main job's hour take some; nobody measures it of others."""
FIXED = "static"
"""The policy that always holds the same executors."""


@dataclass(frozen=True, eq=False)
class KnownJob:
    """What is known of a running job when its backfills are planned.

    Attributes:
        contract: of it.
        memory: what its autoscaler has learned.
        issued: forecasts, on the wall's clock; None before one.
        policy: that scales it.
        observes: whether its autoscaler only recommends.
    """

    contract: Contract
    memory: Memory
    issued: IssuedLoad | None
    policy: str
    observes: bool = False


@dataclass(frozen=True)
class StepGrid:
    """Equal steps up to a deadline: about two lead times each, 8 to 48 of them, fewer where each would be below one."""

    steps: int
    step_s: float

    @classmethod
    def until(cls, by_s: float, lead_s: float) -> StepGrid:
        """Cut the seconds until a deadline into steps."""
        leads = by_s / max(lead_s, 1e-9)
        fewest = max(min(int(leads), FEWEST_STEPS), 1)
        steps = min(max(int(leads / 2), fewest), MOST_STEPS)
        return cls(steps, by_s / steps)

    @property
    def looked_at(self) -> int:
        """Steps that are looked at: some after the deadline, too."""
        return math.ceil(LONGER * self.steps)


def lead_times(known: KnownJob) -> Floats:
    """Return (LEADS,) quantiles of the seconds until an executor that is asked for alone works."""
    lead = LearnedLead.under(known.memory.lead, known.contract.planning).lead
    busy = known.memory.batches.busy or 0.0
    levels = (np.arange(LEADS) + 0.5) / LEADS
    return np.minimum(lead.quantiles_s(levels.tolist(), 1, busy), LONGEST_S)


def start_growth(known: KnownJob) -> float:
    """Return the exponent by which a start takes longer with the executors that start at once."""
    return lead_quantiles(known.memory.lead, known.contract, known.memory.batches.busy or 0.0)["growth"]


def grid_until(known: KnownJob, by_s: float) -> StepGrid:
    """Return the steps of a plan up to a deadline, seconds from now."""
    return StepGrid.until(by_s, float(np.median(lead_times(known))))


def refuse_standstill(known: KnownJob) -> None:
    """Refuse to plan what is read beside live records where nobody decides a rate for it.

    Raises:
        BackfillPlanError: the job's agent does not act, or its autoscaler only observes.
    """
    job, mode = known.contract.job, known.memory.mode
    if mode not in (None, "act"):
        raise BackfillPlanError(
            f"the agent of job {job!r} is in mode {mode}: it takes no rate for a replay nor executors, and a backfill "
            f"stands still. `tidecast job mode {job} act` lets it act"
        )
    if known.observes:
        raise BackfillPlanError(
            f"the autoscaler only observes (autoscaler.mode): nobody decides a rate for a replay of job {job!r}, and a "
            "backfill stands still. Set it to act, and restart the autoscaler"
        )


def surroundings(
    known: KnownJob, now_s: float, grid: StepGrid, extra_now: int = 0, bound_rps: float | None = None,
    others: tuple[OtherBackfill, ...] = (), reading_s: float | None = None, admitted_rps: float | None = None,
) -> Surroundings:  # fmt: skip
    """Return what a backfill of a job is planned from now.

    The replay gets what the controller of its rate gives it where live records bear that: of what the executors serve
    less the margin and the most live records that are forecast (the 90 % quantile) half at the 5 % quantile, and nearly
    all at the median some intervals later. The live job's own planner counts with the rate that is believed.

    Args:
        known: the job.
        now_s: epoch seconds.
        grid: steps of the plan.
        extra_now: executors that run for the backfill.
        bound_rps: most that it was ordered to have; None: no bound.
        others: backfills that go first, their executors in the steps of the grid.
        reading_s: since its replay's first batch was begun; None: it has had none.
        admitted_rps: rate that it has now, in live records/s; None: nobody says.

    Raises:
        BackfillPlanError: nothing is known of the job's executors or load, or it has no forecast that reaches so far.
    """
    contract, memory = known.contract, known.memory
    issued = _check(known, now_s, grid)
    bounds, tasks = contract.executors, memory.ceiling(contract)
    assert memory.executors is not None
    terms = derive_terms(contract, sustained_rates(contract, memory.model, tasks))
    worth = speed_table(WIDER * bounds.max, bounds.cores, tasks, contract.planning.scaling)
    slot_rps = partial(slot_quantile, memory.model, memory.scatter)
    idle = _margin_share(terms, slot_rps(MOST_LEVEL) * float(worth[min(max(memory.executors, 1), len(worth) - 1)]))
    joint, headroom = issued.errors(grid.looked_at, grid.step_s, contract.planning.quantile)
    own = max(1 - memory.model.overhead_s / contract.batch_s, 0.1) / memory.model.per_record_s
    slot = SlotRate(slot_rps(MOST_LEVEL), min(rate_deviation(memory.scatter), 1.9), own)
    held = contract.planning.static_executors if known.policy == FIXED else bounds.min
    fleet = Fleet(
        worth, min(max(held, 1), bounds.max), bounds.max, lead_times(known), growth=start_growth(known),
        step_up=contract.planning.step_up,
    )  # fmt: skip
    newest = memory.arrivals[-int(SMOOTH_S) :]
    outlook = issued.outlook(now_s, sum(newest) / len(newest), grid.looked_at, grid.step_s)
    climb, running = Climb.admitted(terms.interval_s, slot_rps), min(memory.executors, len(worth) - 1)
    if reading_s is not None and admitted_rps is not None:
        served_rps = float(worth[running]) * slot.rps * (1 - idle)
        reading_s = min(reading_s, climb.reached_s(admitted_rps, served_rps, float(outlook.high[0])))
    stated_rps = None if contract.backpressure is None else contract.backpressure.controls.replay_rps.max
    return Surroundings(
        outlook, joint, LivePromise(idle, headroom), slot, fleet, running, extra_now, others=others,
        most_rps=min((one for one in (bound_rps, stated_rps) if one is not None), default=math.inf),
        slot_most_rps=math.inf if stated_rps is not None else terms.controls.replay_rps.max / float(worth[bounds.max]),
        high_rps=outlook.high if contract.admits_by_forecast else 0.0, climb=climb, reading_s=reading_s,
        published_s=PUBLISHED_S,
    )  # fmt: skip


def _check(known: KnownJob, now_s: float, grid: StepGrid) -> IssuedLoad:
    job, memory = known.contract.job, known.memory
    age_s = math.inf if memory.metric_at is None else now_s - memory.metric_at
    if memory.executors is None or not memory.arrivals or age_s > known.contract.planning.metrics_age_s:
        raise BackfillPlanError(
            f"nothing was heard of job {job!r} lately: its executors and its load are not known. See that it runs with "
            "its agent, or order the replay without --by"
        )
    if known.issued is None:
        raise BackfillPlanError(
            f"there is no forecast of job {job!r} yet, and without one no deadline is planned. Serve forecasts (the "
            "DAG serve_forecasts) and wait for the first, or order the replay without --by"
        )
    ends_s, by_s = known.issued.reaches_s, now_s + grid.steps * grid.step_s
    if by_s > ends_s + 1e-6:
        raise BackfillPlanError(
            f"the newest forecast of job {job!r} reaches {max(ends_s - now_s, 0) / 3600:.4g} h ahead by the wall's "
            f"clock, the deadline is {(by_s - now_s + PUBLISHED_S) / 3600:.4g} h away: give --by up to then, or "
            "forecast further (training.horizon, training.step_s)"
        )
    return known.issued


def _margin_share(terms: Terms, service_rps: float) -> float:
    """The share of what the executors serve that stays free: what the controller leaves for live latency."""
    margins = [queue_margin_rps(service_rps, path.quantile, path.share_s) for path in terms.paths if path.kind == LIVE]
    return min(max(margins, default=0.0) / service_rps, 0.9)
