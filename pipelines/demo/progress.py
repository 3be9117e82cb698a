"""What a run shows on the terminal: numbered stages with their seconds, notes, a bar, and one live line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tidecast.messages import Decision, Forecast, MetricSample
from tidecast.orders import ReplayProgress

BAR = 24  # characters
PLAIN_EVERY_S = 10.0
"""Without a terminal the live line is printed this often instead of being rewritten."""


@dataclass(frozen=True)
class LiveFigures:
    """The newest figures of the managed job, as the live line shows them; None where nothing is known yet.

    Attributes:
        arrival_rps: observed load, records/s.
        ahead_rps: median forecast of the load four steps ahead (of the last step, if there are fewer), records/s.
        executors: registered now.
        target: executors that the newest decision asks for.
        lag_records: records waiting on the topic.
        latency_s: 95 % quantile of the last batch with rows, seconds.
        backfill: share of the records of a backfill that are read again.
        last_change: reason of the last decision that raised or lowered the target.
    """

    arrival_rps: float | None = None
    ahead_rps: float | None = None
    executors: int | None = None
    target: int | None = None
    lag_records: int | None = None
    latency_s: float | None = None
    backfill: float | None = None
    last_change: str = ""

    def updated_by(self, message: MetricSample | Forecast | Decision | ReplayProgress) -> LiveFigures:
        """Return a copy with the figures of one message; the same object for one without, as a batch without rows."""
        match message:
            case MetricSample(kind="batch"):
                return replace(self, latency_s=message.latency_p95_s) if message.batch_rows else self
            case MetricSample(executors=int(now), arrival_rps=arrival, lag_records=lag):
                return replace(self, arrival_rps=arrival, executors=now, lag_records=lag)
            case Forecast(levels=levels, quantiles=quantiles):
                middle = min(range(len(levels)), key=lambda i: abs(levels[i] - 0.5))
                return replace(self, ahead_rps=quantiles[min(3, len(quantiles) - 1)][middle])
            case Decision(executors=target, codes=codes):
                changed = {"up", "down"} & set(codes)
                return replace(self, target=target, last_change=message.reason if changed else self.last_change)
            case ReplayProgress(records=records, done=done):
                return replace(self, backfill=done / max(records, 1))
        return self

    def line(self) -> str:
        """Format the figures as one line; a dash where nothing is known yet."""
        filled = "" if self.backfill is None else f"  backfill {self.backfill:4.0%}"
        return (
            f"arrival {_figure(self.arrival_rps, '4.0f')}/s  ahead {_figure(self.ahead_rps, '4.0f')}/s  "
            f"executors {_figure(self.executors, 'd')}→{_figure(self.target, 'd')}  "
            f"lag {_figure(self.lag_records, '5d')}  latency p95 {_figure(self.latency_s, '4.1f')} s{filled}"
        )


def _figure(value: float | int | None, form: str) -> str:
    return "-".rjust(len(format(0, form))) if value is None else format(value, form)


@dataclass
class Screen:
    """Print numbered stages (`total` of them), notes, and a live line with a bar."""

    total: int = 1
    _done: int = 0
    _drawn: float = -PLAIN_EVERY_S
    _open: bool = False

    @contextmanager
    def stage(self, text: str, last: bool = False) -> Iterator[None]:
        """Context manager: print the next stage's number and text, and its wall seconds when it ends or fails.

        What the block raises is passed on. The stage after number `total` is number 1 again.

        Args:
            text: what is done.
            last: give it the number `total`, even where stages before it were left out.
        """
        start, number = time.monotonic(), self.total if last else self._done + 1
        self._done = number % self.total
        print(f"[{number}/{self.total}] {text} ...", flush=True)
        ended = "failed after"
        try:
            yield
            ended = "done in"
        finally:
            self._end_line()
            print(f"[{number}/{self.total}] {text}: {ended} {time.monotonic() - start:.0f} s", flush=True)

    def note(self, text: str) -> None:
        """Print one indented line within a stage."""
        self._end_line()
        print(f"      {text}", flush=True)

    def live(self, share: float, view: LiveFigures) -> None:
        """Draw the bar and the live line: rewritten on a terminal, else printed at most every 10 s (`PLAIN_EVERY_S`).

        Args:
            share: of the load that has been replayed; below 0 the bar is empty, above 1 full.
            view: the figures.
        """
        done = round(min(max(share, 0.0), 1.0) * BAR)
        text = f"      [{'█' * done}{'·' * (BAR - done)}] {min(share, 1.0):4.0%}  {view.line()}"
        if sys.stdout.isatty():
            print(f"\r\033[K{text}", end="", flush=True)
            self._open = True
        elif time.monotonic() - self._drawn >= PLAIN_EVERY_S:
            self._drawn = time.monotonic()
            print(text, flush=True)

    def _end_line(self) -> None:
        if self._open:
            print(flush=True)
            self._open = False
