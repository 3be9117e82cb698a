"""What a user holds: signed records with their operators as methods, the same for a table and for a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from tidecast.signed import join, linear, windows
from tidecast.signed.aggregate import Emission, aggregate, distinct, totals
from tidecast.signed.approximate.approximations import Approximation
from tidecast.signed.approximate.estimates import estimates
from tidecast.signed.approximate.sample import sample
from tidecast.signed.columns import check_user_columns
from tidecast.signed.frame import Frame
from tidecast.signed.reductions import Reduction
from tidecast.signed.sessions.assign import sessions
from tidecast.signed.source import sign

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class SignedFrame(Frame):
    """Signed records of one relation. A plan is a function from such frames to such a frame.

    Functions and expressions that are given read the records' columns only: they must be deterministic and never look
    at a clock, so that a retraction takes the way of its insertion. All methods raise SignedError where an operator
    has no meaning.
    """

    def filter(self, condition: str | Column) -> Self:
        """Keep the records for which the condition is true."""
        return replace(self, df=self.df.filter(condition))

    def select(self, *columns: str | Column) -> Self:
        """Replace the value by these columns; key, window, times and sign stay."""
        return linear.select(self, columns)

    def with_columns(self, **columns: Column) -> Self:
        """Add columns to the value, or replace them."""
        check_user_columns([*columns])
        return replace(self, df=self.df.withColumns(columns))

    def explode(self, name: str, array: Column) -> Self:
        """Repeat each record once per element of an array, in a column of this name."""
        return linear.explode(self, name, array)

    def transform(self, function: Callable[[DataFrame], DataFrame]) -> Self:
        """Apply a function of DataFrames that takes each record by itself and keeps the reserved columns."""
        return linear.transform(self, function)

    def rekey(self, *keys: str, keep_window: bool = False) -> Self:
        """Take other columns for the key; what was of it is of the value then."""
        return linear.rekey(self, keys, keep_window)

    def union(self, *others: Self) -> Self:
        """Take the others' records as well: multiplicities add up."""
        return linear.union((self, *others))

    def minus(self, other: Self) -> Self:
        """Take the other's multiplicities off; what it has in excess stays as a net below 0."""
        return linear.difference(self, other)

    def window(self, size_ms: int, slide_ms: int | None = None) -> Self:
        """Put each record into all windows that hold its event time; without a slide they lie side by side."""
        return windows.window(self, size_ms, slide_ms)

    def sessions(self, gap_ms: int, name: str = "") -> Self:
        """Put each record into its key's session, which a pause of `gap_ms` ends; `name` is that of its counts."""
        return sessions(self, gap_ms, name)

    def aggregate(
        self, emission: Emission = "changelog", name: str = "", /, **reductions: Reduction
    ) -> Self:  # fmt: skip
        """Reduce each key, within its window if it has one, to one record; `name` is that of its counts."""
        return aggregate(self, reductions, emission, name)

    def distinct(self, emission: Emission = "changelog", name: str = "") -> Self:
        """Keep each value once per key, within its window if it has one."""
        return distinct(self, emission, name)

    def totals(self, **reductions: Reduction) -> DataFrame:
        """Return counts, sums and means per key as they stand, with net and version, for a sink that merges by key."""
        return totals(self, reductions)

    def sample(self, rate: float, *by: str, seed: int = 0) -> Self:
        """Keep a share of the records, by what tells one from another, so that a retraction goes with its record."""
        return sample(self, rate, by, seed)

    def estimates(self, **approximations: Approximation) -> DataFrame:
        """Return approximate results per key as they stand, each with its bound, for a sink that merges by key."""
        return estimates(self, approximations)

    def join(self, other: Self, bound_ms: int | None = None) -> Self:
        """Pair the records of equal keys, nulls too, if bounded those whose event times are at most so far apart."""
        return join.join(self, other, bound_ms)


def signed(
    df: DataFrame, time: str, keys: Sequence[str] = (), *, mult: str | Column | None = None,
    ingested: str | None = None, origin: str = "live", delay_ms: int = 0, lateness_ms: int = 0,
) -> SignedFrame:  # fmt: skip
    """Return a table or a stream as signed records; all its columns stay as they are.

    Args:
        df: table or stream.
        time: column of the event time: a timestamp, or ms since the epoch. A retraction has that of what it retracts.
        keys: columns of the key.
        mult: column or expression of the sign, +1 or -1; None: all are insertions.
        ingested: column of the ingestion time, likewise; None: the event time stands for it.
        origin: `live` or `replay`.
        delay_ms: in a stream, how far behind the newest event time a record may come and still be expected.
        lateness_ms: in a stream, how much longer it is taken, to correct what was final.

    Raises:
        SignedError: a column is reserved, missing or of the wrong type, or a number is below 0 or not whole.
    """
    df = sign(df, time, mult, ingested, origin, delay_ms, lateness_ms)
    made = SignedFrame(df, lateness_ms=lateness_ms, retracting=mult is not None)
    return made.rekey(*keys)
