"""Checkpoint intervals under a contract: unified batch-stream runtime paper, checkpoints and recovery.

The interval that loses least is Young's, √(2·C·MTBF) ("A first order approximation to the optimum checkpoint interval",
CACM 17 (1974)).
"""

from __future__ import annotations

import math

from configs.limits import RecoveryTerms


def youngs_interval(cost_s: float, mtbf_s: float) -> float:
    """Return √(2·C·MTBF), seconds: the interval of checkpoints that loses least.

    Args:
        cost_s: C, seconds of a checkpoint, at least 0.
        mtbf_s: mean time between failures, seconds, above 0.
    """
    return math.sqrt(2 * cost_s * mtbf_s)


def checkpoint_interval(cost_s: float, mtbf_s: float, terms: RecoveryTerms) -> float:
    """Return Young's interval, clipped to what may be lost and to the overhead; of the two, what may be lost is kept.

    Args:
        cost_s: C, seconds of a checkpoint, at least 0.
        mtbf_s: mean time between failures, seconds, above 0.
        terms: of recovery.
    """
    return min(max(youngs_interval(cost_s, mtbf_s), cost_s / terms.overhead_max), terms.rpo_s)
