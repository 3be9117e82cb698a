"""Waiting in tests: for what is to come, until a deadline that a fault reaches and a slow or busy machine does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")
PATIENCE_S = 120.0


def wait_until(holds: Callable[[], T], what: str, seconds: float = PATIENCE_S, every_s: float = 0.01) -> T:
    """What `holds` gives once that is true of it; after so many seconds the test fails and says what did not come."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > deadline:
            import pytest  # of the processes that tests start many import this, and pytest takes most of their start

            pytest.fail(f"{what}: not within {seconds:g} s")
        time.sleep(every_s)
    assert not isinstance(found, Iterator), f"{what}: an iterator is true even of nothing"
    return found
