"""A decision in words for a person and in codes for a report."""

from __future__ import annotations

import numpy as np

from configs.contract import Contract
from configs.policies import BLIND
from models.policy.core.view import Choice, Policy, View, Why
from models.policy.live.observation import Observation

_HELD = (Why.COOLDOWN, Why.CATCH_UP, Why.DELAYED_DOWN)
PLANNERS = ("reactive", "forecast")
"""Those whose delay is the contract's."""
_MARKS = (Why.BACKLOG, Why.CEILING, Why.NO_FORECAST, Why.NOT_A_NUMBER, Why.CLAMPED, Why.UNFAMILIAR)


def explanation(
    policy: Policy, view: View, choice: Choice, contract: Contract, seen: Observation
) -> tuple[str, list[str]]:
    """The reason and the codes of a choice about one job.

    The first code is up, down or hold; then the cause (forecast, observed) or what held the policy back (cooldown,
    catch_up, delayed_down), then what else is to be known: backlog, ceiling, late_forecast or no_forecast,
    not_a_number, clamped, unfamiliar, stand_in.
    """
    why, target = Why(int(choice.why[0])), int(choice.target[0])
    way = "up" if target > seen.target else "down" if target < seen.target else "hold"
    held = [flag for flag in _HELD if flag in why] if way == "hold" else []
    cause = _cause(way, why, policy)
    marks = [_code(flag, seen.forecast_note) for flag in _MARKS if flag in why]
    codes = [way, *cause, *(flag.name.lower() for flag in held if flag.name), *marks]
    if seen.stand_in:
        codes.append("stand_in")
    moved = "hold" if way == "hold" else f"{way} {seen.target} → {target}"
    parts = [_need(policy, choice, why, seen), *(_held(flag, policy, contract, seen) for flag in held)]
    if way == "hold" and not held:
        parts[0] += f", {target} asked for"
    parts += _limits(why, way, target, view, contract)
    return f"{moved}: {'; '.join(parts)}", codes


def _cause(way: str, why: Why, policy: Policy) -> list[str]:
    if way == "hold" or policy.name in BLIND:
        return []
    return ["forecast" if way == "up" and Why.FORECAST in why else "observed"]


def _code(flag: Why, note: str) -> str:
    if flag is Why.NO_FORECAST and note.startswith("late"):
        return "late_forecast"
    return (flag.name or "").lower()


def _need(policy: Policy, choice: Choice, why: Why, seen: Observation) -> str:
    text = f"{seen.arrival_rps:.0f} rec/s, lag {seen.lag_records}"
    if seen.stand_in:
        text = f"{seen.stand_in}; {text}"
    if np.isfinite(choice.observed[0]):
        text += f" need {choice.observed[0]:.0f}"
    else:
        text += f", policy {policy.name}"
    if np.isfinite(choice.forecast[0]):
        ahead = "" if seen.forecast_rps is None else f"{seen.forecast_rps:.0f} rec/s "
        return f"{text}; {ahead}ahead ({seen.forecast_note}) need {choice.forecast[0]:.0f}"
    return f"{text}; {seen.forecast_note}" if Why.NO_FORECAST in why and seen.forecast_note else text


def _held(flag: Why, policy: Policy, contract: Contract, seen: Observation) -> str:
    planning = contract.planning
    if flag is Why.COOLDOWN:
        return f"last change {seen.since_change_s:.1f} s ago, cool-down {planning.cooldown_s:g} s"
    if flag is Why.CATCH_UP:
        return "catching up, nothing is taken away"
    if policy.name in PLANNERS:
        return f"more was needed in the last {planning.scale_down_delay_s:g} s, or the last change is too new"
    return "more was needed lately, or the last change is too new"


def _limits(why: Why, way: str, target: int, view: View, contract: Contract) -> list[str]:
    said = []
    if Why.CEILING in why and way == "up":
        said.append(f"ceiling {target}")
    if Why.NOT_A_NUMBER in why:
        said.append("the policy gave no number, the target stays")
    if Why.CLAMPED in why:
        bounds = contract.executors
        said.append(f"the policy's answer was out of {bounds.min} to {bounds.max}")
    if Why.UNFAMILIAR in why:
        said.append("unlike anything the agent was trained on, its fall-back decides")
    return said
