"""A range of a stream counted again: written beside the live table, compared with it, published into it at once."""

from tidecast.backfill.into import replay_into

__all__ = ["replay_into"]
