"""Lengths of time, in seconds."""

from __future__ import annotations

HOUR_S = 3600.0
DAY_S = 86_400.0
WEEK_S = 7 * DAY_S
