"""Two arms of raises side by side: quantiles of each phase, ratios with their intervals, predictions; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipelines.bench.raises.phases import PHASES, judge_predictions, measure_phases

OURS, STOCK = ARMS = ("ours", "stock")
"""As the product starts executors; without class archive and fork server."""
SUMS = ("registered", "useful")
DRAWS, SEED = 2000, 5


def summarise_sessions(sessions: Sequence[dict[str, Any]], prior_s: float) -> dict[str, Any]:
    """Summarise the raises of both arms.

    Args:
        sessions: in the order in which they were run; `arm`, `commit`, `busy_before` (share of the cores) and `raises`,
            as `recorded.match_raises` finds them, of each.
        prior_s: the contract's lead time, seconds, with which the predictions begin.

    Returns:
        `raises` and `given_up`, numbers by arm; for `registered` and `useful` by arm the quantiles `p50` and `p95` in
        seconds, and `ratio`, ours ÷ stock, of both, each with the ends of its 95 % bootstrap interval (`p50_low`, ...);
        `phases`, a table; `predicted`, by arm (`judge_predictions`); `busy_before`, mean share; `sessions`; `commits`.
    """
    raises = {arm: [one for each in sessions if each["arm"] == arm for one in each["raises"]] for arm in ARMS}
    found = {arm: [phases for one in known if (phases := measure_phases(one))] for arm, known in raises.items()}
    data: dict[str, Any] = {
        "raises": {arm: len(found[arm]) for arm in ARMS},
        "given_up": {arm: len(raises[arm]) - len(found[arm]) for arm in ARMS},
        **{name: _compare(*([one[name] for one in found[arm] if name in one] for arm in ARMS)) for name in SUMS},
        "phases": [_row(name, found) for name in PHASES],
        "predicted": {arm: judge_predictions([one["outcome"] for one in raises[arm]], prior_s) for arm in ARMS},
        "busy_before": float(np.mean([one["busy_before"] for one in sessions])) if sessions else None,
        "sessions": [{**one, "raises": len(one["raises"])} for one in sessions],
        "commits": sorted({one["commit"] or "unknown" for one in sessions}),
    }  # fmt: skip
    return data


def _row(name: str, found: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    row: dict[str, Any] = {"phase": PHASES[name]}
    for arm in ARMS:
        seconds = [one[name] for one in found[arm] if name in one]
        row |= {f"{arm}, {level} s": value for level, value in _quantiles(seconds).items()}
    return row


def _compare(ours: list[float], stock: list[float]) -> dict[str, Any]:
    """Quantiles of both, and their ratios with intervals."""
    ratio: dict[str, float] = {}
    if ours and stock:
        draw = np.random.default_rng(SEED)
        drawn = [draw.choice(seconds, (DRAWS, len(seconds))) for seconds in (ours, stock)]
        for level, share in (("p50", 0.5), ("p95", 0.95)):
            each = np.quantile(drawn[0], share, axis=1) / np.quantile(drawn[1], share, axis=1)
            low, high = np.quantile(each, [0.025, 0.975]).tolist()
            ratio |= {
                level: float(np.quantile(ours, share) / np.quantile(stock, share)),
                f"{level}_low": low,
                f"{level}_high": high,
            }
    return {OURS: _quantiles(ours), STOCK: _quantiles(stock), "ratio": ratio}


def _quantiles(seconds: list[float]) -> dict[str, float | None]:
    if not seconds:
        return {"p50": None, "p95": None}
    p50, p95 = np.quantile(seconds, [0.5, 0.95]).round(3).tolist()
    return {"p50": p50, "p95": p95}
