"""Figures as people read them."""

from __future__ import annotations


def number(value: float | None, digits: int = 0) -> str:
    """With thousands separators; a dash for None."""
    return "–" if value is None else f"{value:,.{digits}f}"


def share(value: float | None, digits: int = 0) -> str:
    """A share as per cent; a dash for None."""
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def against(value: float, other: float, of: str = "") -> str:
    """How much fewer or more one amount is, as "12 % fewer than"."""
    percent = round(100 * (value - other) / other)
    if percent == 0:
        return f"as many {of}as"
    return f"{abs(percent)} % {'more' if percent > 0 else 'fewer'} {of}than"
