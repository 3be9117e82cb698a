"""Why a workload cannot be drawn."""

from __future__ import annotations


class WorkloadError(ValueError):
    """A shape that no workload has; the message names the field, its value and what would be right."""


def refuse_unless(right: bool, given: str, expected: str) -> None:
    """Refuse what is not right.

    Raises:
        WorkloadError: it is not.
    """
    if not right:
        raise WorkloadError(f"{given}: {expected} expected")
