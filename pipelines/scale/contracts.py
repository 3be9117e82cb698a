"""The jobs' contracts (latency target, executor bounds): accepted by the driver, read by workers from one file."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from configs.contract import Contract, read_contracts
from configs.settings import Settings
from models.contract.declared import TermsError
from models.policy.core.sustained import checked_terms
from pipelines.kafka.publisher import Publisher
from pipelines.scale.once import SaidOnce
from pipelines.watched import VanishedFiles, files_in, is_new, read_changed
from pipelines.whole_file import write_json
from tidecast.messages import ContractText


def accepted_file(checkpoint: Path) -> Path:
    """Return the path of the JSON file, beside the checkpoint, that holds a query's accepted contracts."""
    return checkpoint.with_name(f"{checkpoint.name}.contracts.json")


@dataclass(frozen=True)
class AcceptedContracts:
    """The contracts that the driver accepted, as last written to `file`; read anew when the file changes."""

    file: Path

    def all(self) -> dict[str, Contract]:
        """Return the accepted contracts by job; empty before there are any, or if the file cannot be parsed.

        While it cannot be read, those that this process read last.
        """
        return read_changed(self.file, _read, {})

    def of(self, job: str) -> Contract | None:
        """Return a job's contract; None if it has none."""
        return self.all().get(job)


def _read(file: Path) -> dict[str, Contract]:
    try:
        return {job: Contract.model_validate(kept) for job, kept in json.loads(file.read_text()).items()}
    except ValueError:  # another version's; the driver writes it anew with its first look
        return {}


class ContractWatch:
    """The driver's part: reads the contracts' folder and writes the valid contracts to the `accepted` file.

    A contract that becomes invalid stays as it was accepted last, also over a restart, unless this release finds that
    one impossible, too; one whose file is deleted goes, 10 s later (`VanishedFiles`).
    """

    def __init__(self, folder: Path, accepted: AcceptedContracts, announce: Callable[[Contract], None]) -> None:
        """Watch `folder`; `announce` publishes a contract's text, and is called again after a RuntimeError."""
        self._folder, self._accepted, self._announce = folder, accepted, announce
        self._announced: set[str] = set()
        self._refused: set[str] = set()
        self._said = SaidOnce()
        self._seen: object = None
        self._vanished = VanishedFiles()

    def update(self) -> list[str]:
        """Read the contracts' folder if a file has changed, announce new contracts, and rewrite the accepted file.

        A contract (a job's YAML file of latency target and executor bounds) whose announcement raised RuntimeError is
        accepted all the same, and announced at a later call.

        Returns:
            One line per change or problem, each said once, such as `<job>: contract <hash>`.

        Raises:
            OSError: a contract's file cannot be looked at, or the accepted file not written.
            Exception: whatever else than RuntimeError `announce` raises; nothing is accepted in this call then.
        """
        files, trouble = files_in(self._folder)
        if trouble:
            return self._said.say("contracts", f"{self._folder} {trouble}; those that were accepted stay")
        self._said.forget("contracts")
        before = self._accepted.all()
        away = self._vanished.look({*before} - {*files}, time.monotonic())
        seen = files, away
        announced = all(contract.hash in self._announced for contract in before.values())
        if seen == self._seen and announced and self._accepted.file.exists() and not is_new(files):
            return []
        read, wrong = read_contracts(self._folder)
        wrong |= {job: problem for job, contract in read.items() if (problem := _impossible(contract))}
        valid = {job: contract for job, contract in read.items() if job not in wrong}
        stay = {job: before[job] for job in {*wrong, *away} if job in before and not _impossible(before[job])}
        now = {**valid, **stay}
        # Readers take the newest of a job: one that is put back has to be said again.
        self._announced -= {contract.hash for contract in before.values()} - {one.hash for one in now.values()}
        lines = self._announce_new(now)
        kept, known = ({job: one.to_json_values() for job, one in jobs.items()} for jobs in (now, before))
        if kept != known or not self._accepted.file.exists():
            write_json(self._accepted.file, kept)
        for job in sorted({*before, *now, *wrong}):
            words = f"contract {now[job].hash}" if job in now else "nothing is decided for it"
            if job in wrong:
                words = f"{wrong[job]} Until then {words}{' stays' if job in now else ''}."
            elif job not in now:
                words = f"its contract is gone; {words}, its executors stay"
            lines += self._said.say(job, words)
        if not before and not now and not wrong:
            lines += self._said.say("contracts", f"there is none in {self._folder}; nothing is decided for any job")
        self._seen = seen  # last: what failed before this is tried again at the next look
        return lines

    def _announce_new(self, contracts: dict[str, Contract]) -> list[str]:
        """Announce until one fails, which may take seconds; one that failed before lets the others go first."""
        fresh = [(job, contract) for job, contract in contracts.items() if contract.hash not in self._announced]
        for job, contract in sorted(fresh, key=lambda item: item[1].hash in self._refused):
            try:
                self._announce(contract)
                self._announced.add(contract.hash)
            except RuntimeError as error:
                self._refused.add(contract.hash)
                return self._said.say(job, f"contract {contract.hash}, which the broker has not yet: {error}")
        return []


def make_contract_watch(settings: Settings, accepted: AcceptedContracts) -> ContractWatch:
    """Build the watcher of the contracts' folder; it publishes each accepted contract's text on the topic `contracts`.

    A contract is a job's YAML file of latency target and executor bounds. The watcher connects to the broker when it
    first has one to send (waits up to 10 s), and waits up to 5 s for each acknowledgement.
    """
    opened = lru_cache(maxsize=1)(lambda: Publisher(settings.kafka, max_block_ms=5000))

    def announce(contract: Contract) -> None:
        now = time.time()
        text = ContractText(contract.job, now, now, 1.0, contract.hash, contract.text)
        opened().send("contracts", contract.hash, text)
        opened().flush(5)

    return ContractWatch(settings.contracts_dir, accepted, announce)


def _impossible(contract: Contract) -> str | None:
    """Say what of a contract does not go together with what follows from the rest of it; None where all does."""
    try:
        checked_terms(contract)
    except TermsError as error:
        told = str(error).removeprefix("Terms: ")
        return f"{contract.job}.yaml: backpressure.{told} (`tidecast contract check {contract.job}`)"
    return None
