"""Another clock for one module of the code under test."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


def clock_with(**other: Callable[..., Any]) -> SimpleNamespace:
    """What a module may have for `time`, with these functions of the test's own: only its name is to be patched.

    Patched on `time` itself, a function would be everybody's: a thread that a test before left sleeping would turn
    the clock of this one.
    """
    return SimpleNamespace(**{**vars(time), **other})
