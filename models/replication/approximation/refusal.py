"""Why something cannot be approximated."""

from __future__ import annotations


class ApproximationError(ValueError):
    """A size, a sketch or a bound that cannot be; the message names it, its value and the remedy."""


def refuse_retractions(kind: str, mults: object) -> None:
    """Refuse a change log where a sketch cannot take values out.

    Args:
        kind: of the sketch.
        mults: signs, an array or any iterable of ints.

    Raises:
        ApproximationError: one of them is negative.
    """
    if any(mult < 0 for mult in mults):  # type: ignore[attr-defined]
        raise ApproximationError(
            f"a retraction in a {kind} sketch, which cannot take a value out: sample by value and count exactly, or"
            " take final results without lateness"
        )
