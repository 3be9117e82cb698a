"""The cells of the measurement: a session of one arm each, kept as files, so that a call goes on where one stopped."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

FILE = "cell.json"
ALONE, OURS, PAPER = "alone", "ours", "paper"
"""Arms: live records without a replay; a replay at the rate that the autoscaler's controller decides; the same without
the forecast, by the paper's rule alone."""

Found = Mapping[str, Any]
"""What a session showed (`recorded.read_session`)."""


class MeasuredCell(NamedTuple):
    """A session: the row of the table that it is for, live load, arm, number of the turn, and minutes.

    The minutes are the length of the session, or of the work in it; cells of other minutes are other cells.
    """

    row: str
    load: str
    arm: str
    turn: int
    minutes: float

    @property
    def name(self) -> str:
        """Of its folder and of its job."""
        return f"{self.row}-{self.load}-{self.arm}-{self.turn:02}-{self.minutes:g}m".replace(":", "-").replace(" ", "-")


def take_turns(row: str, load: str, arms: Sequence[str], turns: int, minutes: float) -> list[MeasuredCell]:
    """Plan sessions in which all arms have a turn each, every second turn in reverse, so that none is always first."""
    order = [(turn, arm) for turn in range(turns) for arm in arms[:: -1 if turn % 2 else 1]]
    return [MeasuredCell(row, load, arm, turn, minutes) for turn, arm in order]


def read_kept(folder: Path) -> dict[MeasuredCell, Found]:
    """Read all finished cells of a folder, in the order of their names.

    Raises:
        OSError, ValueError, KeyError: a file cannot be read, or is no cell's.
    """
    kept = {}
    for path in sorted(folder.glob(f"*/{FILE}")):
        found = json.loads(path.read_text())
        kept[MeasuredCell(**found["cell"])] = found["found"]
    return kept


def keep(folder: Path, cell: MeasuredCell, found: Found) -> None:
    """Write a finished cell into its own folder below `folder`.

    Raises:
        OSError: it cannot be written.
    """
    text = json.dumps({"cell": cell._asdict(), "found": found})
    (folder / cell.name / FILE).write_text(text)


def forget(folder: Path, chosen: Collection[tuple[str, str]]) -> None:
    """Delete the kept cells of some rows and loads; the others stay."""
    for cell in read_kept(folder):
        if (cell.row, cell.load) in chosen:
            shutil.rmtree(folder / cell.name)


def of_row(kept: Mapping[MeasuredCell, Found], row: str, load: str, minutes: float) -> dict[str, list[Found]]:
    """Return what the sessions of a row and load showed, by arm in the order of turns; those of other minutes not."""
    arms: dict[str, list[Found]] = {}
    for cell in sorted(kept, key=lambda cell: cell.turn):
        if (cell.row, cell.load, cell.minutes) == (row, load, minutes):
            arms.setdefault(cell.arm, []).append(kept[cell])
    return arms


def latency_limit_s(kept: Mapping[MeasuredCell, Found], cell: MeasuredCell, most_ratio: float) -> float | None:
    """Return the p99 that live records may come to in a cell: so many times that of its load's first session alone.

    None before there was such a session.
    """
    first = kept.get(cell._replace(arm=ALONE, turn=0))
    return None if first is None or first["p99_s"] is None else most_ratio * first["p99_s"]
