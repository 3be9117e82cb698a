"""Quantiles of latency, and how many times that of live records alone they are, with its bootstrap interval; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.99
BLOCK_S = 30
"""Seconds that are drawn together: the latencies of neighbouring seconds depend on each other."""
DRAWS, SEED = 2000, 15
PER_S = 100
"""Latencies are kept as whole hundredths of a second."""
NEVER = 60_000
"""Of a record that was not committed while it was looked for: ten minutes."""

Seconds = Sequence[Sequence[int]]
"""Latencies, hundredths of a second, by the second of production."""


def latency_quantile(sessions: Sequence[Seconds], level: float = LEVEL) -> float | None:
    """Return a quantile of all records' latency in seconds, the higher of two neighbours; None without records."""
    found = [one for session in sessions for second in session for one in second]
    return float(np.quantile(found, level, method="higher")) / PER_S if found else None


def latency_ratio(ours: Sequence[Seconds], alone: Sequence[Seconds]) -> dict[str, Any]:
    """Return a quantile of both sides and their ratio, with its 95 % interval by blocks of BLOCK_S drawn again.

    Args:
        ours: sessions with a replay.
        alone: sessions without one.

    Returns:
        `ours_s`, `alone_s`, `ratio`, `low`, `high`, and `n`, records of the smaller side; None where a side has none.
    """
    ours_s, alone_s = latency_quantile(ours), latency_quantile(alone)
    n = min(sum(len(second) for session in side for second in session) for side in (ours, alone))
    if not ours_s or not alone_s:
        return {"ours_s": ours_s, "alone_s": alone_s, "ratio": None, "low": None, "high": None, "n": n}
    random = np.random.default_rng(SEED)
    drawn = _drawn_quantiles(_blocks(ours), LEVEL, random) / _drawn_quantiles(_blocks(alone), LEVEL, random)
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    return {"ours_s": ours_s, "alone_s": alone_s, "ratio": ours_s / alone_s, "low": low, "high": high, "n": n}


def _blocks(sessions: Sequence[Seconds]) -> list[list[int]]:
    """The latencies of every BLOCK_S seconds; the last block of a session may be shorter."""
    blocks = [
        [one for second in session[at : at + BLOCK_S] for one in second]
        for session in sessions
        for at in range(0, len(session), BLOCK_S)
    ]
    return [block for block in blocks if block]


def _drawn_quantiles(blocks: list[list[int]], level: float, random: np.random.Generator) -> NDArray[np.float64]:
    """(DRAWS,) quantiles of as many blocks as there are, drawn with repetition."""
    values = np.unique(np.concatenate(blocks))
    counts = np.stack([np.bincount(np.searchsorted(values, block), minlength=len(values)) for block in blocks])
    times = random.multinomial(len(blocks), np.full(len(blocks), 1 / len(blocks)), size=DRAWS)
    below = np.cumsum(times @ counts, axis=1)
    place = np.ceil(level * (below[:, -1:] - 1))  # the higher neighbour, as `latency_quantile`
    return np.asarray(values[(below <= place).sum(axis=1)] / PER_S, np.float64)
