"""What a run came to: the verdict in a few lines, the tiles at the head of its page, and both for the terminal."""

from __future__ import annotations

from typing import Any

from pipelines.html.columns import aligned
from pipelines.html.document import Tile
from pipelines.html.numbers import difference_in_words, number, number_of, share
from pipelines.report.accuracy import level_in_words
from pipelines.report.backfill.text import backfill_sentence, backfill_tiles

Summary = dict[str, Any]
BUSY = 0.9
"""Share of the cores' time from which on latencies tell of the computer, too: what is ready to run waits for a core."""


def verdict_lines(s: Summary) -> list[str]:
    """Return a run's summary (keys as in `summary.KEYS`) in lines of one or two sentences, the most important first.

    The first says whether the promise was kept, and what a backfill beside the live load came to; the others what it
    took, beside whom, what was lost or counted twice, stops, stand-ins, scale-ups by the forecast, and whether the
    computer's cores were too busy for it.

    Raises:
        KeyError, TypeError: a figure is missing, or None.
        ZeroDivisionError: the run lasted no time (`live_s` or `static_executor_s` is 0).
    """
    first = _promise(s)
    if filled := s.get("backfill"):  # older summaries have none
        first = f"{first} {backfill_sentence(filled)}"
    lines = [first, *_cost(s), f"{_counted(s)} {_stopped(s)}"]
    if s["stood_in"]:
        lines.append(f"In {s['stood_in']} of {s['decisions']} decisions another policy stood in for {s['policy']}.")
    if caused := s["scale_ups_by_forecast"]:
        confirmed = f"{s['forecast_scale_ups_confirmed']} confirmed by what followed"
        lines.append(f"The forecast caused {caused} of {number_of(s['scale_ups'], 'scale-up')}; {confirmed}.")
    if (s.get("cores_busy") or 0) >= BUSY:  # older summaries do not say
        lines.append(f"{_cores(s)}: records waited for a core, too, and more executors would not have helped.")
    return lines


def counted_exactly(s: Summary) -> bool:
    """Return whether every produced record was counted once: none lost, none twice."""
    return bool(s["lost"] == 0 and s["duplicated"] == 0 and s["produced"] == s["counted"])


def newcomer_lines(results: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return rows (label, words) on the job with a short history: whose load helped its model, and the verdict on it.

    `results` is the summary's `newcomer`, as `collect_newcomer_results` returns it; [] for None.

    Raises:
        KeyError: an entry is missing.
    """
    if not results:
        return []
    days = number_of(results["days"], "day")
    taught = f"{results['job']}, {days} of {results['trace']}; {results['why'] or 'nobody was asked'}"
    judged = f"none was judged; {results['reason']}"
    if results["version"]:
        judged = f"version {results['version']}, {results['chosen']}, {results['reason']}; "
        judged += f"version {results['champion']} serves"
    return [("newcomer", taught), ("its model", judged)]


def headline_tiles(s: Summary, other: Summary | None = None) -> list[Tile]:
    """Return eight headline figures of a run's summary (keys as in `summary.KEYS`), beside those of `other` if given.

    The forecast error is that of the model version with the most forecast steps.

    Raises:
        KeyError, TypeError: a figure is missing, or None where one is needed.
        ZeroDivisionError: the run lasted no time (`live_s` or `static_executor_s` is 0).
    """
    latency, to_executor, to_useful = s["latency_s"], s["decision_to_executor_s"], s["decision_to_useful_s"]
    reaction, fixed = s["metric_to_decision_s"], s["static_fixed_executor_s"]
    always = f"; always {fixed / s['live_s']:.0f}: {number(fixed)}" if fixed < s["static_executor_s"] else ""
    error = max(s["forecast_error"].values(), key=lambda e: e["n"], default=None)
    return [
        Tile(
            "Records counted", number(s["counted"]), f"of {number(s['produced'])}",
            f"{s['lost']} lost, {s['duplicated']} twice, {s['late']} late on purpose, {s['rejected']} rejected",
            counted_exactly(s), _versus(s, other, "counted"),
        ),
        Tile(
            "Stopped", str(s["stopped_s"]), "s",
            f"pause at most {number(s['longest_pause_s'], 2)} s, {number_of(s['restarts'], 'restart')}, "
            f"{number_of(s['failed_tasks'], 'failed task')}",
            s["stopped_s"] == 0 and s["restarts"] == 0, _versus(s, other, "stopped_s", " s"),
        ),
        Tile(
            f"Over the {s['latency_target_s']:g} s target", str(s["over_target_s"]), f"of {s['produced_s']} s",
            _causes(s["late_causes"]),
            s["promise"]["kept"], _versus(s, other, "over_target_s", " s"),
        ),
        Tile(
            "Latency, 95 % of records", number(latency["p95"], 1), "s",
            f"median {number(latency['p50'], 1)} s, slowest {number(latency['max'], 1)} s",
            None, _versus(s, other, "latency_s.p95", " s", 1),
        ),
        Tile(
            "Executor-seconds", number(s["executor_s"]), f"{s['mean_executors']:.1f} executors",
            f"{difference_in_words(s['executor_s'], s['static_executor_s'])} the most allowed, all the time "
            f"({number(s['static_executor_s'])}){always}",
            None, _versus(s, other, "executor_s"),
        ),
        Tile(
            "Scale actions", str(s["scale_ups"] + s["scale_downs"]), f"{s['scale_ups']} up, {s['scale_downs']} down",
            f"{s['forecast_scale_ups_confirmed']} of {s['scale_ups_by_forecast']} ups by the forecast confirmed; "
            f"{s['ineffective']} without effect",
            None, _versus(s, other, "scale_ups", " up"),
        ),
        Tile(
            "Decision to use", number(to_useful["p50"], 1), "s, median",
            f"executors after {number(to_executor['p50'], 1)} s; 95 % within {number(to_executor['p95'], 1)} → "
            f"{number(to_useful['p95'], 1)} s; metrics to decision {number(reaction['p50'], 1)} s, "
            f"95 % within {number(reaction['p95'], 1)} s{_planned(s['lead_s'])}",
            None, _versus(s, other, "decision_to_useful_s.p50", " s", 1),
        ),
        Tile(
            "Forecast error", share(error["wape"], 1) if error else "–", "of the load",
            f"“as now” would be {share(error['wape_last_value'], 1)}; {_held(error)}"
            if error else "no forecast was served",
        ),
    ]  # fmt: skip


def _promise(s: Summary) -> str:
    promise, late = s["promise"], "every record was in time"
    if s["over_target_s"]:
        took = f"in {s['over_target_s']} of {s['produced_s']} s"
        late = f"{took} a record took longer ({share(promise['late_share'], 1)})"
    if not promise["kept"] and (spent := promise.get("announced")) is not None:  # older summaries do not say
        late += f"; the autoscaler first warned when {share(spent)} of that budget was spent"
    said = f"{promise['target_s']:g} s in all but {share(promise['budget'], 1)} of the seconds"
    return f"The promise, {said}, was {'kept' if promise['kept'] else 'broken'}: {late}."


def _causes(late: dict[str, int]) -> str:
    told = [f"{count} {cause.replace('_', ' ')}" for cause, count in late.items() if count]
    return f"by cause: {', '.join(told)}" if told else "seconds in which any record took longer"


def _counted(s: Summary) -> str:
    if counted_exactly(s):
        return f"All {number(s['produced'])} records were counted exactly once."
    were = "was" if s["lost"] == 1 else "were"
    wrong = f"{number(s['lost'])} {were} lost and {number(s['duplicated'])} counted twice"
    if dropped := s.get("late_dropped"):  # older summaries do not say
        wrong += f", {number(dropped)} came too late for their windows"
    return f"Of {number(s['produced'])} records {wrong}."


def _stopped(s: Summary) -> str:
    if s["stopped_s"] == 0:
        return "Processing never stopped."
    by_scaling = s["stopped_in_action_s"] or "none"
    return f"Processing stopped for {s['stopped_s']} s, {by_scaling} of them in a scale action."


def _cost(s: Summary) -> list[str]:
    """What it took beside the fewest executors that keep the promise, and what others would have taken: a line each."""
    cost = s["cost"]
    took = f"It used {number(cost['executor_s'])} executor-seconds"
    if (money := cost.get("money")) is not None:  # older summaries have none
        took += f" for {number(money, 2)}"
    mine, beside = cost["executor_s"], ", "
    if s.get("backfill") and (lent := s["backfill"]["executor_s"]):
        mine -= lent  # who is compared serves live load alone
        beside = f"; the other {number(mine)} are "
        took += f", {number(lent)} of them asked for by the backfill"
    if cost["reactive_executor_s"] is None:
        return [f"{took}; too little was measured to say what other policies would have used."]
    if (fixed := cost["smallest_fixed_executor_s"]) is None:
        took += "; no fixed number of executors keeps the promise"
    else:
        always = f"a fixed {cost['smallest_fixed']}, the fewest that keep the promise ({number(fixed)})"
        took += f"{beside}{difference_in_words(mine, fixed)} {always}"
    late = share(cost["reactive_late_share"], 1)
    others = f"reactive, a policy without a forecast, uses {number(cost['reactive_executor_s'])} and is late in {late}"
    if (least := cost["clairvoyant_executor_s"]) is not None:
        others += f"; a plan that knows the whole load ahead uses {number(least)}"
    return [f"{took}.", f"Simulated, by a model fitted to this run: {others}."]


def _cores(s: Summary) -> str:
    return f"The {s['cores']} cores of this computer were busy {share(s['cores_busy'])} of the time, with all that ran"


def _held(error: dict[str, Any]) -> str:
    return f"{level_in_words(error)} level held {share(error['coverage_90'])}"


def _planned(lead: dict[str, float] | None) -> str:
    if lead is None:
        return ""
    first, last = (number(lead[key], 1) for key in ("planned_first", "planned_last"))
    return f"; planned for: {first} s at first, {last} s at last, learned from {number_of(lead['starts'], 'raise')}"


def summary_text(s: Summary) -> str:
    """Return a run's summary (keys as in `summary.KEYS`) as text: the verdict, then figures and models in two columns.

    Raises:
        KeyError, TypeError: a figure is missing, or None where one is needed.
        ZeroDivisionError: the run lasted no time (`live_s` or `static_executor_s` is 0).
    """
    rows = [("Run", f"{s['id']}: {s['policy']} policy, job {s['job']}, {s['trace']} at {s['time_scale']:g}×")]
    for tile in [*headline_tiles(s), *(backfill_tiles(s["backfill"]) if s.get("backfill") else [])]:
        rows.append((tile.label, f"{tile.value}{',' * tile.unit[0].isdigit()} {tile.unit}; {tile.detail}"))
    rows += [
        (f"Forecast v{version}", f"{e['kind']}: error {share(e['wape'], 1)}, {_held(e)}")
        for version, e in s["forecast_error"].items()
    ]
    if s["challenger"]:
        rows.append(("Challenger", s["challenger"]["reason"]))
    rows += [(what.capitalize(), sentences) for what, sentences in newcomer_lines(s["newcomer"])]
    if s["peak_memory_mb"]:
        rows.append(("Peak memory", f"{s['peak_memory_mb'] / 1024:.1f} GB"))
    if s.get("cores_busy") is not None:
        rows.append(("Computer", _cores(s)))
    first, *more = verdict_lines(s)
    return "\n".join([first, *(f"- {line}" for line in more), "", *map(str.rstrip, aligned(rows, left=(0, 1)))])


def _versus(s: Summary, other: Summary | None, path: str, unit: str = "", digits: int = 0) -> str:
    if other is None:
        return ""
    mine, theirs = _at(s, path), _at(other, path)
    change = ""
    if mine is not None and theirs is not None:
        by = round(mine - theirs, digits)
        change = f", {by:+,.{digits}f}{unit} here" if by else ", the same here"
    return f"{other['policy']}: {number(theirs, digits)}{unit}{change}".replace("-", "−")


def _at(s: Summary, path: str) -> Any:
    for key in path.split("."):
        s = s[key]
    return s
