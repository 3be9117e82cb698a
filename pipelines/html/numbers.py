"""Figures as people read them."""

from __future__ import annotations


def number(value: float | None, digits: int = 0) -> str:
    """Format a number with thousands separators and so many decimals; a dash for None."""
    return "–" if value is None else f"{value:,.{digits}f}"


def share(value: float | None, digits: int = 0) -> str:
    """Format a share, 0 to 1, as per cent; a dash for None."""
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def number_of(value: float | None, one: str, several: str = "") -> str:
    """Return a number and its noun, "1 step" or "2,000 steps"; several have an s more if not given; a dash for None."""
    told = "–" if value is None else f"{value:,.12g}"
    return f"{told} {one if value == 1 else several or f'{one}s'}"


def difference_in_words(value: float, other: float) -> str:
    """Return how much `value` differs from `other` in whole per cent of it, as "12 % fewer than"; "as many as" for 0.

    Raises:
        ZeroDivisionError: `other` is 0.
    """
    percent = round(100 * (value - other) / other)
    if percent == 0:
        return "as many as"
    return f"{abs(percent)} % {'more' if percent > 0 else 'fewer'} than"
