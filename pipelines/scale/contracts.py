"""The jobs' contracts while the query runs: accepted in the driver, read by the workers from one small file.

A worker of the query is another process and keeps nothing from batch to batch, so the driver looks after the folder
and puts what it accepts into a file beside the checkpoint, which a worker looks at with every micro-batch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from configs.contract import Contract, read_contracts


def accepted_file(checkpoint: Path) -> Path:
    """Where the accepted contracts of a query lie."""
    return checkpoint.with_name(f"{checkpoint.name}.contracts.json")


@dataclass(frozen=True)
class Accepted:
    """The contracts that a query goes by, as the driver last wrote them down."""

    file: Path

    def all(self) -> dict[str, Contract]:
        """By job; none before the driver wrote any."""
        try:
            stat = self.file.stat()
        except OSError:
            return {}
        return _read(self.file, (stat.st_mtime_ns, stat.st_ino, stat.st_size))

    def of(self, job: str) -> Contract | None:
        """A job's contract; None where it has none."""
        return self.all().get(job)


@lru_cache(maxsize=1)
def _read(file: Path, state: tuple[int, ...]) -> dict[str, Contract]:
    try:
        return {job: Contract.model_validate(kept) for job, kept in json.loads(file.read_text()).items()}
    except (OSError, ValueError):  # another version's; the driver writes it anew with its first look
        return {}


class ContractWatch:
    """The driver's part: looks at the folder and accepts what is right in it.

    A contract that is no longer right stays as it was accepted last, also over a restart.
    """

    def __init__(self, folder: Path, accepted: Accepted, announce: Callable[[Contract], None]) -> None:
        """`announce` makes a contract's text known before a decision names its hash; a RuntimeError: not now."""
        self._folder, self._accepted, self._announce = folder, accepted, announce
        self._announced: set[str] = set()
        self._reported: dict[str, str] = {}

    def look(self) -> list[str]:
        """Accept what has changed in the folder; what that was, and what is wrong there, in words and once."""
        if not self._folder.is_dir():
            return self._once("contracts", f"{self._folder} is no folder; those that were accepted stay")
        found, wrong = read_contracts(self._folder)
        before = self._accepted.all()
        now = {**found, **{job: before[job] for job in wrong if job in before}}
        lines = self._announce_new(now)
        if now != before or not self._accepted.file.exists():
            replaced(self._accepted.file, {job: contract.model_dump(mode="json") for job, contract in now.items()})
        for job in sorted({*before, *now, *wrong}):
            words = f"contract {now[job].hash}" if job in now else "nothing is decided for it"
            if job in wrong:
                words = f"{wrong[job]} Until then {words}{' stays' if job in now else ''}."
            elif job not in now:
                words = f"its contract is gone; {words}, its executors stay"
            lines += self._once(job, words)
        return lines

    def _announce_new(self, contracts: dict[str, Contract]) -> list[str]:
        for job, contract in contracts.items():
            if contract.hash in self._announced:
                continue
            try:
                self._announce(contract)
                self._announced.add(contract.hash)
            except RuntimeError as error:
                return self._once(job, f"contract {contract.hash}, which the broker has not yet: {error}")
        return []

    def _once(self, about: str, words: str) -> list[str]:
        if self._reported.get(about) == words:
            return []
        self._reported[about] = words
        return [f"{about}: {words}"]


def replaced(file: Path, data: Any) -> None:
    """Write JSON to a file that others read meanwhile: they see the old or the new, never a part."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}")
    new.write_text(json.dumps(data))
    os.replace(new, file)
