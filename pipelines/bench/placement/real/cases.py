"""The jobs whose placements are run, and what their records are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from configs.settings import ROOT
from pipelines.jobs.chains import adverts, words

FOLDER = ROOT / "configs" / "topologies" / "bench"


class RecordDraw(NamedTuple):
    """What a job is fed with.

    Attributes:
        draw: from number, time and chance to a record.
        keys_of: by operator whose records are results, from a record to the results at which it counts.
    """

    draw: Callable[[int, float, np.random.Generator], Any]
    keys_of: Mapping[str, Callable[[Any], Sequence[str]]]


FED: Mapping[str, RecordDraw] = {
    "events": RecordDraw(adverts.draw, {"count": adverts.result_keys}),
    "lines": RecordDraw(words.draw, {"count": words.result_keys, "top": words.rank_keys}),
}  # fmt: skip
"""By the source's name."""


def case_files() -> dict[str, Path]:
    """Return the file of each case by its name, in order."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}
