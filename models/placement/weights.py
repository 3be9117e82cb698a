"""What operators weigh, from what the node that they share is busy with. Md-Stream paper, eq. 6 to 10.

For nodes of which only the use as a whole is known. Of a running job more is measured: the run time of each query's
tasks tells the core-seconds of a record (`plan.observed`), and plans go by these (`plan.as_measured`), so that no use
of a node has to be shared out there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.placement.graph import Floats

CORES_SHARE = 0.6
"""Of the weight, what is left being memory's (alpha); the paper gives none."""


def shares_of_node(tuples: Sequence[float], busy_s: Sequence[float] | None = None) -> Floats:
    """Return the (v,) share of a node's use that each instance on it has (delta).

    Shares of busy time where that is known of all, else of tuples (eq. 8), by which cheap operators look expensive; 0
    where nothing was worked on.

    Args:
        tuples: that each of v instances transferred.
        busy_s: mean execution time x messages of each, in any unit; NaN where it is not known.
    """
    known = busy_s is not None and bool(np.isfinite(busy_s).all())
    told = np.asarray(busy_s if known else tuples, float)
    total = told.sum()
    return np.asarray(told / total) if total > 0 else np.zeros(len(told))


def weights_on_node(cores: float, memory: float, shares: Floats, cores_share: float = CORES_SHARE) -> Floats:
    """Return the (v,) weight of each instance on a node, in the unit of its use (vr, eq. 6, 7 and 9).

    Args:
        cores: use of the node, as percent.
        memory: likewise.
        shares: (v,) of its use that each instance has.
        cores_share: how much use of cores counts; that of memory counts the rest.
    """
    return np.asarray(cores_share * cores * shares + (1 - cores_share) * memory * shares)
