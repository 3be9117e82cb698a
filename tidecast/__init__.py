"""What a user's Spark job imports: `attach(query, job="orders")` reports metrics and, when asked, applies decisions."""

from typing import TYPE_CHECKING, Any

from tidecast.control import WALL, Clock

if TYPE_CHECKING:
    from tidecast.agent import Agent, attach

__all__ = ["WALL", "Agent", "Clock", "attach"]


def __getattr__(name: str) -> Any:
    # The agent brings the Kafka client (half a second); whoever reads only the messages does without.
    if name in ("Agent", "attach"):
        from tidecast import agent

        return getattr(agent, name)
    raise AttributeError(f"module 'tidecast' has no attribute {name!r}")
