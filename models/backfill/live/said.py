"""What is known of a replay by what its agents have said."""

from __future__ import annotations

from dataclasses import replace

from tidecast.orders import ReplayProgress

LEFT_NOTHING = ("done", "cancelled")
"""States after which an order of the same name is read from its beginning; one that failed goes on where it stood."""


def with_known_done(said: ReplayProgress, before: ReplayProgress | None) -> ReplayProgress:
    """Return what an agent says of a replay, with what is done as said before where it cannot know that yet.

    Until the replay's query, which goes on from its checkpoint, reports for the first time, an agent that begins says
    that nothing is done: by that the rest would be planned as all of it.

    Args:
        said: by an agent.
        before: what was known of the replay; None: nothing.
    """
    if said.done or said.state in LEFT_NOTHING:
        return said
    if before is None or before.state in LEFT_NOTHING or before.records != said.records:
        return said
    return replace(said, done=before.done)
