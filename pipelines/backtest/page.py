"""A backtest as one HTML file that opens without a network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from pipelines.backtest import text as words
from pipelines.backtest.charts import cost
from pipelines.html.document import NUMBER, PLAIN, document, holder, row, section, table

_TITLES = (
    "policy", "hours at 0.1 %", "at 1 %", "at 5 %", "1 % ÷ optimum", "p99, s", "worst, s", "actions", "knob",
)  # fmt: skip


def render(found: Sequence[dict[str, Any]], path: Path) -> Path:
    """Write the page; `found` are the `figures` of backtests."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html(found), encoding="utf-8")
    return path


def html(found: Sequence[dict[str, Any]]) -> str:
    """The page as text."""
    parts = [
        "<h1>What every policy would have cost</h1>",
        '<p class="about">The load is replayed second by second in a simulated job. Every policy has one knob, which '
        "is swept; a promise kept worse is always cheaper, so costs are compared where the same share of the seconds "
        "has a record that came too late. Executors are paid from the moment they are asked for. Hyper-parameters "
        "come from the part of the trace before the one shown.</p>",
    ]
    for i, data in enumerate(found):
        parts += _trace(i, data)
    title = found[0]["trace"] if len(found) == 1 else f"{len(found)} traces"
    return document(
        f"Tidecast: backtest of {title}", "\n".join(parts), {f"cost-{i}": cost(data) for i, data in enumerate(found)}
    )


def _trace(i: int, data: dict[str, Any]) -> list[str]:
    sections = [
        (
            "Cost against broken promises",
            "Lower left is better; the axis of the hours ends at twice the lowest. Each mark is a knob value, mean "
            "over the seeds; only those that no other one of the same policy beats are shown.",
            holder(f"cost-{i}", 460, "executor-hours against violation, a line per policy"),
        ),
        (
            "Every policy",
            "Executor-hours at equal violation; latency, actions and knob are those of the point nearest to 1 %. A "
            "dash: the promise was never kept that well.",
            _table(data),
        ),
        (
            "What the forecast is worth",
            "Executor-hours of the same planner with no forecast, the last value as one, ours, or what really came.",
            _lines(words.ablation(data)),
        ),
        ("As shipped, and remarks", "", _lines([*words.shipped(data), *words.remarks(data)])),
    ]
    return [
        f"<h2>{escape(data['trace'])}</h2>",
        f'<p class="about">{escape(words.described(data))}.</p>',
        f'<p class="verdict">{escape(words.verdict(data))}</p>',
        *(section(*one) for one in sections if one[-1]),
    ]


def _lines(said: list[str]) -> str:
    return "".join(f"<p>{escape(line)}.</p>" for line in said)


def _table(data: dict[str, Any]) -> str:
    kinds = [PLAIN, *[NUMBER] * (len(_TITLES) - 1)]
    ours = ("forecast", "mpc", "dqn")
    lines = [
        row([escape(cell) for cell in words.cells(name, data)], kinds, 'class="median"' if name in ours else "")
        for name in words.order(data)
    ]
    return table(list(_TITLES), kinds, lines, 'class="wide"')
