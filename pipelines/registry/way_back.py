"""Which version a rollback goes back to, by the tags that say what has served and what a person took back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion

ROLLED_BACK = "rolled_back"
"""Tag of a version that a person took back, until a person promotes it: the version that served in its stead."""
SERVED, MEASURED = "served", "live.n"
"""Tags of a version that has been champion: since when, the last time, ISO 8601; and, of each release, how many of the
forecasts that it served were measured."""


def served_last(versions: Sequence[ModelVersion], present: str) -> str | None:
    """Return the version that was let serve last beside the present one and was not taken back; None without one.

    Args:
        versions: of one model, in any order.
        present: the one that serves.
    """
    served = [one for one in _served_besides(versions, present) if ROLLED_BACK not in one.tags]
    newest = max(served, key=lambda one: (one.tags.get(SERVED, ""), int(one.version)), default=None)
    return None if newest is None else str(newest.version)


def served_before(versions: Sequence[ModelVersion], present: str, previous: str | None) -> str | None:
    """Return the version to go back to, one that served before the present one and was not taken back; None without.

    It is that of the alias `previous`, unless a person has moved the alias `champion` in MLflow since that was set:
    then a version that serves no more has the newest tag `served`, and it is that one.

    Args:
        versions: of one model, in any order.
        present: the one that serves; "" where none does.
        previous: that of the alias; None where it does not count.
    """
    tags = {str(one.version): one.tags for one in versions}
    if previous is not None and ROLLED_BACK in tags.get(previous, {}):
        previous = None
    last = served_last(versions, present)
    by_hand = last is not None and tags[last].get(SERVED, "") > tags.get(present, {}).get(SERVED, "")
    return last if previous is None or by_hand else previous


def taken_back_before(versions: Sequence[ModelVersion], present: str) -> list[str]:
    """Return the versions that served beside the present one until they were taken back, in the order given."""
    return [str(one.version) for one in _served_besides(versions, present) if ROLLED_BACK in one.tags]


def _served_besides(versions: Sequence[ModelVersion], present: str) -> Iterator[ModelVersion]:
    for one in versions:
        if str(one.version) != present and not {SERVED, MEASURED}.isdisjoint(one.tags):
            yield one
