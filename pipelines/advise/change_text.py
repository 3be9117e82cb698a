"""A change of a job's contract in words: its terms, and what it would cost by the job's twin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from configs.contract import Contract
from models.twin.contract.changed import ChangedTerm
from models.twin.contract.tried import ContractOutcome
from pipelines.advise.proposal_text import format_days
from pipelines.html.numbers import number, share

_WORDS = {
    "latency_target_s": ("the latency target, s", "a laxer promise", "a stricter promise"),
    "error_budget": ("the share of seconds that may be late", "a laxer promise", "a stricter promise"),
    "window_days": ("the days over which the promise is kept", "accounted over longer", "accounted over less"),
    "executors.min": ("the fewest executors", "a higher floor", "a lower floor"),
    "executors.max": ("the most executors", "a higher ceiling", "a lower ceiling"),
    "executors.cores": ("an executor's cores", "larger executors", "smaller executors"),
    "price_per_executor_hour": ("the price of an executor-hour", "dearer", "cheaper"),
    "alerts.repeat_s": ("the seconds until an alert is told again", "told less often", "told more often"),
    "planning.lead_s": ("the lead time believed at first, s", "planned further ahead", "planned less far ahead"),
}  # fmt: skip
"""Of terms that anybody reads: what they are, and what more and less of them means."""
DAY_S = 86_400
Row = tuple[str, str, str, str]


def format_terms(job: str, earlier: str, changes: Sequence[ChangedTerm]) -> str:
    """Say which terms of a job's contract differ from those of an earlier one, a line each; what follows, in one."""
    stated = [one for one in changes if not one.follows]
    differ = f"{len(stated)} terms differ" if len(stated) != 1 else "1 term differs"
    lines = [f"{job}: {differ} from {earlier}", *(f"  {_term(one)}" for one in stated)]
    if followed := [f"{one.key} {_value(one.before)} → {_value(one.after)}" for one in changes if one.follows]:
        lines.append(f"  from that follow {', '.join(followed)}")
    return "\n".join(lines)


def format_change(before: ContractOutcome, after: ContractOutcome) -> str:
    """Say what a load comes to under two contracts, in the same futures, as a small table."""
    hours, was, now = (_hours_a_day(before), _hours_a_day(after)), before.contract, after.contract
    rows: list[Row] = [
        ("", "before", "after", "change, by future"),
        ("late seconds", share(before.late_share, 2), share(after.late_share, 2),
         _span(100 * (after.late - before.late), 2, " points")),
        ("of at most", _allowed(before), _allowed(after), ""),
        ("executor-hours a day", number(hours[0], 2), number(hours[1], 2),
         _span((after.executor_s - before.executor_s) / before.seconds * 24, 2)),
        ("most executors asked for", str(before.asked), str(after.asked), ""),
    ]  # fmt: skip
    if (was.price_per_executor_hour, now.price_per_executor_hour) != (None, None):
        rows.append(("price a day", _paid(was, hours[0]), _paid(now, hours[1]), ""))
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    table = ["  ".join([f"{row[0]:<{widths[0]}}", *(f"{row[at]:>{widths[at]}}" for at in (1, 2, 3))]) for row in rows]
    futures, days = len(before.late), format_days(before.seconds / DAY_S)
    head = f"by its twin, over {days} of its load, in the same {futures} futures for both:"
    lines = [head, *(f"  {line.rstrip()}" for line in table)]
    if was.backpressure != now.backpressure:
        lines.append("  not in it: replays, which the twin does not serve here (backpressure)")
    if was.configurations != now.configurations:
        lines.append("  not in it: what a start may choose from (configurations)")
    return "\n".join(lines)


def _term(change: ChangedTerm) -> str:
    said = f"{change.key}: {_value(change.before)} → {_value(change.after)}"
    if change.key not in _WORDS:
        return said
    what, more, less = _WORDS[change.key]
    if change.before is None or change.after is None:
        return f"{said} ({what})"
    return f"{said} ({what}: {more if change.after > change.before else less})"


def _value(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _allowed(outcome: ContractOutcome) -> str:
    return f"{share(outcome.contract.error_budget, 2)}: {'kept' if outcome.kept else 'broken'}"


def _paid(contract: Contract, hours: float) -> str:
    price = contract.price_per_executor_hour
    return number(None if price is None else price * hours, 2)


def _hours_a_day(outcome: ContractOutcome) -> float:
    return float(outcome.executor_s.mean()) / outcome.seconds * 24


def _span(each: Any, digits: int, unit: str = "") -> str:
    low, high = float(each.min()), float(each.max())
    return f"{low:+,.{digits}f} to {high:+,.{digits}f}{unit}"
