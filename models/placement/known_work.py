"""What a record of a query takes by the plan that was applied last, and where more is made of it by now, or less."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class KnownWork(NamedTuple):
    """Work with which a query was planned last.

    Attributes:
        record_s: core-seconds of a record that it read then, topics included.
        stretch: work of its operators, as a multiple of what is stated; None: an older release has kept none.
    """

    record_s: float
    stretch: float | None = None

    def now_s(self, said_s: float, own_s: float) -> float:
        """Return the core-seconds of a record that the query reads now, of which its operators may make others.

        Without the stretch it is at least what is stated: less may have been known because less was made of a record.

        Args:
            said_s: core-seconds as stated, topics included.
            own_s: those of them that its operators take.
        """
        return max(self.record_s, said_s) if self.stretch is None else said_s + (self.stretch - 1.0) * own_s


def read_work(told: Mapping[str, Any]) -> dict[str, KnownWork]:
    """Return the work of queries from its JSON: each as `KnownWork`, or core-seconds alone, as of an older release.

    Raises:
        ValueError, TypeError, AttributeError: it is something else.
    """
    found = dict[str, KnownWork]()
    for name, one in told.items():
        record_s, stretch = one if isinstance(one, list) else [one, None]
        if float(record_s) > 0:
            found[name] = KnownWork(float(record_s), None if stretch is None else float(stretch))
    return found
