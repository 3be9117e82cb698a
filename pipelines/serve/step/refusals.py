"""Which refused records of `metrics` are worth a reject: one host with a wrong clock sends two of them a second."""

from __future__ import annotations

import re
from collections.abc import Mapping

TOLD_S = 60.0
"""Wall seconds for which no more is said of a kind: else one sender fills `rejects`, and hides what others sent."""


class Refusals:
    """What was told lately of refused records, by whose they were and for what kind of reason.

    Attributes:
        told: wall time (epoch s) at which each was told, the oldest first.
    """

    def __init__(self, told: Mapping[str, float] | None = None) -> None:
        self.told = dict(told or {})

    def is_news(self, whose: str, reason: object, now: float) -> bool:
        """Return whether to tell of a refused record: none of its kind was told within TOLD_S (60 s); notes that it is.

        Args:
            whose: key of the record.
            reason: in the words of who refused it; reasons that differ in values alone are of a kind.
            now: wall time, epoch seconds; one that was set back since counts as later.
        """
        while self.told and not 0 <= now - next(iter(self.told.values())) < TOLD_S:
            del self.told[next(iter(self.told))]
        kind = f"{whose}: {_kind(str(reason))}"
        if kind in self.told:
            return False
        self.told[kind] = now
        return True


def _kind(reason: str) -> str:
    """The field that a reason begins with and the demand that it ends with, without the value between them."""
    return re.sub(r"\d+", "", f"{re.split('[=:]', reason, maxsplit=1)[0]}: {reason.rpartition(': ')[2]}")
