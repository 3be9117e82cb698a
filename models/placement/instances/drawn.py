"""Placements drawn at random, all of which have room."""

from __future__ import annotations

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Integers
from models.placement.instances.initial import NoRoomError
from models.placement.instances.job import Counts, ParallelJob, free_of

TRIES, MORE = 50, 3


def draw_counts(job: ParallelJob, nodes: Nodes, random: np.random.Generator, more: bool = True) -> Counts:
    """Return (m, n) instances on nodes with room for them, each on a node drawn of those that have.

    Args:
        job: of m operators.
        nodes: n of them.
        random: by which is drawn.
        more: whether the number of each operator's instances is drawn too: of all together from one each to three
            times as many as they have, or all slots, shared out by chance; else each has its own number.

    Raises:
        NoRoomError: none was found.
    """
    for _ in range(TRIES):
        wanted = _draw_numbers(job, nodes, random) if more else job.instances
        counts = np.zeros((job.operators, nodes.count), np.int64)
        owners = random.permutation(np.repeat(np.arange(job.operators), wanted))
        first = {own: at for at, own in reversed(list(enumerate(owners.tolist())))}
        for at in sorted(range(len(owners)), key=lambda at: at != first[int(owners[at])]):  # one of each to begin with
            own = owners[at]
            room = (free_of(job, nodes, counts) >= job.need[own] - 1e-9).all(axis=1)
            able = np.flatnonzero(room & (counts.sum(axis=0) < nodes.slots))
            if len(able):
                counts[own, random.choice(able)] += 1
        if (counts.sum(axis=1) >= (1 if more else job.instances)).all():
            return counts
    raise NoRoomError(f"{job.instances.tolist()} instances: no room for them was found in {TRIES} draws")


def _draw_numbers(job: ParallelJob, nodes: Nodes, random: np.random.Generator) -> Integers:
    """Instances of each operator, one at least."""
    most = max(min(MORE * int(job.instances.sum()), int(nodes.slots.sum())), job.operators)
    extra = int(random.integers(0, most - job.operators + 1))
    return 1 + random.multinomial(extra, random.dirichlet(np.ones(job.operators)))
