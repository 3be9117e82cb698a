"""Replays beside live: how a replayed range is written, compared with the live table and published into it."""
