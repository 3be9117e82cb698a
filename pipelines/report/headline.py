"""What a run came to: the verdict in a few sentences, and the tiles at the head of its page."""

from __future__ import annotations

from typing import Any

from pipelines.html.document import Tile
from pipelines.html.numbers import against, number, share

Summary = dict[str, Any]


def verdict(s: Summary) -> str:
    """What the run came to, in a few plain sentences."""
    target, said = f"{s['latency_target_s']:g} s", []
    if counted_exactly(s):
        said.append(f"All {number(s['produced'])} records were counted exactly once.")
    else:
        wrong = f"{number(s['lost'])} were lost and {number(s['duplicated'])} counted twice"
        said.append(f"Of {number(s['produced'])} records {wrong}.")
    said.append("Processing never stopped." if s["stopped_s"] == 0 else f"Processing stopped for {s['stopped_s']} s.")
    if s["over_target_s"] == 0:
        said.append(f"Every record was done within {target}.")
    else:
        said.append(f"In {s['over_target_s']} of {s['produced_s']} seconds a record took longer than {target}.")
    if s.get("stood_in"):  # a summary of an earlier version does not say
        said.append(f"In {s['stood_in']} of {s['decisions']} decisions another policy stood in for {s['policy']}.")
    most = f"{s['static_executor_s'] / s['live_s']:.0f} executors all the time"
    said.append(f"It took {against(s['executor_s'], s['static_executor_s'], 'executor-seconds ')} {most}.")
    if s["scale_ups_by_forecast"]:
        confirmed, caused = s["forecast_scale_ups_confirmed"], s["scale_ups_by_forecast"]
        said.append(
            f"The forecast caused {caused} of {s['scale_ups']} scale-ups; {confirmed} confirmed by what followed."
        )
    return " ".join(said)


def newcomer(found: dict[str, Any] | None) -> list[tuple[str, str]]:
    """What came of the newcomer, as (what, words): whether another load taught it, and what the gate said."""
    if not found:
        return []
    said = f"{found['job']}, {found['days']:g} days of {found['trace']}; {found['why'] or 'nobody was asked'}"
    if found["version"]:
        judged = f"version {found['version']}, {found['chosen']}, {found['reason']}; version {found['champion']} serves"
    else:
        judged = f"none was judged; {found['reason']}"
    return [("newcomer", said), ("its model", judged)]


def counted_exactly(s: Summary) -> bool:
    """Nothing lost, nothing twice."""
    return bool(s["lost"] == 0 and s["duplicated"] == 0 and s["produced"] == s["counted"])


def tiles(s: Summary, other: Summary | None = None) -> list[Tile]:
    """The headline figures, with the other run's beside them where there is one."""
    latency, to_executor, to_useful = s["latency_s"], s["decision_to_executor_s"], s["decision_to_useful_s"]
    error = max(s["forecast_error"].values(), key=lambda e: e["n"], default=None)
    return [
        Tile(
            "Records counted", number(s["counted"]), f"of {number(s['produced'])}",
            f"{s['lost']} lost, {s['duplicated']} twice, {s['late']} late on purpose, {s['rejected']} rejected",
            counted_exactly(s), _versus(s, other, ("counted",)),
        ),
        Tile(
            "Stopped", str(s["stopped_s"]), "s",
            f"pause at most {number(s['longest_pause_s'], 2)} s, {s['restarts']} restarts, "
            f"{s['failed_tasks']} failed tasks",
            s["stopped_s"] == 0 and s["restarts"] == 0, _versus(s, other, ("stopped_s",), " s"),
        ),
        Tile(
            f"Over the {s['latency_target_s']:g} s target", str(s["over_target_s"]), f"of {s['produced_s']} s",
            "seconds in which any record took longer",
            s["over_target_s"] == 0, _versus(s, other, ("over_target_s",), " s"),
        ),
        Tile(
            "Latency, 95 % of records", number(latency["p95"], 1), "s",
            f"median {number(latency['p50'], 1)} s, slowest {number(latency['max'], 1)} s",
            None, _versus(s, other, ("latency_s", "p95"), " s", 1),
        ),
        Tile(
            "Executor-seconds", number(s["executor_s"]), f"{s['mean_executors']:.1f} executors",
            f"{against(s['executor_s'], s['static_executor_s'])} the most allowed, all the time",
            None, _versus(s, other, ("executor_s",)),
        ),
        Tile(
            "Scale actions", str(s["scale_ups"] + s["scale_downs"]), f"{s['scale_ups']} up, {s['scale_downs']} down",
            f"{s['forecast_scale_ups_confirmed']} ups by the forecast confirmed; {s['ineffective']} without effect",
            None, _versus(s, other, ("scale_ups",), " up"),
        ),
        Tile(
            "Decision to use", number(to_useful["p50"], 1), "s, median",
            f"executors after {number(to_executor['p50'], 1)} s; 95 % within {number(to_executor['p95'], 1)} → "
            f"{number(to_useful['p95'], 1)} s; metrics to decision {number(s['metric_to_decision_s']['p50'], 1)} s",
            None, _versus(s, other, ("decision_to_useful_s", "p50"), " s", 1),
        ),
        Tile(
            "Forecast error", share(error["wape"], 1) if error else "–", "of the load",
            f"“as now” would be {share(error['wape_last_value'], 1)}; 90 % level held {share(error['coverage_90'])}"
            if error else "no forecast was served",
        ),
    ]  # fmt: skip


def _versus(s: Summary, other: Summary | None, path: tuple[str, ...], unit: str = "", digits: int = 0) -> str:
    if other is None:
        return ""
    mine, theirs = _at(s, path), _at(other, path)
    if mine is None or theirs is None:
        return f"{other['policy']}: {number(theirs, digits)}{unit}"
    change = f"{mine - theirs:+,.{digits}f}{unit} here" if round(mine - theirs, digits) else "the same here"
    return f"{other['policy']}: {number(theirs, digits)}{unit}, {change}".replace("-", "−")


def _at(s: Summary, path: tuple[str, ...]) -> Any:
    for key in path:
        s = s[key]
    return s
