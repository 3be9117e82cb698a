"""What is said to whoever runs the autoscaler: each thing once, not at every look."""

from __future__ import annotations


class SaidOnce:
    """What was said last about each thing."""

    def __init__(self) -> None:
        """Nothing was said yet."""
        self._said: dict[str, str] = {}

    def say(self, about: str, words: str) -> list[str]:
        """Return the line that says it, or none where that was said last; without `words` it is over."""
        if self.of(about) == words:
            return []
        self._said[about] = words
        return [f"{about}: {words}" if words else f"{about}: over"]

    def of(self, about: str) -> str:
        """Return what was said last; "" where nothing was, or it is over."""
        return self._said.get(about, "")

    def forget(self, about: str) -> None:
        """Let the same words be said again."""
        self._said.pop(about, None)
