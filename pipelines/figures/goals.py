"""What each command is to reach, and where it says so in its data: `goals.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from configs.files import QUICK
from pipelines.figures.form import Finding


@dataclass(frozen=True)
class Goals:
    """What `goals.yaml` says of one command.

    Attributes:
        command: its words, in order; options of a command line may stand between them.
        measures: folders whose change makes its figures old.
        rows: what, goal, and the paths of the numbers in the command's data.
    """

    command: str
    measures: list[str]
    rows: list[dict[str, Any]]

    def fill_rows(self, data: Any, part: str = "") -> list[Finding]:
        """Fill the rows with what the command's data measured; `measured` is None where the data lack it or are NaN.

        Args:
            data: JSON values that the command found; `at`, `over`, `less`, `n` and `interval` of a row are places
            there.
            part: only rows whose number lies in this part of the data, its first key; "" for all.
        """
        return [
            Finding(row["what"], row.get("goal"), _measured(data, row), _at(data, row.get("n")), _both(data, row))
            for row in self.rows
            if not part or _keys(row["at"])[0] == part
        ]

    def list_part(self, part: str) -> list[str]:
        """List what the rows measure whose number lies in a part of the data, which is its first key."""
        return [row["what"] for row in self.rows if _keys(row["at"])[0] == part]


@cache
def read_goals() -> tuple[Goals, ...]:
    """Read the goals of all commands from `goals.yaml`, in its order; once per process."""
    content = yaml.load((Path(__file__).parent / "goals.yaml").read_text(encoding="utf-8"), QUICK)
    return tuple(Goals(command, entry["measures"], entry.get("rows", [])) for command, entry in content.items())


def goals_of(command: str) -> Goals | None:
    """Find the goals of a command line by its words, whatever options stand between them; None where it has none.

    Of several that match, the longest command is taken.
    """
    matches = [goals for goals in read_goals() if _within(goals.command.split(), command.split())]
    return max(matches, key=lambda goals: len(goals.command), default=None)


def _within(wanted: list[str], words: list[str]) -> bool:
    """Whether words occur in a line in their order; options may stand between them."""
    remaining = iter(words)
    return all(word in remaining for word in wanted)


def _measured(data: Any, row: dict[str, Any]) -> Any:
    value, below, other = (_at(data, row.get(key)) for key in ("at", "over", "less"))
    if value is None or ("over" in row and not below) or ("less" in row and other is None):
        return None
    return value / below if "over" in row else value - other if "less" in row else value


def _at(data: Any, path: str | list[str] | None) -> Any:
    for name in _keys(path or []):
        data = data.get(name) if isinstance(data, dict) else None
    return None if path is None or data != data else data  # NaN: nothing was measured


def _keys(path: str | list[str]) -> list[str]:
    return path.split(".") if isinstance(path, str) else path


def _both(data: Any, row: dict[str, Any]) -> list[float] | None:
    ends = [_at(data, end) for end in row.get("interval", [])]
    return ends if ends and None not in ends else None
