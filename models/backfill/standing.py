"""Where a backfill stands: it runs, waits, was given up or is done; each change is a new value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from models.backfill.given import BackfillPlanError
from models.backfill.plan import BackfillPlan


class BackfillState(StrEnum):
    """States of a backfill; the last two are final."""

    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DONE = "done"


@dataclass(frozen=True, eq=False)
class StandingBackfill:
    """A backfill under way.

    Attributes:
        name: of it.
        plan: newest.
        left: records to replay.
        state: of it.
        weight: share of what several leave over, above 0.
    """

    name: str
    plan: BackfillPlan
    left: float
    state: BackfillState = BackfillState.RUNNING
    weight: float = 1.0

    @property
    def extra_now(self) -> int:
        """Executors that it asks for now; none unless it runs."""
        return int(self.plan.extra[0]) if self.state is BackfillState.RUNNING else 0

    def advanced(self, records: float) -> StandingBackfill:
        """Return it after some records more were replayed; without any left it is done.

        Raises:
            BackfillPlanError: a negative number, or it does not run.
        """
        if records < 0 or (self.state is not BackfillState.RUNNING and records > 0):
            raise BackfillPlanError(
                f"{self.name}: {records:g} records replayed while {self.state}: it replays while running"
            )
        left = max(self.left - records, 0.0)
        return replace(self, left=left, state=self.state if left > 0 or records == 0 else BackfillState.DONE)

    def paused(self) -> StandingBackfill:
        """Return it paused: no executors, no records; its deadline stays where it is.

        Raises:
            BackfillPlanError: it is over.
        """
        return self._to(BackfillState.PAUSED)

    def resumed(self, plan: BackfillPlan) -> StandingBackfill:
        """Return it running by a plan that was made for what is left and for the time that is left.

        Raises:
            BackfillPlanError: it is over, or the plan is for other records.
        """
        if abs(plan.work.records - self.left) > 0.5:
            raise BackfillPlanError(
                f"{self.name}: {self.left:g} records are left, the plan is for {plan.work.records:g}"
            )
        return replace(self._to(BackfillState.RUNNING), plan=plan)

    def cancelled(self) -> StandingBackfill:
        """Return it given up: what is left is never replayed.

        Raises:
            BackfillPlanError: it is over.
        """
        return self._to(BackfillState.CANCELLED)

    def _to(self, state: BackfillState) -> StandingBackfill:
        if self.state in (BackfillState.CANCELLED, BackfillState.DONE):
            raise BackfillPlanError(
                f"{self.name} is {self.state}, which is final. Begin another backfill of what is left"
            )
        return replace(self, state=state)
