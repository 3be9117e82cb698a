"""Replays beside a live query: an older range of its topics through the same plan, admitted at the rate live leaves."""

from tidecast.orders import ReplayOrder
from tidecast.replay.replayable import Replayable
from tidecast.replay.source import replay_stream

__all__ = ["ReplayOrder", "Replayable", "replay_stream"]
