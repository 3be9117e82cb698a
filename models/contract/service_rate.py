"""The service rate of an operator as a Gamma posterior on its busy time: unified batch-stream runtime paper, section 6.

The paper counts completions over an interval; over wall time that teaches the throughput min(λ, μ), and never the
capacity. So the time is that in which the operator was busy. Dispersion, forgetting and their constants are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scipy.special import gammaincinv

from configs.bounds import Declared, NotNegative, Positive, Whole

PRIOR = 2.0
"""Records that a prior weighs; a change leaves the posterior at least that."""
FORGETTING = 0.95
"""What the past counts after each batch."""
INFLATION = 0.5
"""What the past counts after a change of executors or plan, or a restart."""
FIRST_DISPERSION, FIRST, NEWEST = 30.0, 5, 30
"""Dispersion that is assumed of the first five batches; batches from which it is estimated afterwards."""
LEAST_BUSY_S, MOST_SCATTER = 1e-6, 1e9
"""Busy seconds under which a batch counts as empty; most that one batch counts in the dispersion."""
COLD_BATCHES = 2
"""Batches after a scale-up that teach nothing, because new JVMs are slow."""
MOST_EXECUTORS = 1e6
CERTAIN = 0.05
"""Level of the quantile that is planned with."""


@dataclass(frozen=True)
class ServiceRate(Declared):
    """μ ~ Gamma(shape, rate), records per busy second (of an executor, where the seconds are executor-seconds).

    Attributes:
        shape, rate: a and b; completed records and busy seconds that the posterior is worth.
        scatter: (c − μB)²/(μB) of the newest batches, at most 30.
        cold: batches to come that teach nothing.
    """

    shape: Positive
    rate: Positive
    scatter: tuple[NotNegative, ...] = ()
    cold: Whole = 0

    @classmethod
    def prior(cls, rps: float) -> ServiceRate:
        """Start from a calibrated rate, records/s.

        Raises:
            ValueError: the rate is not above 0 and finite.
        """
        if not 0 < rps < math.inf:
            raise ValueError(f"prior_rps={rps}: a rate above 0 is expected. Measure one in a calibration run")
        return cls(PRIOR, PRIOR / rps)

    @property
    def mean(self) -> float:
        """Mean of the posterior, records/s."""
        return self.shape / self.rate

    @property
    def deviation(self) -> float:
        """Standard deviation of the posterior, records/s."""
        return math.sqrt(self.shape) / self.rate

    def quantile(self, level: float) -> float:
        """Return a quantile of the posterior, records/s; level in (0, 1)."""
        return float(gammaincinv(self.shape, level)) / self.rate

    def updated(
        self, completed: float, busy_s: float, dispersion: float = 1.0, forgetting: float = FORGETTING
    ) -> ServiceRate:
        """Return the posterior after records were completed: a ← φa + c/D, b ← φb + B/D.

        A batch (Gamma-Poisson) and single service times (Gamma-Exponential) teach the same.

        Args:
            completed: c, records.
            busy_s: B, seconds in which the operator worked on them; never those in which it waited.
            dispersion: D, by how much counts scatter more than Poisson's, at least 1.
            forgetting: φ, in (0, 1].
        """
        shape, rate = forgetting * self.shape + completed / dispersion, forgetting * self.rate + busy_s / dispersion
        return replace(self, shape=shape, rate=rate)

    def observed(self, completed: float, busy_s: float) -> ServiceRate:
        """Return the posterior after a batch, its dispersion learned from the newest ones.

        An empty batch teaches nothing; nor does a cold one.

        Args:
            completed: records, at least 0.
            busy_s: seconds of work, without the batch's fixed part.
        """
        if not (completed >= 1 and busy_s >= LEAST_BUSY_S):
            return self
        if self.cold:
            return replace(self, cold=self.cold - 1)
        expected = self.mean * busy_s
        scatter = (*self.scatter, min((completed - expected) ** 2 / expected, MOST_SCATTER))[-NEWEST:]
        return replace(self.updated(completed, busy_s, dispersion(scatter)), scatter=scatter)

    def changed(self, grown: bool = False) -> ServiceRate:
        """Return the posterior after a change of executors or plan, or a restart; `grown`: executors were added."""
        kept = max(INFLATION, min(PRIOR / self.shape, 1.0))
        return replace(self, shape=kept * self.shape, rate=kept * self.rate, cold=COLD_BATCHES if grown else self.cold)


def dispersion(scatter: tuple[float, ...]) -> float:
    """Return by how much counts scatter more than Poisson's: Σ (c − μB)²/(μB) over n − 1, at least 1.

    Of the first five batches 30 is assumed.
    """
    return max(math.fsum(scatter) / (len(scatter) - 1), 1.0) if len(scatter) > FIRST else FIRST_DISPERSION


def capacity(executors: int, rps: float, contention: float = 0.0) -> float:
    """Return what executors serve together, n·μ/(1 + κ(n − 1)), records/s.

    Args:
        executors: n, at least 0.
        rps: μ of one, records/s.
        contention: κ, 0 where twice the executors do twice the work.
    """
    return executors * rps / (1 + contention * (executors - 1)) if executors else 0.0


def executors_for(needed_rps: float, rps: float, contention: float = 0.0) -> int | None:
    """Return the fewest executors, at least 1, whose `capacity` reaches a rate; None where not even a million do."""
    gain = rps - contention * needed_rps
    count = needed_rps * (1 - contention) / gain if gain > 0 else math.inf
    return max(math.ceil(count - 1e-9), 1) if count <= MOST_EXECUTORS else None
