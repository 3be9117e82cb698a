"""What a user's Spark job imports: `attach(query, job="orders")` reports metrics and, when asked, applies decisions."""

from importlib import metadata
from pathlib import Path
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
    if name == "__version__":
        return _find_version()
    raise AttributeError(f"module 'tidecast' has no attribute {name!r}")


def _find_version() -> str:
    """The wheel's; "source" in a clone, whose metadata are those of its setup, and where none is installed."""
    try:
        version = metadata.version(__name__)
    except metadata.PackageNotFoundError:
        return "source"
    return "source" if (Path(__file__).parents[1] / ".git").exists() else version
