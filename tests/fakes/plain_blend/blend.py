"""The blend as a pure forecaster."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from models.forecast.blend.blend import LEARN
from models.forecast.blend.experts import YESTERDAY
from models.forecast.blend.score_state import USUAL
from models.forecast.core.conformal import Conformal, ConformalState
from models.forecast.core.forecaster import State, Task, begin_state, check_loads, fill_gaps
from models.forecast.core.series import Floats, Series
from models.forecast.core.tracks import Carrying
from tests.fakes.plain_blend import weights
from tests.fakes.plain_blend.experts import Experts, Learnt


@dataclass(frozen=True, eq=False)
class Carried:
    """What the blend carries from step to step beside the newest values.

    Attributes:
        learnt: by the experts.
        errors: of the experts and the blend.
        spread: of the blend's errors.
        pending: (H, E, H) what the experts said at the H newest moments for 1 to H steps ahead.
        moods: (H,) of these moments: 0 calm, 1 excited.
        blended: for the next step; what was said is the last value instead while the blend is lost.
        quantiles: (H, levels) from the newest step on.
    """

    learnt: Learnt
    errors: weights.Errors
    spread: ConformalState
    pending: Floats
    moods: Floats
    blended: float
    quantiles: Floats


@dataclass(frozen=True)
class Blend(Carrying):
    """Any step, any length of history; it has no parameters beside its task, because it learns while it runs."""

    task: Task
    kind: str = "blend"

    @cached_property
    def experts(self) -> Experts:
        """What is blended."""
        return Experts(self.task)

    @cached_property
    def _conformal(self) -> Conformal:
        return Conformal(self.horizon, self.levels, self.task.day)

    @cached_property
    def _half_life(self) -> float:
        """Steps after which an expert's error counts half: half a day, but 96 to 576 steps."""
        return float(np.clip(self.task.day / 2, 96, 576))

    def state_after(self, history: Series) -> State:
        """The state after a history, which may be empty: as after stepping through its newest `LEARN` steps."""
        state = begin_state(self.task, history, self._context)
        if not state.seen:
            return state
        (carried,) = deque(self.along(history, state.seen), maxlen=1)
        return replace(state, carried=carried)

    def along(self, history: Series, seen: int) -> Iterator[Carried]:
        """What is carried after each of the newest `LEARN` of so many steps that a history has since its first load."""
        measured = np.isfinite(history.values)
        values = fill_gaps(check_loads(history.values), self.task)[-seen:]
        known = measured[-seen:][-LEARN:]
        learnt, said, levels, rests = self.experts.follow(self.experts.start(), values, known)
        carried = self._start(learnt)
        newest = values[-len(known) :]
        for i, value in enumerate(newest):
            measure = float(value) if known[i] else math.nan
            carried = self._moved(carried, said[i], measure, float(levels[i]), bool(rests[i]), i + 1)
            yield carried

    def next_carried(self, before: State, after: State, value: float) -> Carried:
        """What is carried one step later; `step` asks for it."""
        past: Carried | None = before.carried
        learnt = past.learnt if past is not None else self.experts.start()
        learnt, said, levels, rests = self.experts.follow(learnt, after.values, np.array([not math.isnan(value)]))
        carried = self._start(learnt) if past is None else replace(past, learnt=learnt)
        return self._moved(carried, said[0], value, float(levels[0]), bool(rests[0]), learnt.seen)

    def basis(self, state: State) -> str:
        """`blend`, "last value" while no regression has learnt anything or the load has just changed, or "none"."""
        if state.carried is None:
            return "none"
        return self.kind if state.carried.learnt.taught and not state.carried.errors.lost else "last value"

    @cached_property
    def _context(self) -> int:
        """What `Task.kept` must be asked for so that the experts can look back far enough."""
        return max(self.experts.reach - self.task.week - self.task.day, 0)

    def _start(self, learnt: Learnt) -> Carried:
        h, experts = self.horizon, self.experts.count
        unsaid = np.full((h, experts, h), np.nan)
        quantiles = np.full((h, len(self.levels)), np.nan)
        return Carried(
            learnt, weights.start(h, experts), self._conformal.start(), unsaid, np.zeros(h), math.nan, quantiles
        )  # fmt: skip

    def _moved(self, carried: Carried, said: Floats, value: float, level: float, rests: bool, seen: int) -> Carried:
        """One step later: judge what had been said of it, and blend what is said now."""
        errors, spread, mood = carried.errors, carried.spread, 0
        if not math.isnan(value):
            back = np.arange(self.horizon - 1, -1, -1), np.arange(self.horizon)
            spoken = spread.centres[back]
            told = carried.pending[back[0], :, back[1]]  # (H, E)
            if math.isfinite(carried.blended):
                own, still = carried.blended - value, told[0, 0] - value  # the first expert repeats the last value
                before = float(told[0, YESTERDAY]) - value
                errors, mood = weights.surprise(errors, own, still, USUAL * self._half_life, before)
            errors = weights.score(errors, told, spoken, carried.moods[back[0]], value, self._half_life)
            spread = self._conformal.score(spread, value)
        errors, blended = weights.blend(errors, said, mood)
        centre = said[0] if errors.lost else blended
        spread, quantiles = self._conformal.quantiles(spread, centre, level, seen)
        if rests:  # what these miss by has no size
            spread.units[-1] = spread.scales[-1] = 0.0
        pending = np.concatenate([carried.pending[1:], said[None]])
        moods = np.append(carried.moods[1:], mood)
        return Carried(carried.learnt, errors, spread, pending, moods, float(blended[0]), quantiles)
