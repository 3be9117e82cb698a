"""A range of a stream counted again: kept beside what readers see, compared with it, and published into it."""

from tidecast.backfill.into import replay_into
from tidecast.backfill.topic.into import replay_into_topic

__all__ = ["replay_into", "replay_into_topic"]
