"""How long a batch takes, learned from batches: an overhead that no executor shortens, and work that they share."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from models.policy.copies import copy_with

KEPT = 0.95
"""Share of what is known that a batch leaves, in the direction in which it tells something: about 20 batches count."""
MOST_CORRECTION = 20.0
"""What is learned stays within this factor of the contract's first guess."""
MOST_SURPRISE = 1.0
"""A batch off by more than this logarithm moves what is believed as one that is off by just so much."""
GUESS_WEIGHT = 0.3
"""What the first guess of the overhead, or of the service time, weighs beside a batch of nothing else."""
LEAST_GUESS_S = 0.01
"""An overhead that is guessed to be less counts as this guess: a guess of zero could never be corrected."""


@dataclass(frozen=True)
class BatchTime:
    """Batch time of a streaming query: `overhead_s + per_record_s * rows / slots`, in seconds, and how sure that is.

    Attributes:
        overhead_s: seconds of a batch that no executor shortens.
        per_record_s: seconds of one slot per record.
        sure_overhead, sure_both, sure_record: entries of the information matrix of the logarithms of the two, where a
            batch's logarithm has an error of 1.
        guessed_overhead_s, guessed_per_record_s: the contract's first guess.
    """

    overhead_s: float
    per_record_s: float
    sure_overhead: float
    sure_both: float
    sure_record: float
    guessed_overhead_s: float
    guessed_per_record_s: float

    @classmethod
    def guess(cls, overhead_s: float, per_record_s: float) -> BatchTime:
        """Return a first guess that no batch has corrected yet.

        Args:
            overhead_s: at least 0; less than `LEAST_GUESS_S` counts as that.
            per_record_s: above 0.
        """
        overhead_s = max(overhead_s, LEAST_GUESS_S)
        return cls(overhead_s, per_record_s, GUESS_WEIGHT, 0.0, GUESS_WEIGHT, overhead_s, per_record_s)

    def with_guess(self, guess: BatchTime, slot: float) -> BatchTime:
        """Return the same, to be learned within the bounds of another first guess from the next batch on.

        `slot` is by what one slot takes longer for a record, as slots are counted from now on.
        """
        return copy_with(
            self, per_record_s=self.per_record_s * slot, guessed_overhead_s=guess.guessed_overhead_s,
            guessed_per_record_s=guess.guessed_per_record_s,
        )  # fmt: skip

    @classmethod
    def from_json_values(cls, values: dict[str, Any]) -> BatchTime:
        """Rebuild from the fields of one; what an earlier release learned, without how sure it was, is a first guess.

        Raises:
            KeyError: `overhead_s` or `per_record_s` is missing.
            TypeError: one of them is no number.
        """
        known = {field.name for field in fields(cls)}
        begun = cls.guess(values["overhead_s"], values["per_record_s"])
        return copy_with(begun, **{name: value for name, value in values.items() if name in known})


def learn(
    rows: float, slots: float, duration_s: float,
    overhead_s: float, per_record_s: float, sure_overhead: float, sure_both: float, sure_record: float,
    guessed_overhead_s: float, guessed_per_record_s: float,
) -> tuple[float, float, float, float, float]:  # fmt: skip
    """Return the first five fields of a `BatchTime` (which the last seven arguments are) after one more warm batch.

    Recursive least squares (an extended Kalman filter) in the logarithms of overhead, service time and duration, since
    all three scatter by shares, with Huber's weights and directional forgetting (Cao and Schwartz, "A directional
    forgetting algorithm based on the decomposition of the information matrix", Automatica 36, 2000): a batch lets that
    be forgotten of which it tells anew. So hours of one load do not undo what a range of loads told: how the time of a
    batch is to be parted into overhead and work. Plain numbers, because the twin compiles it.

    The batch had `rows` records on `slots` parallel slots and took `duration_s` seconds, all above 0 (not checked).
    """
    work_s = per_record_s * rows / slots
    error = math.log(duration_s / (overhead_s + work_s))
    weight = min(1.0, MOST_SURPRISE / max(abs(error), MOST_SURPRISE))
    fixed = overhead_s / (overhead_s + work_s)
    work = 1.0 - fixed
    of_fixed, of_work = sure_overhead * fixed + sure_both * work, sure_both * fixed + sure_record * work
    forgotten = (1.0 - KEPT) / (fixed * of_fixed + work * of_work)
    sure_overhead += weight * (fixed * fixed - forgotten * of_fixed * of_fixed)
    sure_both += weight * (fixed * work - forgotten * of_fixed * of_work)
    sure_record += weight * (work * work - forgotten * of_work * of_work)
    step = weight * error / (sure_overhead * sure_record - sure_both * sure_both)
    overhead_s *= math.exp(step * (sure_record * fixed - sure_both * work))
    per_record_s *= math.exp(step * (sure_overhead * work - sure_both * fixed))
    low, high = 1.0 / MOST_CORRECTION, MOST_CORRECTION
    overhead_s = min(max(overhead_s, guessed_overhead_s * low), guessed_overhead_s * high)
    per_record_s = min(max(per_record_s, guessed_per_record_s * low), guessed_per_record_s * high)
    return overhead_s, per_record_s, sure_overhead, sure_both, sure_record


def learn_from_batch(
    known: BatchTime, rows: float, slots: float, duration_s: float, tasks_s: float | None = None
) -> BatchTime:
    """Return what is known after one more batch; nothing new without rows, slots or a duration.

    Args:
        known: so far.
        rows: records of the batch.
        slots: parallel slots that it ran on.
        duration_s: its duration.
        tasks_s: seconds in which its tasks ran, which is the most that its work took; None: not measured.
    """
    if rows <= 0 or slots <= 0 or duration_s <= 0:
        return known
    so_far = tuple(vars(known).values())
    known = BatchTime(*learn(rows, slots, duration_s, *so_far), *so_far[5:])
    return known if not tasks_s else _bounded(known, tasks_s * slots / rows)


def _bounded(known: BatchTime, most_s: float) -> BatchTime:
    """What is known, where a record took `most_s` seconds of a slot at most: the rest of a batch is overhead.

    Batches of one size tell the sum of both only, and a guess of the overhead that is far too low never finds out: the
    same filter as in `learn`, which sees the work alone, and only where more of it is believed than can be.
    """
    error = math.log(most_s / known.per_record_s)
    if error >= 0:
        return known
    weight, both = min(1.0, MOST_SURPRISE / -error), KEPT * known.sure_both
    sure_overhead = known.sure_overhead - (1.0 - KEPT) * known.sure_both**2 / known.sure_record
    sure_record = KEPT * known.sure_record + weight
    step = weight * error / (sure_overhead * sure_record - both * both)
    return copy_with(
        known,
        overhead_s=_near(known.overhead_s * math.exp(-step * both), known.guessed_overhead_s),
        per_record_s=_near(known.per_record_s * math.exp(step * sure_overhead), known.guessed_per_record_s),
        sure_overhead=sure_overhead, sure_both=both, sure_record=sure_record,
    )  # fmt: skip


def _near(value: float, guess: float) -> float:
    return min(max(value, guess / MOST_CORRECTION), guess * MOST_CORRECTION)
