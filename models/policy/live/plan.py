"""A decision about one live job, in numbers, codes and words: the same observation gives the same decision."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from configs.contract import Contract
from configs.planning import Planning
from configs.policies import BLIND
from models.policy.core import carried
from models.policy.core.capacity import Floats
from models.policy.core.choice import Choice, Why
from models.policy.core.policy import Policy, decide
from models.policy.core.view import Memory, View
from models.policy.live.burn import describe_burn
from models.policy.live.catch_up import CatchUp, describe_catch_up, find_catch_up
from models.policy.live.shortage import describe_shortage, find_shortage
from models.policy.planners.turns import TURN, raise_in_turns
from models.policy.received.observation import Observation

PLANNERS = ("reactive", "forecast")
"""Policies whose scale-down delay is the contract's `scale_down_delay_s`."""
_MARKS = (
    Why.BACKLOG, Why.CEILING, Why.NO_FORECAST, Why.NOT_A_NUMBER, Why.CLAMPED, Why.UNFAMILIAR, Why.PROMISE, Why.SKEW,
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A decision about one job.

    Attributes:
        executors: to ask for.
        reason: one line for a person.
        codes: the same for programs; see `explain`, and "no_room" where the cluster has none for all that is asked for,
            "shortage" where the most executors are too few, "burn" where the error budget goes too fast, "recovery"
            while it is behind.
        needed_observed, needed_forecast: executors that load or forecast ask for; None where the policy does not say.
        capacity_rps, current_capacity_rps: records/s that `executors` and those of now sustain.
        utilisation: arrivals over `capacity_rps`; None where that is 0.
    """

    executors: int
    reason: str
    codes: list[str]
    needed_observed: int | None
    needed_forecast: int | None
    capacity_rps: float
    current_capacity_rps: float
    utilisation: float | None


def make_plan(seen: Observation, contract: Contract, policy: Policy) -> tuple[Memory, Plan]:
    """Let a policy decide about an observed job; the same inputs give the same decision.

    Returns:
        The policy's memory afterwards (arrays of one run, by name), and the decision.

    Raises:
        ValueError, TypeError: `seen.carried` holds something that is no number, or ragged lists.
        ZeroDivisionError: `seen.tasks` is 0.
    """
    view = seen.to_view(contract)
    memory, choice = decide(policy, carried.restore(seen.carried, policy), view)
    choice = _of_use(choice, seen.most(contract))
    target = int(choice.target[0])
    capacity = float(view.capacity.sustained_rps(choice.target)[0])
    reason, codes = explain(policy, choice, contract, seen)
    if seen.unmet is not None:
        lacks = max(seen.asked - seen.executors, 0)
        reason, codes = f"{reason}; the cluster has no room for {lacks} of {seen.asked} executors", [*codes, "no_room"]
    if behind := find_catch_up(seen, contract, view.capacity, target):
        begun = _begin(behind, target, seen, view, contract)
        reason, codes = f"{reason}; {describe_catch_up(behind, target, begun)}", [*codes, "recovery"]
        if begun > target:
            target, codes = begun, [_way(begun, seen), *codes[1:]]
            reason = f"{_moved(target, seen)}: {reason.partition(': ')[2]}"
            capacity = float(view.capacity.sustained_rps(np.array([float(target)]))[0])
    if shortage := find_shortage(seen, contract, view.capacity):
        reason, codes = f"{reason}; {describe_shortage(shortage, seen)}", [*codes, "shortage"]
    if burn := describe_burn(seen, contract, view.capacity, target):
        reason, codes = f"{reason}; {burn}", [*codes, "burn"]
    return memory, Plan(
        target, reason, codes, _whole(choice.observed), _whole(choice.forecast), capacity,
        float(view.capacity.sustained_rps(view.executors)[0]), seen.planned_rps / capacity if capacity > 0 else None,
    )  # fmt: skip


def _begin(behind: CatchUp, target: int, seen: Observation, view: View, contract: Contract) -> int:
    """How many executors to ask for now, on the way from the policy's to those that an `rto` needs."""
    plan = contract.planning
    if not (seen.rto_in_turns and plan.in_turns) or behind.executors <= target:
        return behind.executors
    wanted = np.array([float(behind.executors)])
    return max(target, int(raise_in_turns(view, wanted, plan.start_growth, plan.step_up, plan.lead_s)[0]))


def _of_use(choice: Choice, most: int) -> Choice:
    """The choice without executors that no task would fill: the agent refuses a decision that asks for these."""
    beyond = choice.target > most
    return replace(choice, target=np.minimum(choice.target, most), why=choice.why | beyond * int(Why.CEILING))


def explain(policy: Policy, choice: Choice, contract: Contract, seen: Observation) -> tuple[str, list[str]]:
    """Explain a choice about one job.

    Returns:
        The reason, one line for a person such as "up 3 → 4: 900 rec/s, lag 40 need 4", and codes: first up, down or
        hold; then the cause (forecast, observed) or what held the policy back (cooldown, catch_up, delayed_down, turn);
        then those that hold of backlog, ceiling (a bound cut the answer), late_forecast or no_forecast, not_a_number
        and clamped (answer unusable or out of bounds), unfamiliar (the agent's fall-back answered), promise (executors
        kept because too much was late), skew (one executor is full while others are not), stand_in (not the policy
        asked for).
    """
    why, target, planning = Why(int(choice.why[0])), int(choice.target[0]), contract.planning
    if seen.since_raise_s is None:
        why &= ~Why.TURN  # older logs do not say it
    way = _way(target, seen)
    delay = f"in the last {planning.scale_down_delay_s:g} s" if policy.name in PLANNERS else "lately"
    holding = {
        Why.COOLDOWN: f"last change {seen.since_change_s:.1f} s ago, cool-down {planning.cooldown_s:g} s",
        Why.CATCH_UP: "catching up, nothing is taken away",
        Why.DELAYED_DOWN: f"more was needed {delay}, or the last change is too new",
        Why.TURN: f"starts are made in turns, and {_awaited(seen, planning)}",
    }
    limits = {
        Why.CEILING: f"ceiling {target}" if way == "up" else "",
        Why.NOT_A_NUMBER: "the policy gave no number, the target stays",
        Why.CLAMPED: f"the policy's answer was out of {contract.executors.min} to {contract.executors.max}",
        Why.PROMISE: f"too much was late for the promise, so {target} are kept",
        Why.SKEW: "one executor is full and the others are not: more of them alone do not help",
        Why.UNFAMILIAR: "unlike anything the agent was trained on, its fall-back decides",
    }
    held = [flag for flag in holding if flag in why and way == "hold"]
    cause = [] if way == "hold" or policy.name in BLIND else ["observed"]
    if cause and way == "up" and Why.FORECAST in why:
        cause = ["forecast"]
    codes = [way, *cause, *(_code(flag) for flag in held), *(_code(flag) for flag in _MARKS if flag in why)]
    if seen.forecast_note.startswith("late"):
        codes = ["late_forecast" if code == "no_forecast" else code for code in codes]
    if seen.stand_in:
        codes.append("stand_in")
    need = _need(policy, choice, why, seen)
    parts = [
        need if way != "hold" or held else f"{need}, {target} asked for",
        *(holding[flag] for flag in held),
        *(said for flag, said in limits.items() if flag in why and said),
    ]
    return f"{_moved(target, seen)}: {'; '.join(parts)}", codes


def _awaited(seen: Observation, planning: Planning) -> str:
    """What the next turn waits for; older logs, which do not say what is missing, name the time alone."""
    turn_s = TURN * planning.lead_s * max(seen.target - seen.executors, 1) ** planning.start_growth
    if seen.missing_s is None or (seen.since_raise_s or 0.0) < turn_s:
        return "the last one is too new for the next"
    return f"those asked for have not come: for {seen.missing_s:.0f} s, {seen.executors} of {seen.target} have run"


def _way(target: int, seen: Observation) -> str:
    return "up" if target > seen.asked else "down" if target < seen.asked else "hold"


def _moved(target: int, seen: Observation) -> str:
    return "hold" if (way := _way(target, seen)) == "hold" else f"{way} {seen.asked} → {target}"


def _code(flag: Why) -> str:
    return (flag.name or "").lower()


def _need(policy: Policy, choice: Choice, why: Why, seen: Observation) -> str:
    observed, forecast = float(choice.observed[0]), float(choice.forecast[0])
    text = f"{seen.stand_in}; " if seen.stand_in else ""
    unseen = seen.processed_rps is None and not seen.lag_records  # the agent tells no lag before a batch has ended
    lag = "lag not known yet, by the contract's guesses" if unseen else f"lag {seen.lag_records}"
    text += f"{seen.planned_rps:.0f} rec/s, {lag}"
    text += f" need {observed:.0f}" if np.isfinite(observed) else f", policy {policy.name}"
    if np.isfinite(forecast):
        ahead = "" if seen.forecast_rps is None else f"{seen.forecast_rps:.0f} rec/s "
        return f"{text}; {ahead}ahead ({seen.forecast_note}) need {forecast:.0f}"
    return f"{text}; {seen.forecast_note}" if Why.NO_FORECAST in why and seen.forecast_note else text


def _whole(values: Floats) -> int | None:
    return int(values[0]) if np.isfinite(values[0]) else None
