"""The one form of a figure: rows that answer goals, the data beside them, and when, where and by which code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from operator import eq, ge, gt, le, lt
from pathlib import Path
from typing import Any

from configs.errors import CorrectableError

KEYS = ("command", "commit", "date", "machine", "seconds", "rows", "data")
COMMIT = re.compile(r"[0-9a-f]{40}(-dirty)?")
_NUMBER = r"-?\d+(?:\.\d+)?"
GOAL = re.compile(rf"(<=|>=|==|<|>|within) ({_NUMBER})|({_NUMBER}) to ({_NUMBER})")
_SIGNS = {"<=": le, ">=": ge, "==": eq, "<": lt, ">": gt, "within": le}


class FigureError(CorrectableError):
    """A figure file or its use in a page is wrong; the message names file, row and remedy."""


@dataclass(frozen=True)
class Finding:
    """One row of a figure.

    Attributes:
        what: was measured.
        goal: such as "<= 1.05", "0.8 to 1.2" or "within 3" (of zero); None where there is none.
        measured: a number or text; None where nothing was measured.
        n: sample size.
        interval: [low, high] of the number.
    """

    what: str
    goal: str | None
    measured: float | str | None
    n: int | None = None
    interval: list[float] | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the goal is met; None where there is none, or nothing was measured. NaN meets no goal.

        A goal is one of <=, >=, ==, <, > and a number in the row's unit, `within X`: |measured| ≤ X, or a range `X to
        Y` with both ends in it.

        Raises:
            FigureError: the goal has another form, or `measured` is text.
        """
        if self.goal is None or self.measured is None:
            return None
        asked = GOAL.fullmatch(self.goal)
        if asked is None or isinstance(self.measured, str):
            raise FigureError(
                f"{self.what!r}: goal {self.goal!r}, measured {self.measured!r}: a goal is '<= 1.05', '>= 0.5', '== 0',"
                " '0.8 to 1.2' or 'within 3' (of zero), and what it judges a number."
            )
        if asked[1] is None:
            return bool(float(asked[3]) <= self.measured <= float(asked[4]))
        measured = abs(self.measured) if asked[1] == "within" else self.measured
        return bool(_SIGNS[asked[1]](measured, float(asked[2])))

    def to_json(self) -> dict[str, Any]:
        """Convert the row to JSON values, `holds` among them, in the order of the file.

        Raises:
            FigureError: as `holds`.
        """
        return {"what": self.what, "goal": self.goal, "measured": self.measured, "holds": self.holds, **asdict(self)}


@dataclass(frozen=True)
class Figure:
    """What one run of a command measured.

    Attributes:
        command: the command line that measures again.
        commit: of the code; None where it is not known.
        date: ISO date.
        machine: cores, their speed and memory.
        seconds: the run took; None where it is not known.
        rows: what is judged and shown.
        data: JSON values, all that the command found.
    """

    command: str
    commit: str | None
    date: str
    machine: str
    seconds: float | None
    rows: list[Finding]
    data: Any

    @property
    def commits(self) -> list[str]:
        """Of all code that measured it, each once: its own, and what its data name as `commit` or `commits`."""
        return list(dict.fromkeys([*_commits({"commit": self.commit}), *_commits(self.data)]))

    def to_text(self) -> str:
        """Format the figure as the JSON text of its file, a line per row.

        Raises:
            FigureError: a row's goal cannot be judged.
            TypeError: `data` holds something that is no JSON value.
        """
        head = "".join(f' "{key}": {json.dumps(getattr(self, key), ensure_ascii=False)},\n' for key in KEYS[:5])
        rows = ",".join(f"\n  {json.dumps(row.to_json(), ensure_ascii=False)}" for row in self.rows)
        end = "\n " if rows else ""
        data = _lines(self.data, depth=1)
        return f'{{\n{head} "rows": [{rows}{end}],\n "data": {data}\n}}\n'


def _commits(data: Any) -> Iterator[str]:
    if isinstance(data, list):
        for one in data:
            yield from _commits(one)
    elif isinstance(data, dict):
        named = [data.get("commit"), *(data.get("commits") or [])]
        yield from (one for one in named if isinstance(one, str) and COMMIT.fullmatch(one))
        for one in data.values():
            yield from _commits(one)


def _lines(data: Any, depth: int) -> str:
    """JSON with a line per key and list item of the outer two levels, so that a diff shows what was measured anew."""
    if depth > 2 or not isinstance(data, dict | list) or not data:
        return json.dumps(data, ensure_ascii=False)
    begin, end = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(data, list):
        return "[" + ",".join(begin + _lines(item, depth + 1) for item in data) + end + "]"
    keys = (f"{json.dumps(str(key), ensure_ascii=False)}: {_lines(item, depth + 1)}" for key, item in data.items())
    return "{" + ",".join(begin + key for key in keys) + end + "}"


def read_figure(path: Path) -> Figure:
    """Read a figure from its JSON file and check that `holds` follows from goal and measured.

    Raises:
        FigureError: not JSON, other keys than KEYS or those of a `Finding`, or a `holds` that goal and measured do not
            give.
        OSError: the file cannot be read.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FigureError(f"{path}: not JSON ({error}). Write it by its command's --json again.") from None
    _check_keys(path, "it", content, KEYS)
    rows = []
    for number, entry in enumerate(content["rows"]):
        _check_keys(path, f"row {number}", entry, (*(field.name for field in fields(Finding)), "holds"))
        stated = entry.pop("holds")
        row = Finding(**entry)
        if stated != row.holds:
            raise FigureError(
                f"{path}: {row.what!r} says holds={stated}, but {row.measured} {row.goal} is {row.holds}. It is "
                "computed, never set: write the figure by its command."
            )
        rows.append(row)
    return Figure(**{**content, "rows": rows})


def _check_keys(path: Path, where: str, found: Any, wanted: tuple[str, ...]) -> None:
    if not isinstance(found, dict) or set(found) != set(wanted):
        keys = ", ".join(found) if isinstance(found, dict) else found
        raise FigureError(
            f"{path}: {where} has {keys}; the keys {', '.join(wanted)} are expected. Write it by its command's --json."
        )
