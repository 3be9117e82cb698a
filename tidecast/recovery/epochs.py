"""The epochs of a live query: each begins at the newest records with a checkpoint of its own, and leaves a gap.

They stand in `<checkpoint>.epochs.json` beside the first one's checkpoint; that of epoch 2 is `<checkpoint>.2`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tidecast.fields import MessageError
from tidecast.messages import decode, encode
from tidecast.orders import ReplayOrder
from tidecast.recovery.checkpoint import RecoveryError
from tidecast.spark.file_system import write_whole


@dataclass(frozen=True)
class LiveEpoch:
    """One of them.

    Attributes:
        number: of the live results' versions (`MergeSink.epoch`).
        whole_from: event time, ms, from which on windows begin of which it sees all records.
        final_s: wall time, epoch seconds, from which on no record of the gap's range is expected.
        gap: the order that fills what it left out.
        stamped_s: wall time, epoch seconds; records that are stamped then or later are none of the gap's range. 0: it
            is not known.
    """

    number: int
    whole_from: int
    final_s: float
    gap: ReplayOrder
    stamped_s: float = 0.0


def read_epochs(checkpoint: Path) -> list[LiveEpoch]:
    """Return the epochs that began after an outage, oldest first.

    Raises:
        RecoveryError: their file is broken.
        OSError: it cannot be read.
    """
    path = _file(checkpoint)
    if not path.exists():
        return []
    try:
        found = [{**one, "gap": decode(ReplayOrder, json.dumps(one["gap"]))} for one in json.loads(path.read_text())]
        return [LiveEpoch(**one) for one in found]
    except (ValueError, KeyError, TypeError, MessageError) as error:
        raise RecoveryError(f"{path} is no list of epochs ({error}): restore it, or begin with a new table") from None


def write_epochs(checkpoint: Path, epochs: Sequence[LiveEpoch]) -> None:
    """Put them in place of those before: all or nothing, also where the computer fails meanwhile.

    Raises:
        OSError: they cannot be written; those before stand then.
    """
    path = _file(checkpoint)
    path.parent.mkdir(parents=True, exist_ok=True)
    told = [{**asdict(one), "gap": json.loads(encode(one.gap))} for one in epochs]
    write_whole(path, json.dumps(told, indent=1))


def checkpoint_of(checkpoint: Path, epochs: Sequence[LiveEpoch]) -> Path:
    """Return the checkpoint of the newest epoch."""
    return checkpoint.with_name(f"{checkpoint.name}.{epochs[-1].number}") if epochs else checkpoint


def _file(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}.epochs.json")
