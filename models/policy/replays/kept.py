"""What is kept of a job's replays between evaluations: their newest words, the controller, what live records waited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from models.contract.service_rate import CERTAIN
from models.policy.replays.interval_latency import MEASURED
from models.policy.replays.live_load import Arrived
from models.policy.replays.start import is_in_slow_start

READING = ("waiting", "running", "paused")
"""States of a replay that is not read to its end."""
UNSAID_S = 600.0
"""Seconds of metrics without a word on a replay after which its job knows nothing of it: of one that it knows it says
something every few seconds, less often only while the driver starts."""
_KEPT = (
    "state", "records", "done", "wall_time", "reading_since", "executors", "executors_soon", "rows", "work_s", "cost",
    "admitted_rps", "warm",
)  # fmt: skip


@dataclass(frozen=True)
class ReplayControl:
    """What is kept of a job's replays between evaluations; JSON holds it exactly.

    Attributes:
        replays: newest progress by id, of those that are not read to their end.
        contract: hash of the contract that the terms were derived from.
        terms: in force (`plain`); None without replays.
        state: of the controller (`plain`).
        latency_s: the worst of each measured quantile since the newest interval was closed, by its field.
        batches: of live records since then.
        arrived: live records/s since then.
        level: of the service rate's quantile that is taken for certain.
        share: most of what is certainly left over that replays have, since a limit was broken beside them; None: all.
        of_use: those of `executors` of which somebody gets anything, as found last; None: never looked at.
        sustained: records/s that the fewest and the most executors sustained as the terms were derived; None: unknown.
        may_begin: ids of replays for which enough was left over at the end of the newest interval; None: never asked.
        worst: largest ratio of a signal to its limit, in the newest interval that measured one; None: none did.
    """

    replays: dict[str, dict[str, Any]] = field(default_factory=dict)
    contract: str = ""
    terms: dict[str, Any] | None = None
    state: dict[str, Any] | None = None
    latency_s: dict[str, float] = field(default_factory=dict)
    batches: int = 0
    arrived: Arrived = field(default_factory=Arrived)
    level: float = CERTAIN
    share: float | None = None
    of_use: int | None = None
    sustained: list[float] | None = None
    may_begin: list[str] | None = None
    worst: float | None = None

    @classmethod
    def from_json_values(cls, values: Mapping[str, Any]) -> ReplayControl:
        """Build it from what JSON holds of it; missing fields take their defaults.

        Raises:
            TypeError: a field that it has not.
        """
        return cls(**{**values, "arrived": Arrived(*values.get("arrived", ()))})

    @property
    def executors(self) -> int:
        """Executors beyond the live job's that the replays' schedules ask for now."""
        return sum(one["executors"] or 0 for one in self.replays.values())

    @property
    def publishing(self) -> int:
        """Those of `executors` that replays ask for which are read to their end, and are published: without a rate."""
        return sum(one["executors"] or 0 for one in self.replays.values() if one["state"] not in READING)

    @property
    def executors_asked(self) -> int:
        """Those of `executors` that are asked for."""
        return self.executors if self.of_use is None else min(self.executors, self.of_use)

    def executors_soon(self, most: int) -> int:
        """Executors beyond the live job's that are not given back: the schedules ask for them soon, or a replay begins.

        With fewer executors live records would wait longer behind a first batch, and those that its schedule asks for
        once a record's cost is known would have to be started again.

        Args:
            most: that the job may have.
        """
        if any(is_in_slow_start(one) for one in self.replays.values()):
            return most
        return sum(max(one.get("executors_soon") or 0, one["executors"] or 0) for one in self.replays.values())


def with_progress(control: ReplayControl, progress: Mapping[str, Any]) -> ReplayControl:
    """Return the control after a word of the agent: fields of a `tidecast.orders.ReplayProgress`.

    One that is read in an application of its own takes nothing from live records, and is not decided about.
    """
    if progress.get("apart") is not None:
        return control
    replays = {name: known for name, known in control.replays.items() if name != progress["id"]}
    if progress["state"] in READING or progress.get("executors"):  # those of one that is published are kept for that
        replays[progress["id"]] = {name: progress.get(name) for name in _KEPT}
    return replace(control, replays=replays)


def without_unsaid(control: ReplayControl, now: float) -> ReplayControl:
    """Return the control without replays of which the job, though it runs, has said nothing for `UNSAID_S` (600 s).

    That one is over may have been said to nobody: while its contract was away, or longer ago than its topic keeps. Its
    executors would be asked for, or kept, for good.

    Args:
        control: so far.
        now: of the job's newest metrics, epoch seconds by the same clock as its words on replays.
    """
    said = {name: one for name, one in control.replays.items() if now - one["wall_time"] <= UNSAID_S}
    return control if len(said) == len(control.replays) else replace(control, replays=said)


def with_latency(control: ReplayControl, sample: Mapping[str, Any]) -> ReplayControl:
    """Return the control after a batch: fields of a `MetricSample` of the live query."""
    if not control.replays and control.terms is None:
        return control
    told = {name: sample[name] for _, name in MEASURED if sample.get(name) is not None}
    worst = control.latency_s | {name: max(s, control.latency_s.get(name, s)) for name, s in told.items()}
    return replace(control, latency_s=worst, batches=control.batches + bool(told))
