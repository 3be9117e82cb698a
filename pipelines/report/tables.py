"""The report's tables as HTML: decisions, forecast errors, the challenger, and what the run was."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import Any

import pandas as pd

from pipelines.html.document import NOWRAP, NUMBER, PLAIN, below, row, table
from pipelines.html.numbers import number, share
from pipelines.report import headline
from pipelines.report.accuracy import level_in_words
from pipelines.report.measures import RunMeasures
from pipelines.report.recorded.run import RecordedRun
from pipelines.report.summary import KEYS
from pipelines.report.time_axis import trace_moments

_DECISION = [NOWRAP, NOWRAP, PLAIN, NOWRAP, PLAIN]
_SIGNS = {"up": "▲", "down": "▼", "hold": "●"}
_ERROR = [PLAIN, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER]


def decisions_table(measured: RunMeasures) -> str:
    """Return an HTML table of the decisions, with a search field; holds are hidden, equal ones in a row joined.

    Raises:
        KeyError: a decision or outcome lacks a field.
        ZoneInfoNotFoundError: the trace's time zone is unknown here.
    """
    rows = []
    for (held, _), group in groupby(measured.acts.to_dict("records"), key=_kind):
        group_of_acts = list(group)
        rows += [_holds(measured.run, group_of_acts)] if held else [_change(measured.run, act) for act in group_of_acts]
    controls = (
        '<div class="controls"><button type="button" id="holds" aria-pressed="false">show holds</button>'
        '<input type="search" id="search" placeholder="find in decisions" aria-label="find in decisions"></div>'
    )
    titles = ["at", "decision", "why", "expected", "what it did"]
    return controls + table(titles, _DECISION, rows, 'id="decisions"')


def _kind(act: dict[str, Any]) -> tuple[bool, Any]:
    held = not isinstance(act["status"], str) and not {"up", "down"} & set(act["codes"])
    return held, tuple(act["codes"]) if held else act["id"]


def _when(run: RecordedRun, wall: float) -> str:
    second = wall - run.start
    return f"{second:.1f} s{below(f'{trace_moments(run, [second])[0]:%a %H:%M}')}"


def _holds(run: RecordedRun, acts: list[dict[str, Any]]) -> str:
    first, last = acts[0], acts[-1]
    count, until = sum(act["evaluations"] for act in acts), below(f"to {last['until'] - run.start:.1f} s")
    what = "hold" if count == 1 else f"hold × {count}{until}"
    cells = [_when(run, first["wall_time"]), what, _why(last), "", ""]
    return row(cells, _DECISION, 'class="hold" hidden')


def _change(run: RecordedRun, act: dict[str, Any]) -> str:
    way = next((code for code in act["codes"] if code in ("up", "down")), "hold")
    before = "" if pd.isna(act["executors_before"]) else f"{act['executors_before']:.0f} "
    what = f"{_SIGNS[way]} {before}→ {act['executors']}" + below(f"{way} by forecast" if act["by_forecast"] else way)
    cells = [_when(run, act["wall_time"]), what, _why(act), _expected(act["expected"]), _did(act)]
    return row(cells, _DECISION, 'class="change"')


def _why(act: dict[str, Any]) -> str:
    chips = "".join(f'<span class="chip">{escape(code.replace("_", " "))}</span>' for code in act["codes"][1:])
    return f"{escape(act['reason'])}<div>{chips}</div>"


def _expected(expected: dict[str, Any]) -> str:
    texts = []
    if (capacity := expected.get("capacity_rps")) is not None:
        texts.append(f"{capacity:,.0f} records/s")
    if (used := expected.get("utilisation")) is not None:
        texts.append(share(used) + " used")
    return "<br>".join(texts)


def _did(act: dict[str, Any]) -> str:
    status = act["status"]
    if not isinstance(status, str):
        return below("no outcome was published")
    colour, sign = ("good", "✓") if status == "confirmed" else ("bad", "✗")
    texts = []
    if not pd.isna(act["confirmed_at"]):
        texts.append(f"{'gone' if act['down'] else 'there'} after {act['confirmed_at'] - act['decided_at']:.1f} s")
    if not pd.isna(act["useful_at"]):
        texts.append(f"in use after {act['useful_at'] - act['decided_at']:.1f} s")
    more = below("; ".join([act["outcome_reason"], *_observed_lines(act["observed"] or {}, act["down"])]))
    return f'<span class="{colour}">{sign} {escape(status)}</span> {", ".join(texts)}{more}'


def _observed_lines(observed: dict[str, Any], down: bool) -> list[str]:
    """What an outcome's `observed` says, as a person would read it; keys that are missing are passed over."""
    lines = []
    if "waited_s" in observed:
        lines.append(f"waited {observed['waited_s']:,.4g} s")
    if "patience_s" in observed:
        lines.append(f"at most {observed['patience_s']:,.4g} s were allowed")
    if "censored" in observed or "late" in observed:
        when = "never {}" if observed.get("censored") else "{} late" if observed.get("late") else "{} in time"
        lines.append(when.format("left" if down else "started"))
    for name, key, unit in (("lag", "lag_records", "records"), ("processed", "processed_rps", "records/s")):
        before, after = observed.get(f"{key}_before"), observed.get(f"{key}_after")
        if before is not None or after is not None:
            lines.append(f"{name} {number(before)} → {number(after)} {unit}")
    return lines


def _value(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def errors_table(summary: dict[str, Any]) -> str:
    """Return an HTML table of forecast errors, a row per model version, and a note on what they mean.

    Of the run's summary `forecast_error` is read, as `accuracy.error_by_version` returns it.

    Raises:
        KeyError: a figure is missing.
    """
    rows = [
        row(
            [
                escape(f"{version}, {e['kind'].replace('_', ' ')}"), number(e["n"]), share(e["wape"], 1),
                share(e["wape_last_value"], 1), number(e["rmse"], 1),
                f"{share(e['coverage_90'])} (should be {level_in_words(e)})",
            ],
            _ERROR,
        )
        for version, e in summary["forecast_error"].items()
    ]  # fmt: skip
    note = (
        "WAPE is the sum of misses over the sum of what came, RMSE is in records/s. The last column is the share of "
        "steps at or under the forecast's level that is nearest to 90 %. Every step counts once for each time it was "
        "forecast."
    )
    titles = ["version", "steps", "WAPE", "“as now”", "RMSE", "under the level"]
    return table(titles, _ERROR, rows) + f'<p class="note">{note}</p>'


def challenger_html(summary: dict[str, Any]) -> str:
    """Return HTML on what the quality gate said of the challenger model, and on the job with a short history, if any.

    Of the run's summary `challenger` and `newcomer` are read, each of which may be None.

    Raises:
        KeyError: one of them, or its `reason`, is missing.
    """
    verdict = summary["challenger"] or {"reason": "None was judged in this run"}
    version = f"Version {verdict['version']} " if verdict.get("version") else ""
    naive = f" The naive forecast's loss is {number(verdict['naive_loss'], 2)}." if verdict.get("naive_loss") else ""
    texts = f"<h3>Challenger</h3><p>{escape(version + verdict['reason'] + '.' + naive)}</p>"
    if lines := headline.newcomer_lines(summary["newcomer"]):
        (_, came), (_, gate) = lines
        texts += f"<h3>Newcomer</h3><p>{escape(came)}.</p><p>Its model: {escape(gate)}.</p>"
    return texts


def about_html(run: RecordedRun, summary: dict[str, Any]) -> str:
    """Return HTML about a run: a note on compressed time, every figure of its summary explained, contract and versions.

    Raises:
        KeyError: the summary lacks a figure of `summary.KEYS`.
    """
    kinds = [NOWRAP, PLAIN, PLAIN]
    meant = [
        row([f"<code>{key}</code>", escape(_shown(summary[key])), escape(text)], kinds) for key, text in KEYS.items()
    ]
    figures = table(["figure", "here", "what it means"], kinds, meant)
    return (
        f"<p>{escape(_compression(run))}</p><details><summary>What every figure means</summary>{figures}</details>"
        f"<details><summary>Contract, replay and versions</summary>{_settings(run)}</details>"
    )


def _compression(run: RecordedRun) -> str:
    scale, lead = run.clock.scale, run.contract.planning.lead_s
    if scale == 1:
        return "Time is not compressed: trace time is wall time."
    return (
        f"Time is compressed {scale:g} times, but executors start no faster for it: their {lead:g} s of lead are "
        f"{lead * scale / 60:.0f} minutes of the trace. Lead times that are long against the ramps of the load are "
        "where a forecast is worth most. At the trace's own speed the same forecast would be worth less, unless "
        "capacity takes minutes or hours to arrive. All durations, rates and costs here are in wall time."
    )


def _settings(run: RecordedRun) -> str:
    parts = {key: run.info.get(key) or {} for key in ("contract", "replay", "job_settings", "versions")}
    flat = pd.json_normalize(parts).astype(object).iloc[0].items()
    return f"<dl>{''.join(f'<dt>{escape(str(key))}</dt><dd>{escape(_value(value))}</dd>' for key, value in flat)}</dl>"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        parts = [f"{key} {_shown(inner)}" for key, inner in value.items() if not isinstance(inner, dict | list)]
        return ", ".join(parts) if parts else f"{len(value)} versions"
    return "–" if value is None else _value(value)
