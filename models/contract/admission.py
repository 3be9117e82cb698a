"""How fast a replay may run beside live records: unified batch-stream runtime paper, eq. 3.4.

λ_replay = max(0, μ_bottleneck − λ_live − margin), taken over all operators that both pass. The margin follows from the
latency limit (eq. 3.3): with the rule active the slack of the slowest operator equals it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from models.contract.signals import SharedPlan
from models.contract.terms import ControlBox, Terms

LEAST_MARGIN = 0.05
"""Share of a service rate that is always left free, where the M/M/1 formulas end."""


class OperatorRoom(NamedTuple):
    """What an operator can take.

    Attributes:
        service_rps: rate that it certainly serves, such as a low quantile of what was learned, records/s.
        live_ratio: records that reach it per live record of the source, at least 0.
        replay_ratio: the same per replayed record; 0: the replay does not pass it.
        margin_rps: rate that must stay free, records/s.
    """

    service_rps: float
    live_ratio: float
    replay_ratio: float
    margin_rps: float

    def spare_rps(self, live_rps: float) -> float:
        """Return the replayed source records/s that leave the margin free; negative where live records alone do not.

        Raises:
            ZeroDivisionError: the replay does not pass the operator.
        """
        return (self.service_rps - self.live_ratio * live_rps - self.margin_rps) / self.replay_ratio


class Margin(NamedTuple):
    """What must stay free of an operator's service rate: at least a share of it, and at least a rate, records/s."""

    share: float
    rps: float

    def of(self, service_rps: float) -> float:
        """Return the records/s that must stay free of a service rate."""
        return max(self.share * service_rps, self.rps)

    def service_rps(self, used_rps: float) -> float:
        """Return the least service rate that leaves the margin beside a used one; infinite where none does."""
        return max(used_rps / (1 - self.share), used_rps + self.rps) if self.share < 1 else math.inf


class ServedRates(NamedTuple):
    """What executors certainly serve within every limit, records/s: live ones, and replayed ones beside them."""

    live_rps: float
    replay_rps: float


def queue_margin_rps(service_rps: float, level: float, share_s: float) -> float:
    """Return the least slack μ − λ of an M/M/1 operator that keeps a latency quantile.

    It is max(0.05·μ, −ln(1 − q)/L), from L_q = −ln(1 − q)/(μ − λ).

    Args:
        service_rps: μ, records/s.
        level: q, in (0, 1).
        share_s: L, the operator's part of its path's limit, seconds, above 0.
    """
    return max(LEAST_MARGIN * service_rps, -math.log(1 - level) / share_s)


def batch_margin_rps(service_rps: float, level: float, share_s: float, overhead_s: float, trigger_s: float) -> float:
    """Return the least slack of a query in micro-batches that keeps a latency quantile: μ·(1 − (T_max − b0)/I).

    A batch may take T_max = min(I, L − q·I); above μ where not even an empty one keeps the limit.

    Args:
        service_rps: μ, records/s.
        level: q, in (0, 1).
        share_s: L, the query's part of its path's limit, seconds.
        overhead_s: b0, fixed seconds of a batch.
        trigger_s: I, seconds from trigger to trigger, above 0.
    """
    return service_rps * (1 - (min(trigger_s, share_s - level * trigger_s) - overhead_s) / trigger_s)


def operator_margin(terms: Terms, plan: SharedPlan, name: str) -> Margin:
    """Return the margin that the strictest of an operator's paths asks for.

    Args:
        terms: with the paths' limits.
        plan: whether the query runs in micro-batches, and how.
        name: of the operator.
    """
    shares, rates = [LEAST_MARGIN], [0.0]
    for path in terms.paths:
        if name in path.ops and plan.trigger_s is None:
            rates.append(queue_margin_rps(0.0, path.quantile, path.share_s))
        elif name in path.ops and plan.trigger_s is not None:
            shares.append(batch_margin_rps(1.0, path.quantile, path.share_s, plan.overhead_s, plan.trigger_s))
    return Margin(max(shares), max(rates))


def find_bottleneck(operators: Sequence[OperatorRoom], live_rps: float) -> OperatorRoom | None:
    """Return the operator that leaves the replay the least; None where the replay passes none of them.

    Args:
        operators: on the way of the live records or the replay, at least one.
        live_rps: the most live source records/s to expect.

    Raises:
        ValueError: no operators.
    """
    if not operators:
        raise ValueError("operators=(): a replay without a bottleneck has no rate. Name those that it shares")
    passed = [one for one in operators if one.replay_ratio > 0]
    return min(passed, key=lambda one: one.spare_rps(live_rps), default=None)


def replay_rate(operators: Sequence[OperatorRoom], live_rps: float) -> float:
    """Return λ_replay, the rate of replayed source records that leaves every operator its margin.

    Args:
        operators: on the way of the live records or the replay, at least one.
        live_rps: the most live source records/s to expect.

    Returns:
        Records/s, at least 0; infinite where the replay passes none of the operators.

    Raises:
        ValueError: no operators.
    """
    slowest = find_bottleneck(operators, live_rps)
    return math.inf if slowest is None else max(slowest.spare_rps(live_rps), 0.0)


def live_rate(operators: Sequence[OperatorRoom]) -> float:
    """Return the most live source records/s that leave every operator its margin: at least 0, infinite at none.

    Args:
        operators: on the way of the live records.
    """
    most = ((one.service_rps - one.margin_rps) / one.live_ratio for one in operators if one.live_ratio > 0)
    return max(min(most, default=math.inf), 0.0)


def applied_rate(limits: Sequence[float], backlog: float, interval_s: float, before: float, box: ControlBox) -> float:
    """Return the replay rate of the next interval: the least of all limits; it falls at once, and rises in steps.

    Args:
        limits: λ_replay and what else bounds the rate, records/s, at least one.
        backlog: records of the replay that wait.
        interval_s: seconds until the next decision, above 0.
        before: rate of this interval, records/s.
        box: of the rate; its minimum yields to the limits.

    Returns:
        Records/s, at least 0 and at most each limit.
    """
    risen = min(before + box.slew * box.max, box.max)
    return max(min(*limits, backlog / interval_s, risen), 0.0)
