"""The account of a promise: seconds of production that came out late, what is left of the budget, how fast it goes.

A second of the clock is late if a record that was produced in it was committed more than the latency target later. A
batch covers the production between the newest record of the batch before it and its own newest, which the next batch's
oldest tells.
Burn rates over a long and a short window are those of the Site Reliability Workbook, chapter 5: 1 spends the budget
exactly within the window of the promise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from configs.bounds import DAY_S
from configs.contract import Contract

PARTS, FIRST_S = 60, 3600.0
"""Parts of the promise's window, each dropped as a whole; seconds of lateness believed of a job's first batch."""
SET_BACK_S = 60.0
"""Seconds by which a batch is committed before the newest one where the driver's clock was set back."""
LONG, SHORT = 168, 12
"""The long window is 1/168 of the promise's (an hour of a week), the short one 1/12 of the long one (five minutes)."""


@dataclass(frozen=True)
class Promise:
    """What is promised: of the seconds in any `window_days` of job time at most the share `budget` is late.

    Attributes:
        target_s: longest latency of a record that is in time, wall seconds.
        budget: share of seconds that may be late, 0 to 1.
        window_days: days of the job's own time.
    """

    target_s: float
    budget: float
    window_days: float

    @classmethod
    def of(cls, contract: Contract) -> Promise:
        """Return what a contract promises."""
        return cls(contract.latency_target_s, contract.error_budget, contract.window_days)


@dataclass(frozen=True)
class Account:
    """Seconds of production, and how many of them were late.

    Attributes:
        parts: (begin in epoch seconds, seconds, late) of stretches of a 60th of the window that saw any, oldest first.
        long, short: (seconds, late) of production that fade with time, by the lengths of the two windows.
        newest: (committed, oldest) of the newest batch, epoch seconds: its production is counted with the next one.
        counted: epoch second up to which late seconds are counted: one that two batches share counts once.
        unread: (seconds, late) counted since `mark_read`.
    """

    parts: tuple[tuple[float, float, float], ...] = ()
    long: tuple[float, float] = (0.0, 0.0)
    short: tuple[float, float] = (0.0, 0.0)
    newest: tuple[float, float] | None = None
    counted: float = 0.0
    unread: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def from_json_values(cls, kept: dict[str, Any]) -> Account:
        """Rebuild it from what `dataclasses.asdict` made of it and JSON kept.

        Raises:
            KeyError, TypeError, ValueError: they are not such values.
        """
        parts = tuple((float(began), float(seconds), float(late)) for began, seconds, late in kept["parts"])
        (long, lately), newest = (_pair(kept[name]) for name in ("long", "short")), kept["newest"]
        unread = _pair(kept.get("unread", (0.0, 0.0)))  # older states have none
        return cls(parts, long, lately, None if newest is None else _pair(newest), float(kept["counted"]), unread)

    @classmethod
    def resumed(cls, standing: Mapping[str, float | None], promise: Promise, scale: float, at: float) -> Account:
        """Rebuild it from what `standing` reported, for who has not seen the batches before.

        Its seconds are taken as produced without a break until `at`, and as late evenly: right but for when a late
        second leaves the window. Which production is counted up to where (`newest`, `counted`) is not in a standing.

        Args:
            standing: as `standing` returns it.
            promise: to the job's users.
            scale: job seconds per wall second, above 0.
            at: of the newest batch that it counts, epoch seconds.
        """
        window_s = promise.window_days * DAY_S / scale
        seconds, late = standing["seconds"] or 0.0, standing["late_s"] or 0.0
        many = min(math.ceil(seconds / (window_s / PARTS)), PARTS)
        parts = tuple((at - (many - i) * window_s / PARTS, seconds / many, late / many) for i in range(many))
        shares = [(standing[name] or 0.0) * promise.budget for name in ("burn_long", "burn_short")]
        held = [-length_s * math.expm1(-seconds / length_s) for length_s in (window_s / LONG, window_s / LONG / SHORT)]
        return cls(parts, (held[0], held[0] * shares[0]), (held[1], held[1] * shares[1]))

    @property
    def batch_at(self) -> float | None:
        """When the newest batch was committed, epoch seconds: the one from which who resumes it goes on; None: none."""
        return None if self.newest is None else self.newest[0]

    @property
    def seconds(self) -> float:
        """Seconds of production within the window."""
        return sum(seconds for _, seconds, _ in self.parts)

    @property
    def late_s(self) -> float:
        """Those of them that were late."""
        return sum(late for _, _, late in self.parts)

    @property
    def late_since(self) -> float | None:
        """Begin of the oldest part that saw late seconds, epoch seconds: the next ones to leave the window."""
        return next((began for began, _, late in self.parts if late), None)

    def add_batch(self, promise: Promise, committed: float, latency_s: float, scale: float) -> Account:
        """Return the account after a batch was committed.

        Of the first batch, and of the first one after the driver's clock was set back, production is counted with the
        next one's.

        Args:
            promise: to the job's users.
            committed: when, epoch seconds.
            latency_s: of its oldest record, seconds.
            scale: job seconds per wall second, above 0.
        """
        window_s = promise.window_days * DAY_S / scale
        oldest = committed - min(max(latency_s, 0.0), window_s)
        if self.newest is None or committed < self.newest[0] - SET_BACK_S:  # by the clock before, nothing would be new
            oldest = max(oldest, committed - FIRST_S)
            counted = self.counted if self.newest is None else 0.0
            return replace(self, newest=(committed, oldest), counted=counted)
        before, began = self.newest
        ended = min(max(oldest, began), max(before, began))  # what came after the commit is the next batch's
        seconds, late, counted = math.floor(ended) - math.floor(began), 0.0, self.counted
        if (until := min(ended, before - promise.target_s)) > began:
            late = max(math.ceil(until) - max(math.floor(began), counted), 0.0)
            counted = max(counted, math.ceil(until))
        return Account(
            self._parts(committed, window_s, seconds, late),
            _discounted(self.long, seconds, late, window_s / LONG),
            _discounted(self.short, seconds, late, window_s / LONG / SHORT),
            (max(committed, before), max(oldest, ended)), counted,
            (self.unread[0] + seconds, self.unread[1] + late),
        )  # fmt: skip

    def rest(self, promise: Promise, seconds: float, scale: float) -> Account:
        """Return the account after wall seconds in which nothing arrived and nothing waited: what burned fades.

        The promise counts seconds of production alone, so that nothing else changes; arguments as in `add_batch`.
        """
        window_s, seconds = promise.window_days * DAY_S / scale, max(seconds, 0.0)  # a clock that was set back
        kept_long, kept_short = (math.exp(-seconds * many / window_s) for many in (LONG, LONG * SHORT))
        long, short = self.long, self.short
        return replace(
            self, long=(long[0] * kept_long, long[1] * kept_long), short=(short[0] * kept_short, short[1] * kept_short)
        )

    def mark_read(self) -> Account:
        """Return the account with nothing unread."""
        return replace(self, unread=(0.0, 0.0))

    def standing(self, promise: Promise, scale: float) -> dict[str, float | None]:
        """Return how the promise stands, for the log: numbers with four digits.

        Returns:
            "late_s" and "seconds" of production in the window, "budget_left" (share of what may be late in a whole
            window; negative if overspent; None for a budget of 0), "burn_long" and "burn_short" (None without a budget,
            and without a second of production in that window).
        """
        allowed = promise.budget * promise.window_days * DAY_S / scale
        found = {
            "late_s": self.late_s, "seconds": self.seconds,
            "budget_left": 1 - self.late_s / allowed if allowed > 0 else None,
            "burn_long": _burn(self.long, promise.budget), "burn_short": _burn(self.short, promise.budget),
        }  # fmt: skip
        return {name: None if value is None else float(f"{value:.4g}") for name, value in found.items()}

    def burn(self, budget: float) -> tuple[float, float] | None:
        """Return how many times as fast as a budget allows it is spent, over the long and the short window.

        Rounded to four digits; None without a budget, and where a window holds less than a second of production.
        """
        long, short = (_burn(held, budget) for held in (self.long, self.short))
        return None if long is None or short is None else (float(f"{long:.4g}"), float(f"{short:.4g}"))

    def _parts(self, at: float, window_s: float, seconds: float, late: float) -> tuple[tuple[float, float, float], ...]:
        # What lies ahead, by a clock that was set back since, was now: else it would stay until that comes there again.
        kept = [(min(part[0], at), *part[1:]) for part in self.parts if part[0] > at - window_s]
        if kept and at < kept[-1][0] + window_s / PARTS:  # the same part
            at, before, late_before = kept.pop()
            seconds, late = seconds + before, late + late_before
        return (*kept, (at, seconds, late))


def _pair(values: Any) -> tuple[float, float]:
    first, second = values
    return float(first), float(second)


def _discounted(held: tuple[float, float], seconds: float, late: float, window_s: float) -> tuple[float, float]:
    share = math.exp(-seconds / window_s)
    return held[0] * share + seconds, held[1] * share + late


def _burn(held: tuple[float, float], budget: float) -> float | None:
    return held[1] / held[0] / budget if budget > 0 and held[0] >= 1 else None
