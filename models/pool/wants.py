"""What the jobs of a pool ask for, what each is granted, and what a pool remembers between two divisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SPARED = 0.5
"""Price of a late second while the whole budget of the promise is left, over that when nothing is left of it."""


@dataclass(frozen=True)
class Want:
    """What one job asks for at one evaluation. Times are epoch seconds.

    Attributes:
        job: its name.
        at: when it was said.
        executors: that its policy asks for now, for live records.
        running: that are there.
        cores: of an executor.
        least: executors, by its contract.
        late_s: (N + 1,) late seconds to expect with 0 to N executors.
        budget_left: share of its promise's budget that is left, at most 1; below 0 where it is overspent.
        ahead: (until, executors) that its forecast asks for, step by step.
        replay: executors that its replays ask for beside those.
        needed: executors that its policy is on the way to; less than it asks for where it keeps more than it needs.
        seen_at: when so many were running, by its metrics; None: when it was said.
    """

    job: str
    at: float
    executors: int
    running: int
    cores: int
    least: int
    late_s: tuple[float, ...]
    budget_left: float
    ahead: tuple[tuple[float, int], ...] = ()
    replay: int = 0
    needed: int = 0
    seen_at: float | None = None

    @property
    def wanted(self) -> int:
        """Executors for which the pool is divided.

        A policy that lets executors start in turns, or waits after a change, asks for fewer than it needs. Of a job
        that is far behind these few would save nothing, and it would never have them.
        """
        return max(self.executors, self.needed)

    @property
    def live(self) -> int:
        """Executors of those running that live records have, where nothing was granted yet that would tell it."""
        return self.running - min(self.replay, max(self.running - self.executors, 0))


class Grant(NamedTuple):
    """What one job may have.

    Attributes:
        executors: for live records; also more than it asked for, where it keeps what it has.
        replay: for replays, beside those.
        wanted: executors for live records that it asked for.
        reason: one line for a person; "" where it has what it asked for.
        codes: the same for programs: granted, yields, waits (others have not given up yet what it is to have),
            frozen, silent, paced (changed twice within a minute), quota.
        late: whether its promise is not kept with these, by what is expected.
    """

    executors: int
    replay: int
    wanted: int
    reason: str
    codes: tuple[str, ...]
    late: bool = False


class HeldGrant(NamedTuple):
    """What a job was granted last, and what it was seen to have.

    Attributes:
        executors: granted, for live records.
        changed: when those that it has or has asked for changed in the last minute, epoch seconds.
        cores: of an executor.
        replay: granted for replays, beside them.
        running: that it may have had by then, those for replays among them: what was there when it spoke, or what was
            granted before.
        taken: of those granted for live records what it has or has asked for; None: all.
    """

    executors: int
    changed: tuple[float, ...] = ()
    cores: int = 1
    replay: int = 0
    running: int = 0
    taken: int | None = None

    @property
    def occupied(self) -> int:
        """Executors that nobody else may have: it may start what it was granted, and uses what is there."""
        return max(self.executors + self.replay, self.running)


@dataclass(frozen=True)
class PoolMemory:
    """What a pool remembers.

    Attributes:
        held: by job.
        at: of the last division, epoch seconds; None before one.
        hour_s, day_s: core-seconds taken in the present hour and day.
        cut_at: by job, when it was last granted fewer than before, epoch seconds: what it has given up of them is told
            by what was seen later.
        floors: cores that each job has a right to, by job, also of those that have not spoken.
    """

    held: Mapping[str, HeldGrant] = field(default_factory=dict)
    at: float | None = None
    hour_s: float = 0.0
    day_s: float = 0.0
    cut_at: Mapping[str, float] = field(default_factory=dict)
    floors: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_json_values(cls, kept: dict[str, Any]) -> PoolMemory:
        """Rebuild it from what `dataclasses.asdict` made of it and JSON kept.

        Raises:
            KeyError, TypeError, ValueError: they are not such values.
        """
        held = {
            job: HeldGrant(  # older files hold fewer
                int(many),
                tuple(map(float, changed)),
                *(None if one is None else int(one) for one in others),  # type: ignore[arg-type]
            )
            for job, (many, changed, *others) in kept["held"].items()
        }
        at = None if kept["at"] is None else float(kept["at"])
        cut_at = {} if at is None else dict.fromkeys(held, at)  # older files do not tell: no later than that
        if "cut_at" in kept:
            cut_at = {job: float(when) for job, when in kept["cut_at"].items()}
        floors = {job: int(cores) for job, cores in kept.get("floors", {}).items()}
        return cls(held, at, float(kept["hour_s"]), float(kept["day_s"]), cut_at, floors)


def executors_needed(observed: float | None, forecast: float | None, most: float) -> int:
    """Return the executors that a policy is on the way to; 0 where it does not say.

    Args:
        observed: that the present load needs; None or NaN where the policy does not say.
        forecast: that the forecast load needs, likewise.
        most: that there may be.
    """
    return int(min(max((one for one in (observed, forecast) if one is not None and one == one), default=0), most))


def late_price(weight: float, budget_left: float) -> float:
    """Return what a late second costs: the weight once the budget is spent, `SPARED` of it while all is left."""
    return weight * (1 - (1 - SPARED) * min(max(budget_left, 0.0), 1.0))
