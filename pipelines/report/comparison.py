"""Several runs on one page: every run in a table, medians per policy, and cost against broken promises as dots."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from configs.policies import POLICIES
from pipelines.html.document import NOWRAP, NUMBER, document, holder, row, section, table
from pipelines.html.numbers import number, number_of
from pipelines.report import charts
from pipelines.report.headline import Summary

_NAMED = {"turn": "turn", "contestant": "policy", "id": "run"}
_COLUMNS = {
    "late, share": ("promise.late_share", 3), "late, s": ("over_target_s", 0),
    "budget spent when announced": ("promise.announced", 2),
    "executor-s": ("executor_s", 0), "p50, s": ("latency_s.p50", 2),
    "p95, s": ("latency_s.p95", 2), "max, s": ("latency_s.max", 1), "stopped, s": ("stopped_s", 0),
    "lost": ("lost", 0), "twice": ("duplicated", 0), "ups": ("scale_ups", 0),
    "by forecast": ("scale_ups_by_forecast", 0), "downs": ("scale_downs", 0), "stood in": ("stood_in", 0),
    "to use, s": ("decision_to_useful_s.p50", 1),
}  # fmt: skip
EARLY = 0.5
"""Share of the error budget before which a promise that is going to be broken is to be announced."""
_FIGURES = [path for path, _ in _COLUMNS.values()]


def render_comparison(runs: list[Summary], path: Path) -> Path:
    """Write an HTML page about several runs to `path`, replacing an older one, and return it; makes folders if need be.

    Args:
        runs: summaries, keys as in `summary.KEYS`, with `turn` (number) and `contestant` added (the policy, for fixed
            numbers of executors with the number, as `static:4`).
        path: of the file.

    Raises:
        ValueError: there are no runs, or a policy that is not of `POLICIES`.
        KeyError: a summary lacks a figure.
        OSError: the file cannot be written.
    """
    if not runs:
        raise ValueError("no runs to compare; give at least one summary")
    dots = "A dot is a run. Further left is cheaper, further down keeps the latency target better."
    every = "Latency as p50, p95 and max. "
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


def medians_by_contestant(runs: list[Summary]) -> pd.DataFrame:
    """Return the median of every figure over a contestant's runs: a row each, the last of `POLICIES` first.

    Returns:
        Columns named as in the summaries (`summary.KEYS`), e.g. `over_target_s`, `executor_s`, `latency_s.p50`, NaN
        where no run has the figure; `late_share`; `kept`, the number of runs that kept the promise; `runs`, their
        number; `kept_share`; and `assured_share`, of the runs that kept it or announced, before `EARLY` of the budget
        was spent, that they would not.

    Raises:
        KeyError: a summary lacks a figure, or there are no runs.
        ValueError: a policy that is not of `POLICIES`.
    """
    frame = _frame(runs)
    each = frame.groupby("contestant")
    assured = frame["promise.kept"] | (frame["promise.announced"] < EARLY)
    median = each[_FIGURES].median().assign(runs=each.size(), kept=each["promise.kept"].sum())
    median["assured_share"] = assured.groupby(frame["contestant"]).mean()
    median["late_share"], median["kept_share"] = median["promise.late_share"], median["kept"] / median["runs"]
    return median.loc[sorted(median.index, key=lambda name: (-POLICIES.index(name.split(":")[0]), name))]


def comparison_sentences(runs: list[Summary]) -> str:
    """Return sentences: each contestant's medians, and how the first did beside each of the others in the same turns.

    The first is that of `medians_by_contestant`; `runs` is as in `render_comparison`.

    Raises:
        KeyError: a summary lacks a figure, or there are no runs.
        ValueError: a policy that is not of `POLICIES`.
    """
    frame, medians, sentences = _frame(runs), medians_by_contestant(runs), []
    for name, median in medians.iterrows():
        late = f"late in {median['late_share']:.1%} of the seconds, {number(median['executor_s'])} executor-seconds"
        sentences.append(
            f"{name}: promise kept in {median['kept']:.0f} of {number_of(median['runs'], 'run')}; {late} (medians)."
        )
        if median["assured_share"] > median["kept_share"]:
            early = round((median["assured_share"] - median["kept_share"]) * median["runs"])
            sentences.append(f"In {early} the danger was announced before {EARLY:.0%} of the budget was spent.")
        decided = frame.loc[frame["contestant"] == name, ["stood_in", "decisions"]].sum()
        if decided["stood_in"]:
            sentences.append(
                f"In {decided['stood_in']:g} of {name}'s {decided['decisions']:g} decisions another policy stood in."
            )
    for other in medians.index[1:]:
        first = medians.index[0]
        both = pd.merge(*(frame[frame["contestant"] == name] for name in (first, other)), on="turn")
        if len(both):
            ratio = number((both["executor_s_x"] / both["executor_s_y"]).median(), 3)
            sentences.append(f"{first} took {ratio} x the executor-seconds of {other} (median of {len(both)} turns).")
    return " ".join(sentences)


def _frame(runs: list[Summary]) -> pd.DataFrame:
    return pd.json_normalize(runs).astype(dict.fromkeys(_FIGURES, float))


def _table(runs: list[Summary]) -> str:
    kinds = [NOWRAP] * len(_NAMED) + [NUMBER] * len(_COLUMNS)
    rows = [_row(run, kinds, "") for run in _frame(runs).to_dict("records")]
    for name, median in medians_by_contestant(runs).iterrows():
        named = {"turn": "", "contestant": name, "id": f"median of {median['runs']:.0f}"}
        rows.append(_row({**median, **named}, kinds, 'class="median"'))
    return table([*_NAMED.values(), *_COLUMNS], kinds, rows, 'class="wide"')


def _row(run: dict[str, Any], kinds: list[str], mark: str) -> str:
    figures = [number(None if pd.isna(run[path]) else run[path], digits) for path, digits in _COLUMNS.values()]
    return row([*(escape(str(run[name])) for name in _NAMED), *figures], kinds, mark)
