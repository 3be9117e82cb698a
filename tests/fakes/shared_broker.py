"""A real broker that all workers of a test run use: an idle one of each would take a sixtieth of a core."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from configs.sections import Kafka
from configs.settings import load
from pipelines.kafka.topics import create_topics
from pipelines.stack import state
from pipelines.stack.stack import Stack

ASK_S = 0.2


@contextmanager
def shared_broker(var: Path) -> Iterator[Kafka]:
    """The broker of a stack on a `var` folder, with Tidecast's topics.

    Whoever finds none starts one, and ends it when the others no longer use it: their processes end with their tests.
    """
    var.mkdir(parents=True, exist_ok=True)
    # Both locks end with the processes that hold them.
    with var.with_suffix(".gate").open("w") as gate, var.with_suffix(".users").open("w") as users:
        fcntl.flock(gate, fcntl.LOCK_EX)
        if state.running(var) is not None:
            fcntl.flock(users, fcntl.LOCK_SH)
            fcntl.flock(gate, fcntl.LOCK_UN)
            yield state.with_stack_addresses(load(var=var)).kafka
            return
        with Stack(load(var=var), {"broker"}) as stack:
            create_topics(stack.settings.kafka)
            fcntl.flock(gate, fcntl.LOCK_UN)
            yield stack.settings.kafka
            while not _is_mine(gate, users):
                time.sleep(ASK_S)


def _is_mine(gate: IO[str], users: IO[str]) -> bool:
    """Whether nobody else uses it; nobody else can begin to then."""
    fcntl.flock(gate, fcntl.LOCK_EX)
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(gate, fcntl.LOCK_UN)
        return False
    return True
