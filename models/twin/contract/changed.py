"""Which terms of a job's contract differ from those of another of its contracts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from configs.backpressure import Backpressure
from configs.contract import Contract

DERIVED = ("quantile", "hold_s", "scale_down_delay_s", "catch_up_s", "cooldown_s")
"""Of `planning`: what follows from promise and lead time where a contract does not state it."""


class ChangedTerm(NamedTuple):
    """A term that differs.

    Attributes:
        key: in the file, with dots between sections.
        before, after: its values; None where a contract has none.
        follows: whether both are what the promise and the lead time of their contract come to.
    """

    key: str
    before: Any
    after: Any
    follows: bool


def changed_terms(before: Contract, after: Contract) -> list[ChangedTerm]:
    """List the terms in which two contracts differ, as they were understood, in the order of a contract's keys."""
    was, now = (
        dict(_leaves(one.model_dump(mode="json"))) | _alerts(one, before) | _tables(one) for one in (before, after)
    )
    keys = [*now, *(key for key in was if key not in now)]
    return [
        ChangedTerm(key, was.get(key), now.get(key), _follows(before, key) and _follows(after, key))
        for key in keys
        if was.get(key) != now.get(key)
    ]


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """(Key with dots, value) of all that is no section; lists of numbers are values, those of sections are not."""
    if isinstance(value, dict) and (value or not place):
        for name, inner in value.items():
            yield from _leaves(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{place}.{number}")
    else:
        yield place, value


def _alerts(contract: Contract, before: Contract) -> dict[str, Any]:
    """The section `alerts`, which no dump has; its address is a secret, of which is told whether it is another one."""
    if contract.alerts is None:
        return {}
    same = before.alerts is None or contract.alerts.webhook == before.alerts.webhook
    rest = contract.alerts.model_dump(mode="json", exclude={"webhook"})
    return {"alerts.webhook": "an address" if same else "another address"} | {
        f"alerts.{name}": value for name, value in rest.items()
    }


def _tables(contract: Contract) -> dict[str, Any]:
    """The tables that keep records of topics, which no dump has either."""
    stated = contract.backpressure or Backpressure()
    return {f"backpressure.tables.{topic}": path for topic, path in stated.tables.items()}


def _follows(contract: Contract, key: str) -> bool:
    section, _, name = key.partition(".")
    if section != "planning" or name not in DERIVED:
        return False
    alone = Contract(
        job=contract.job, latency_target_s=contract.latency_target_s, error_budget=contract.error_budget,
        planning=type(contract.planning)(lead_s=contract.planning.lead_s),
    )  # fmt: skip
    return bool(getattr(alone.planning, name) == getattr(contract.planning, name))
