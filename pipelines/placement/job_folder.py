"""The folder of a job that runs in blocks: where each is wanted, and where it is, from move to move.

A block's state goes with it: an epoch's folder is copied from the one before when nobody writes to that any more, and
is there as a whole or not at all. So whoever is killed in whatever phase of a move, the newest epoch holds.
"""

from __future__ import annotations

import json
import shutil
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from configs.errors import CorrectableError, SettingsError
from configs.topology import Topology, load_topology
from models.placement.known_work import KnownWork, read_work
from models.placement.plan.applications import BlockApplication
from models.placement.plan.measured import Block, Placement
from pipelines.file_lock import alone
from pipelines.placement.watched_block import BlockEpoch, OffloadNote
from pipelines.stack.backup.paths import move_schemas
from pipelines.whole_file import write_json, write_text

LOCK = "placement.lock"  # by which one at a time begins a job, or wants its blocks elsewhere
KEPT = 4
"""Epochs of a block that are kept, the newest ones: whoever finds a cluster away looks for where the block worked."""


class JobFileError(CorrectableError, ValueError):
    """A file of a job's folder is damaged; the message names it and the remedy."""


class JobFolder:
    """A running job's folder."""

    def __init__(self, path: Path) -> None:
        """The folder; it may not exist yet."""
        self.path, self._placement = path, path / "placement.json"

    def began(self) -> bool:
        """Return whether a job was ever begun here."""
        return self._placement.is_file()

    def begin(self, topology_file: Path, placement: Placement, planned: Topology | None = None) -> None:
        """Begin a job: keep its topology as it is now, and where its blocks are wanted.

        Raises:
            SettingsError: the file has another topology by now than that which was `planned`; nothing is begun.
            OSError: the folder cannot be written.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(self.path / topology_file.name, topology_file.read_bytes().decode())
        if planned is not None and load_topology(topology_file.stem, self.path) != planned:
            raise SettingsError(
                f"{topology_file} was edited while it was planned. Start again, to begin the job as it is now."
            )
        write_text(self.path / "id", uuid.uuid4().hex[:12])
        self.want(placement)

    @property
    def id(self) -> str:
        """A text that no other job has, also none that was begun from the same topology before."""
        return (self.path / "id").read_text()

    def topology(self) -> Topology:
        """Read the topology with which the job was begun.

        Raises:
            SettingsError: no job was begun here, or its file is wrong.
        """
        kept = next(self.path.glob("*.yaml"), None) if self.began() else None
        if kept is None:
            raise SettingsError(f"{self.path}: no job was begun here. `tidecast job up NAME` begins one.")
        return load_topology(kept.stem, self.path, begun=True)

    def has_changed(self, topology_file: Path) -> bool:
        """Return whether a topology's file is another one than that with which the job was begun, or is no more."""
        try:
            return (self.path / topology_file.name).read_bytes() != topology_file.read_bytes()
        except OSError:
            return True

    def wanted(self) -> Placement:
        """Read where the job's blocks are wanted.

        Raises:
            JobFileError: the file is damaged, as where another program wrote to it.
            OSError: there is none, or it cannot be read.
        """
        try:
            told = json.loads(self._placement.read_text())
            blocks = tuple(Block(**{**one, "operators": tuple(one["operators"])}) for one in told["blocks"])
            return Placement(**{**told, "blocks": blocks})
        except (ValueError, KeyError, TypeError) as error:
            raise JobFileError(
                f"{self._placement}, which says where the job's queries are to run, is damaged ({error!r}). Move "
                "the folder away, and bring it back from a backup (`tidecast restore FILE --only "
                f"jobs/{self.path.name}`) or begin the job anew."
            ) from None

    def wanted_since_s(self) -> float:
        """Return since when the job's blocks are wanted there, epoch seconds.

        Raises:
            OSError: no job was begun here.
        """
        return self._placement.stat().st_mtime

    def want(self, placement: Placement) -> None:
        """Write where the job's blocks are wanted, whatever was wanted before; whoever runs them moves them there.

        Raises:
            OSError: the file cannot be written; what was wanted before holds.
        """
        write_text(self._placement, json.dumps(asdict(placement), indent=1))

    def change(self, to: Callable[[Placement], Placement], work: Mapping[str, object] | None = None) -> None:
        """Want the job's blocks elsewhere, from where they are wanted; of two changes at once the second begins there.

        Args:
            to: returns what is to be wanted, from what is; what it raises is passed on, and nothing changes.
            work: of queries, by which that was planned (`record_work`), or its JSON; None: as before.

        Raises:
            OSError, JobFileError: as `wanted` and `want`.
        """
        with alone(self.path / LOCK):
            placement = to(self.wanted())
            if work:
                write_json(self.path / "work.json", {**self.work(), **work})
            self.want(placement)

    def work(self) -> dict[str, KnownWork]:
        """Read the work of a record by the last measured plan that was applied, by queries' first operators."""
        file = self.path / "work.json"
        try:
            return read_work(json.loads(file.read_text()) if file.exists() else {})
        except (OSError, ValueError, TypeError, AttributeError) as error:
            remedy = "Delete it. Till a measured plan is applied, which writes it anew, the stated work counts."
            print(f"{file} cannot be read ({error!r}). {remedy}", file=sys.stderr, flush=True)
            return {}

    def offloaded(self) -> dict[str, OffloadNote]:
        """Read which queries were off-loaded; a file that another program wrote to tells of none."""
        try:
            told = json.loads((self.path / "offloaded.json").read_text())
            return {
                str(name): OffloadNote(str(home), str(away), float(at), *map(bool, left))
                for name, (home, away, at, *left) in told.items()
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def note_offloaded(self, name: str, note: OffloadNote | None) -> None:
        """Note that a query was off-loaded, or is so no more (None).

        Raises:
            OSError: the file cannot be written.
        """
        known = {**self.offloaded(), name: note}
        write_json(self.path / "offloaded.json", {one: at for one, at in known.items() if at is not None})

    def newest(self, name: str) -> BlockEpoch | None:
        """Return the newest epoch of a block; None: it has none.

        Raises:
            JobFileError: the file that says what it is is damaged.
        """
        found = self._epochs(name)
        return self._read(found[-1]) if found else None

    def before(self, epoch: BlockEpoch) -> BlockEpoch | None:
        """Return the epoch before one; None: it was the first, or its folder is no more, or damaged."""
        folder = epoch.folder.with_name(str(epoch.number - 1))
        try:
            return self._read(folder) if (folder / "block.json").is_file() else None
        except JobFileError:
            return None

    def restate(self, block: BlockApplication) -> BlockEpoch:
        """Write anew what the newest epoch of a block is, where that is damaged; its state stays as it is.

        Raises:
            OSError: the file cannot be written.
        """
        folder = self._epochs(block.name)[-1]
        _write_block(folder, block)
        return BlockEpoch(_number(folder), block, folder)

    def begin_epoch(self, block: BlockApplication) -> BlockEpoch:
        """Begin an epoch of a block, with the state of the one before; nobody may write to that any more.

        Raises:
            OSError: the disk is full, or something else is in the way; the epoch before holds then.
        """
        before = self._epochs(block.name)[-1:]
        number = _number(before[0]) + 1 if before else 1
        folder = self.path / "blocks" / block.name / str(number)
        coming = folder.with_suffix(".coming")
        shutil.rmtree(coming, ignore_errors=True)
        try:
            coming.mkdir(parents=True)
            if before and (state := _checkpoint(before[0], block.name)).is_dir():
                shutil.copytree(state, coming / state.name)
                move_schemas(coming / state.name, folder.resolve() / state.name)  # as a launch names it to Spark
            _write_block(coming, block)
            coming.replace(folder)
        except OSError:
            shutil.rmtree(coming, ignore_errors=True)  # it would fill the disk for the others, too
            raise
        for older in (one for one in folder.parent.glob("*") if one.name.isdigit() and _number(one) <= number - KEPT):
            shutil.rmtree(older, ignore_errors=True)
        return BlockEpoch(number, block, folder)

    def _epochs(self, name: str) -> list[Path]:
        """Folders of a block's whole epochs, the newest last."""
        found = (self.path / "blocks" / name).glob("*/block.json")
        return sorted((one.parent for one in found if one.parent.name.isdigit()), key=_number)

    def _read(self, folder: Path) -> BlockEpoch:
        file = folder / "block.json"
        try:
            told = json.loads(file.read_text())
            block = BlockApplication(**{**told, "operators": tuple(told["operators"])})
        except (ValueError, KeyError, TypeError) as error:
            raise JobFileError(
                f"{file}, which says what runs there, is damaged ({error!r}). `tidecast job up {self.path.name}` "
                "writes it anew, as the query is wanted, and leaves the state beside it as it is."
            ) from None
        return BlockEpoch(_number(folder), block, folder)


def checkpoint_of(epoch: BlockEpoch) -> Path:
    """Return the folder of a block's checkpoint (`Launch.checkpoint`)."""
    return _checkpoint(epoch.folder, epoch.block.name)


def _checkpoint(folder: Path, block: str) -> Path:
    return folder / f"{block}.checkpoint"


def _write_block(folder: Path, block: BlockApplication) -> None:
    write_text(folder / "block.json", json.dumps(block._asdict(), indent=1))


def _number(folder: Path) -> int:
    return int(folder.name)
