"""How many blocks a job is cut into. Md-Stream paper, eq. 16, and what it should say."""

from __future__ import annotations

import math

UTILISATION = 0.7
"""Share of a grant that is used (mu)."""


def blocks_needed(demand: float, grant: float, slots: int, vertices: int, utilisation: float = UTILISATION) -> int:
    """Return the fewest blocks that fit: demand by slot over what a slot may use, 1 to `vertices`.

    Equation 16 is a number of tasks by slot, and falls where the demand rises; this is the tasks over it, rounded up.

    Args:
        demand: of all operators together, f_r(G), in the unit of the grant.
        grant: most that one node, or one application, is given (r_max).
        slots: of such a node.
        vertices: operators.
        utilisation: share of the grant that is used.
    """
    return min(max(math.ceil(slots * demand / (utilisation * grant) - 1e-9), 1), vertices)


def blocks_by_equation(
    demand: float, grant: float, slots: int, tasks: int, utilisation: float = UTILISATION
) -> tuple[float, int]:  # fmt: skip
    """Return equation 16 as it is printed, and the blocks that are made of it: rounded, at least 1.

    Args:
        demand: of all tasks together, f_r(G).
        grant: of a node (r_max).
        slots: of all nodes.
        tasks: of the job.
        utilisation: share of the grant that is used.
    """
    found = utilisation * grant * tasks / (slots * demand)
    return found, max(1, round(found))
