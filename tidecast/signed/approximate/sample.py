"""Samples that retractions go with: what decides is a record's identity, never a die that is thrown again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidecast.signed.columns import SignedError
from tidecast.signed.frame import FrameT

if TYPE_CHECKING:
    from pyspark.sql import Column


def sample(frame: FrameT, rate: float, by: tuple[str, ...], seed: int) -> FrameT:
    """Return the records whose identity falls into the sample, each of which with probability `rate`.

    Args:
        frame: what comes.
        rate: share that is kept, above 0 and below 1.
        by: columns that tell one record from every other, such as an order's number; a retraction has the same ones.
        seed: of the choice; another one gives another sample.

    Raises:
        SignedError: a column is unknown, the rate is no share, or it is a sample already.
    """
    if not 0 < rate < 1:
        raise SignedError(f"sample({rate}): give a rate above 0 and below 1")
    if frame.rate < 1:
        raise SignedError(f"a sample of a sample: take one of rate {rate * frame.rate:g} at once")
    if unknown := sorted({*by} - {*frame.keys, *frame.values}):
        raise SignedError(f"columns {unknown} of a sample: the records have {[*frame.keys, *frame.values]}")
    if not by:
        raise SignedError(f"sample({rate}): name the columns that tell one record from every other")
    return replace(frame, df=frame.df.where(_uniform(seed, by) < rate), rate=rate)


def _uniform(seed: int, by: tuple[str, ...]) -> Column:
    """A number in [0, 1) of the 53 highest bits of a hash."""
    from pyspark.sql import functions as F

    return F.shiftrightunsigned(F.xxhash64(F.lit(seed), *by), 11).cast("double") * 2.0**-53
