"""The one form of a figure: rows that answer goals, the data beside them, and when, where and by which code."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from operator import eq, ge, gt, le, lt
from pathlib import Path
from typing import Any

from configs.errors import CorrectableError

KEYS = ("command", "commit", "date", "machine", "seconds", "rows", "data")
GOAL = re.compile(r"(<=|>=|==|<|>|within) (-?\d+(?:\.\d+)?)")
_SIGNS = {"<=": le, ">=": ge, "==": eq, "<": lt, ">": gt, "within": le}


class FigureError(CorrectableError):
    """A figure is not in the form; the message names file, row and remedy."""


@dataclass(frozen=True)
class Finding:
    """One line of a table; `measured` is None where nothing was measured, `goal` where there is only a figure."""

    what: str
    goal: str | None
    measured: float | str | None
    n: int | None = None
    interval: list[float] | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the goal is met; None where there is none, or nothing was measured."""
        if self.goal is None or self.measured is None:
            return None
        asked = GOAL.fullmatch(self.goal)
        if asked is None or isinstance(self.measured, str):
            raise FigureError(
                f"{self.what!r}: goal {self.goal!r}, measured {self.measured!r}: a goal is '<= 1.05', '>= 0.5', '== 0' "
                "or 'within 3' (of zero), and what it judges a number."
            )
        measured = abs(self.measured) if asked[1] == "within" else self.measured
        return bool(_SIGNS[asked[1]](measured, float(asked[2])))

    def plain(self) -> dict[str, Any]:
        """As JSON values, in the order of the form."""
        return {"what": self.what, "goal": self.goal, "measured": self.measured, "holds": self.holds, **asdict(self)}


@dataclass(frozen=True)
class Figure:
    """What one command measured once; `seconds` and `commit` are None where they were not written down."""

    command: str
    commit: str | None
    date: str
    machine: str
    seconds: float | None
    rows: list[Finding]
    data: Any

    def text(self) -> str:
        """The file's text; one row per line, so that a change of one figure is a change of one line."""
        head = "".join(f' "{key}": {json.dumps(getattr(self, key), ensure_ascii=False)},\n' for key in KEYS[:5])
        rows = ",".join(f"\n  {json.dumps(row.plain(), ensure_ascii=False)}" for row in self.rows)
        end = "\n " if rows else ""
        data = json.dumps(self.data, indent=1, ensure_ascii=False).replace("\n", "\n ")
        return f'{{\n{head} "rows": [{rows}{end}],\n "data": {data}\n}}\n'


def read(path: Path) -> Figure:
    """The figure of a file.

    Raises:
        FigureError: not JSON, keys that the form does not know, or a verdict that goal and measured do not give.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FigureError(f"{path}: not JSON ({error}). Write it by its command's --json again.") from None
    if tuple(found) != KEYS:
        raise FigureError(f"{path}: its keys are {', '.join(found)}; {', '.join(KEYS)} are expected.")
    rows = []
    for given in found["rows"]:
        if unknown := set(given) - {"holds", *(field.name for field in fields(Finding))}:
            raise FigureError(f"{path}: {given.get('what')!r} has unknown {', '.join(sorted(unknown))}.")
        said = given.pop("holds")
        row = Finding(**given)
        if said != row.holds:
            raise FigureError(
                f"{path}: {row.what!r} says holds={said}, but {row.measured} {row.goal} is {row.holds}. It is "
                "computed, never set: write the figure by its command."
            )
        rows.append(row)
    return Figure(**{**found, "rows": rows})
