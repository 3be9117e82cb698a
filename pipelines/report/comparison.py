"""Several runs on one page: every run in a table, medians per policy, and cost against broken promises as dots."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from configs.policies import POLICIES
from pipelines.html.document import NOWRAP, NUMBER, document, holder, row, section, table
from pipelines.html.numbers import number
from pipelines.report import charts
from pipelines.report.headline import Summary

SWEEP = "sweep"
"""`turn` of a run that only chose a setting: it is shown and not counted in the medians."""

_NAMED = {"turn": "turn", "policy": "policy", "target_utilisation": "target", "id": "run"}
_COLUMNS = {
    "over target, s": ("over_target_s", 0), "executor-s": ("executor_s", 0), "p50, s": ("latency_s.p50", 2),
    "p95, s": ("latency_s.p95", 2), "max, s": ("latency_s.max", 1), "stopped, s": ("stopped_s", 0),
    "lost": ("lost", 0), "twice": ("duplicated", 0), "ups": ("scale_ups", 0),
    "by forecast": ("scale_ups_by_forecast", 0), "downs": ("scale_downs", 0), "stood in": ("stood_in", 0),
    "to use, s": ("decision_to_useful_s.p50", 1),
}  # fmt: skip
_FIGURES = [path for path, _ in _COLUMNS.values()]


def render_comparison(runs: list[Summary], path: Path) -> Path:
    """Write an HTML page about several runs to `path`, replacing an older one, and return it; makes folders if need be.

    Args:
        runs: summaries, keys as in `summary.KEYS`, with `turn` (name of the comparison's round, or `SWEEP`) and
            `target_utilisation` (share 0..1) added.
        path: of the file.

    Raises:
        ValueError: there are no runs, or a policy that is not of `POLICIES`.
        KeyError: a summary lacks a figure.
        OSError: the file cannot be written.
    """
    if not runs:
        raise ValueError("no runs to compare; give at least one summary")
    dots = "A dot is a run. Further left is cheaper, further down keeps the latency target better."
    every = "Latency as p50, p95 and max. Sweep runs only chose the target utilisation; the medians leave them out. "
    every += "A decision in which another policy stood in was not made by the one that the run is named for."
    title, drawn = "Tidecast: policies compared", {"frontier": charts.cost_chart(runs)}
    body = "\n".join([
        f"<h1>{title}</h1>",
        f'<p class="verdict">{escape(comparison_sentences(runs))}</p>',
        section("Cost against broken promises", dots, holder("frontier", 420, "seconds over the target against cost")),
        section("Every run", every, _table(runs)),
    ])  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document(title, body, drawn), encoding="utf-8")
    return path


def medians_by_policy(runs: list[Summary]) -> pd.DataFrame:
    """Return the median of every figure over a policy's runs: a row per policy, the last of `POLICIES` first.

    Runs whose `turn` is `SWEEP` are left out, unless there are no others.

    Returns:
        Columns named as in the summaries (`summary.KEYS`), e.g. `over_target_s`, `executor_s`, `latency_s.p50`; NaN
        where no run has the figure; and `runs`, their number.

    Raises:
        KeyError: a summary lacks a figure, or there are no runs.
        ValueError: a policy that is not of `POLICIES`.
    """
    counted = _counted(runs)
    by_policy = counted.groupby("policy")
    median = by_policy[_FIGURES].median().assign(runs=by_policy.size())
    return median.loc[sorted(median.index, key=POLICIES[::-1].index)]


def comparison_sentences(runs: list[Summary]) -> str:
    """Return sentences: each policy's medians, and how often the first had fewer seconds over target than the second.

    The first two are those of `medians_by_policy`, compared in runs of the same turn; `runs` is as in
    `render_comparison`.

    Raises:
        KeyError: a summary lacks a figure, or there are no runs.
        ValueError: a policy that is not of `POLICIES`.
    """
    counted, medians, sentences = _counted(runs), medians_by_policy(runs), []
    for policy, median in medians.iterrows():
        many = "1 run" if median["runs"] == 1 else f"{median['runs']:.0f} runs"
        cost = f"{median['over_target_s']:g} s over the target for {number(median['executor_s'])} executor-seconds"
        sentences.append(f"{policy}: {cost} (median of {many}).")
        decided = counted.loc[counted["policy"] == policy, ["stood_in", "decisions"]].sum()
        if decided["stood_in"]:
            sentences.append(
                f"In {decided['stood_in']:g} of {policy}'s {decided['decisions']:g} decisions another policy stood in."
            )
    if len(medians) > 1:
        first, second = medians.index[:2]
        pairs = pd.merge(*(counted[counted["policy"] == policy] for policy in (first, second)), on="turn")
        fewer = (pairs["over_target_s_x"] < pairs["over_target_s_y"]).sum()
        cheaper = (pairs["executor_s_x"] <= pairs["executor_s_y"]).sum()
        sentences.append(
            f"Of {len(pairs)} pair{'s' * (len(pairs) != 1)}, {first} had fewer seconds over the target than {second} "
            f"in {fewer}, and took no more executor-seconds in {cheaper}."
        )
    return " ".join(sentences)


def _frame(runs: list[Summary]) -> pd.DataFrame:
    return pd.json_normalize(runs).astype(dict.fromkeys(_FIGURES, float))


def _counted(runs: list[Summary]) -> pd.DataFrame:
    frame = _frame(runs)
    counted = frame["turn"] != SWEEP
    return frame[counted] if counted.any() else frame


def _table(runs: list[Summary]) -> str:
    kinds = [NOWRAP] * len(_NAMED) + [NUMBER] * len(_COLUMNS)
    rows = [_row(run, kinds, 'class="hold"' if run["turn"] == SWEEP else "") for run in _frame(runs).to_dict("records")]
    for policy, median in medians_by_policy(runs).iterrows():
        named = {"turn": "", "policy": policy, "target_utilisation": "", "id": f"median of {median['runs']:.0f}"}
        rows.append(_row({**median, **named}, kinds, 'class="median"'))
    return table([*_NAMED.values(), *_COLUMNS], kinds, rows, 'class="wide"')


def _row(run: dict[str, Any], kinds: list[str], mark: str) -> str:
    figures = [number(None if pd.isna(run[path]) else run[path], digits) for path, digits in _COLUMNS.values()]
    return row([*(escape(str(run[name])) for name in _NAMED), *figures], kinds, mark)
