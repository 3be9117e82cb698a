"""The audit of a dump of the topic `decisions`: each is made again of what it names, and must come out the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from configs.errors import SettingsError
from models.contract.controller import VERSION
from models.contract.terms import compile_terms
from models.contract.trace import TraceDifference, first_difference
from models.policy.live.recomputed import Agents, Contracts, recompute_decision
from models.policy.replays.recomputed import recompute_interval, recompute_rate, recompute_weighed
from models.policy.replays.relief import relief_of

DECIDED = ("executors", "reason", "codes")
UNSEEN = "made without an observation, as for want of metrics"
ANOTHER = f"beside a replay by another controller than this release's, which is {VERSION}"


class DecisionLineError(ValueError):
    """A line that is no decision as the autoscaler writes it; the message names line, what is wrong, and remedy."""


class Audited(NamedTuple):
    """What an audit found, up to the first difference.

    Attributes:
        decisions: of which executors, reason and codes came out the same.
        rates: of which the rate of replays, what was weighed and the relief did.
        left: how many could not be made again, by why.
        difference: the first; None: there is none.
    """

    decisions: int
    rates: int
    left: Mapping[str, int]
    difference: TraceDifference | None


def is_decision(line: str) -> bool:
    """Return whether a line is a decision rather than the header of a control trace."""
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(read, dict) and {"policy", "inputs"} <= read.keys()


def audit_decisions(
    lines: Iterable[str], contracts: Contracts, tolerance: float = 0.0, agents: Agents | None = None
) -> Audited:
    """Make decisions again, one by one, up to the first that comes out otherwise.

    Args:
        lines: of JSON, a decision each, as they stand on the topic; in any order, of any jobs.
        contracts: by hash.
        tolerance: largest difference of floats, relative or absolute; 0 on the platform that decided, 1e-9 on others.
        agents: of learned policies; None: none is to be had.

    Raises:
        DecisionLineError: a line is no decision, or its inputs are not as this code writes them.
    """
    decisions = rates = 0
    left: Counter[str] = Counter()
    for number, line in enumerate(lines, start=1):
        if not is_decision(line):
            raise DecisionLineError(f"line {number}: {line[:40]!r} is no decision. One that was cut off may be deleted")
        logged = json.loads(line)
        if _by_another_controller(logged):
            left[ANOTHER] += 1
            continue
        try:
            told, found = _of_replays(logged)
            rates += bool(found)
            try:
                made = recompute_decision(logged, contracts, agents)
            except (LookupError, SettingsError) as error:
                if isinstance(error, KeyError):
                    raise
                left[str(error)] += 1
            else:
                left[UNSEEN] += made is None
                decisions += made is not None
                found |= {} if made is None else dict(zip(DECIDED, made, strict=True))
                told |= {} if made is None else {name: logged[name] for name in DECIDED}
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            said = f"{type(error).__name__}: {error}"
            raise DecisionLineError(f"line {number}: {said}. Its inputs are not as this release writes them") from None
        if part := first_difference(told, json.loads(json.dumps(found)), tolerance):
            return Audited(decisions, rates, +left, TraceDifference(number, *part))
    return Audited(decisions, rates, +left, None)


def _by_another_controller(logged: Mapping[str, Any]) -> bool:
    inputs = logged["inputs"].get("replay") if isinstance(logged["inputs"], dict) else None
    return isinstance(inputs, dict) and inputs.get("controller") != VERSION


def _of_replays(logged: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is logged of replays and relief, and what the controller comes to again, by the same names; {} without."""
    inputs = logged["inputs"].get("replay")
    told: dict[str, Any] = {}
    found: dict[str, Any] = {}
    if inputs is None:
        return told, found
    if logged.get("replay_rps") is not None:
        told["replay_rps"], found["replay_rps"] = logged["replay_rps"], recompute_rate(inputs)
    if "weighed" in inputs:
        told["inputs.replay.weighed"], found["inputs.replay.weighed"] = inputs["weighed"], recompute_weighed(inputs)
    if "relief" in logged["inputs"]:
        relief = relief_of(compile_terms(inputs["terms"]), recompute_interval(inputs).state)
        told["inputs.relief"], found["inputs.relief"] = logged["inputs"]["relief"], relief
        told["admission_rps"] = logged.get("admission_rps")
        found["admission_rps"] = None if relief is None else relief["live_rps"]
    return told, found
