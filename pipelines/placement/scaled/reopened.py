"""What works beside a job's queries, and may fail without them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

AGAIN_S = 30.0
"""Seconds until what has failed is opened anew."""


class Helper(Protocol):
    """Does a little at a time."""

    def step(self) -> None:
        """Do what there is to do now."""

    def close(self) -> None:
        """Close what it holds."""


class ReopenedHelper:
    """A helper that is opened when it is first needed; where it fails that is said once, and it is opened anew."""

    def __init__(self, what: str, opened: Callable[[], Helper], say: Callable[[str], None]) -> None:
        """Nothing is opened yet.

        Args:
            what: it does, for messages.
            opened: opens it.
            say: called with what a person is told.
        """
        self._what, self._opened, self._say = what, opened, say
        self._helper: Helper | None = None
        self._again_s, self._failure = 0.0, ""

    def step(self) -> None:
        """Let it do what there is to do; whatever it raises ends nothing else."""
        if time.monotonic() < self._again_s:
            return
        try:
            self._helper = self._helper or self._opened()
            self._helper.step()
            if time.monotonic() - self._again_s > AGAIN_S:
                self._failure = ""  # it has worked since
        except Exception as error:
            self.close()
            self._again_s = time.monotonic() + AGAIN_S
            if f"{error}" != self._failure:
                self._failure = f"{error}"
                self._say(f"{self._what}: tried again every {AGAIN_S:.0f} s. {type(error).__name__}: {error}")

    def close(self) -> None:
        """Close it, if it is open."""
        helper, self._helper = self._helper, None
        if helper is not None:
            with suppress(Exception):  # it has failed, or everything ends
                helper.close()
