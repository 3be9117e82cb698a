"""How fast Python runs: `python -m pipelines.demo.timed_loop SECONDS` prints what each round of a loop took, in s."""

from __future__ import annotations

import json
import sys
import time

STEPS = 500_000
"""Of a round: a sixtieth of a second on a usual computer."""


def time_rounds(seconds: float) -> list[float]:
    """Return the seconds that each round of STEPS took, of as many as begin within `seconds`; one at least."""
    until_s, rounds = time.perf_counter() + seconds, [_round_s()]
    while time.perf_counter() < until_s:
        rounds.append(_round_s())
    return rounds


def _round_s() -> float:
    began, total = time.perf_counter(), 0
    for step in range(STEPS):
        total += step * step
    return time.perf_counter() - began


if __name__ == "__main__":
    print(json.dumps(time_rounds(float(sys.argv[1]))))
