"""A signed DataFrame with what is known of it: its key, its window, and how its time is watched in a stream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from tidecast.signed.columns import END, HIDDEN, NET, RESERVED, START, SignedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Clock = Literal["event", "window", "loose"]
"""What the watermarked column holds: the event time, the window's last instant, or a bound that is below both."""


@dataclass(frozen=True)
class Frame:
    """Signed records of one relation, as a table or as a stream.

    Attributes:
        df: with the user's columns, the reserved ones and, in a stream, the hidden ones.
        keys: names of the key's columns; all others of the user's are the value.
        windowed: whether the key is within a window.
        clock: what the watermarked column holds.
        lateness_ms: how far behind its window's end the watermark has to be for a record to be late.
        unwindowable: why no window may be put around the records; empty where one may.
        retracting: whether a record may take another one back.
        rate: share of all records that these are a sample of; 1: all of them.
    """

    df: DataFrame
    keys: tuple[str, ...] = ()
    windowed: bool = False
    clock: Clock = "event"
    lateness_ms: int = 0
    unwindowable: str = ""
    retracting: bool = False
    rate: float = 1.0

    @property
    def streaming(self) -> bool:
        """Whether it is a stream."""
        return self.df.isStreaming

    @property
    def values(self) -> tuple[str, ...]:
        """Names of the user's columns that are not of the key."""
        own = {*self.group, *RESERVED, *HIDDEN}
        return tuple(name for name in self.df.columns if name not in own)

    @property
    def group(self) -> tuple[str, ...]:
        """Names of the columns that a result is one of: the key's and the window's."""
        return (*self.keys, *((START, END) if self.windowed else ()))

    @property
    def reserved(self) -> tuple[str, ...]:
        """Names of the columns that every operator hands on."""
        window = (START, END) if self.windowed else ()
        return (*window, *RESERVED, *(HIDDEN if self.streaming else ()))

    @property
    def changes(self) -> DataFrame:
        """The change log: the user's columns, the window's if there is one, event and ingestion time, sign, origin.

        In a stream it is to be written in output mode `append`.
        """
        return self.df.drop(*HIDDEN)

    def relation(self) -> DataFrame:
        """Return what the changes of a table add up to: one row per fact, with `_net` instead of sign and arrival.

        Raises:
            SignedError: it is a stream, which adds up to something at no time.
        """
        if self.streaming:
            raise SignedError("relation() of a stream: write its changes, and add up what was written")
        return net(self.df)

    def having(self, df: DataFrame) -> Self:
        """Return the same with another DataFrame, after a check that no operator's column is missing.

        Raises:
            SignedError: a column of the key, the window or the reserved ones is missing, or it is a stream no more.
        """
        if missing := sorted({*self.keys, *self.reserved} - {*df.columns}):
            raise SignedError(f"columns {missing} are gone: keep the key and the reserved columns, or rekey before")
        return replace(self, df=df)


def check_whole(what: str, *frames: Frame) -> None:
    """Refuse a sample where all records are needed.

    Raises:
        SignedError: one of the frames is a sample.
    """
    if any(frame.rate < 1 for frame in frames):
        raise SignedError(f"{what} of a sample says nothing of all records: take the sample behind it, or estimates()")


FrameT = TypeVar("FrameT", bound=Frame)


def net(changes: DataFrame) -> DataFrame:
    """Return the relation that a table of changes adds up to: `_net` per fact, without those whose net is 0.

    Args:
        changes: with a sign; all other columns but ingestion time and origin make the fact.
    """
    from pyspark.sql import functions as F

    from tidecast.signed.columns import INGESTION_TIME, MULT, ORIGIN

    fact = [name for name in changes.columns if name not in (MULT, INGESTION_TIME, ORIGIN, *HIDDEN)]
    return changes.groupBy(*fact).agg(F.sum(MULT).alias(NET)).where(F.col(NET) != 0)
