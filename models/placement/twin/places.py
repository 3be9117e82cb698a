"""Where instances of a job are, and between which nodes its records may be on their way.

Nothing is followed at all other places, and these are many: an operator of a large job touches few nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from models.placement.graph import Integers
from models.placement.instances.job import Counts


class Places(NamedTuple):
    """Lists of lists as arrays: those of one lie together in the second array, from its place in the first one on.

    Numbers in a list rise.

    Attributes:
        first_host, host: nodes with instances of each operator.
        first_guest, guest: operators with instances on each node.
        many: (n,) instances on each node.
        first_stream, stream: streams that each operator sends.
        first_source, source: nodes that records of each stream leave.
        first_target, target: nodes to which they go.
        first_out, out: streams that leave each node.
        first_into, into: streams that come to each node.
    """

    first_host: Integers
    host: Integers
    first_guest: Integers
    guest: Integers
    many: Integers
    first_stream: Integers
    stream: Integers
    first_source: Integers
    source: Integers
    first_target: Integers
    target: Integers
    first_out: Integers
    out: Integers
    first_into: Integers
    into: Integers


def places_of(streams: Any, state: Any, counts: Counts) -> Places:
    """Return the places while instances are where they are now; what was sent before is on its way as it was.

    Args:
        streams: edges of the job.
        state: of the twin.
        counts: (m, n) instances.
    """
    there, under_way = counts > 0, state.sent != 0
    leave = there[streams.tail] | (state.leaving != 0) | under_way.any(axis=2)
    come = there[streams.head] | (state.coming != 0) | under_way.any(axis=1)
    sent_by = np.arange(len(counts))[:, None] == streams.tail
    return Places(
        *_lists(there), *_lists(there.T), counts.sum(axis=0), *_lists(sent_by), *_lists(leave), *_lists(come),
        *_lists(leave.T), *_lists(come.T),
    )  # fmt: skip


def _lists(true: np.ndarray) -> tuple[Integers, Integers]:
    """Where the list of each row begins, and the columns in which it is true."""
    return np.concatenate([[0], np.cumsum(true.sum(axis=1))]), np.ascontiguousarray(np.nonzero(true)[1])
