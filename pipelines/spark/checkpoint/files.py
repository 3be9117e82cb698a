"""The files of a streaming query's checkpoint: which agree with their checksums, and what a restart would read of them.

A restart reads the newest entry of the commit log, the entries of the offset log around it, and of each state store the
newest snapshot up to its version with all changelogs since. Hadoop's local file system leaves checksums beside what it
writes (`.NAME.crc`); other file systems check what they hold themselves.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tidecast.spark.progress import parse_offsets
from tidecast.spark.sensors import Offsets

OFFSETS, COMMITS = "offsets", "commits"
SNAPSHOTS, CHANGELOGS = (".zip", ".snapshot"), (".changelog", ".delta")
"""Of a state store as of a version, and from the version before to it: RocksDB's, and those of the store in memory."""
_HEADER = struct.Struct(">4si")
_VERSION = re.compile(r"(\d+)(\.\w+)")
_SECOND_FORMAT = re.compile(r"\d+_.+\.(zip|snapshot|changelog|delta)")
_MAGIC = b"crc\0"
_PIECE = 2**20


class BatchFile(NamedTuple):
    """A file and the micro-batch that wrote it; the state's version N is what batch N - 1 left."""

    path: Path
    batch: int


def is_sound(file: Path) -> bool:
    """Return whether a file is there and agrees with the checksums beside it, if there are some.

    Raises:
        OSError: it cannot be read.
    """
    if not file.is_file():
        return False
    beside = file.with_name(f".{file.name}.crc")
    if not beside.is_file():
        return True
    told = beside.read_bytes()
    if len(told) < _HEADER.size:
        return False
    magic, size = _HEADER.unpack_from(told)
    if magic != _MAGIC or not 0 < size <= _PIECE:
        return False
    with file.open("rb") as data:
        pieces = iter(lambda: data.read(size), b"")
        return told[_HEADER.size :] == b"".join(struct.pack(">I", zlib.crc32(one)) for one in pieces)


class Checkpoint:
    """A checkpoint as it lies there, each file looked at once; nothing may write to it meanwhile."""

    def __init__(self, folder: Path) -> None:
        """Take its folder, which is read as it is asked for."""
        self.folder = folder
        self._sound: dict[Path, bool] = {}
        self._whole: dict[Path, bool] = {}

    @cached_property
    def offsets(self) -> list[int]:
        """Batches of the offset log, oldest first."""
        return _numbers(self.folder / OFFSETS)

    @cached_property
    def commits(self) -> list[int]:
        """Batches of the commit log, oldest first."""
        return _numbers(self.folder / COMMITS)

    def planned(self) -> Offsets:
        """Return where the newest batch of the offset log ends in each partition of Kafka's; none where it is damaged.

        Raises:
            OSError: it cannot be read.
        """
        newest = self._offset(self.offsets[-1]) if self.offsets else None
        if newest is None or not self.sound(newest):
            return {}
        _, _, *sources = [*newest.read_text(errors="replace").splitlines(), "", ""]
        return {place: offset for source in sources for place, offset in parse_offsets(source).items()}

    @cached_property
    def stores(self) -> dict[Path, dict[str, dict[int, Path]]]:
        """Files of each state store by ending and version, by its folder; several of a partition for a join."""
        found: dict[Path, dict[str, dict[int, Path]]] = {}
        for file in self._state_files:
            if (version := _VERSION.fullmatch(file.name)) and version[2] in SNAPSHOTS + CHANGELOGS:
                found.setdefault(file.parent, {}).setdefault(version[2], {})[int(version[1])] = file
        return found

    @cached_property
    def of_second_format(self) -> bool:
        """Whether its state stores name their files by version and a unique id, which nothing here understands."""
        return any(_SECOND_FORMAT.fullmatch(file.name) for file in self._state_files)

    def batch_files(self) -> Iterator[BatchFile]:
        """Yield the files that one batch wrote, in no order."""
        for log, batches in ((OFFSETS, self.offsets), (COMMITS, self.commits)):
            yield from (BatchFile(self.folder / log / str(batch), batch) for batch in batches)
        for store in self.stores.values():
            for versions in store.values():
                yield from (BatchFile(file, version - 1) for version, file in versions.items())
        yield from self._operator_metadata

    def unreadable(self) -> list[Path]:
        """Return the damaged files that every restart reads, whatever batch it goes on from.

        Those are the query's id, the schemas of its state, and what a source has noted of the files it has seen.

        Raises:
            OSError: one cannot be read.
        """
        dated = {one.path for one in self._operator_metadata}
        shared = [
            file
            for file in self._state_files
            if {"_metadata", "_stateSchema"} & {*file.relative_to(self.folder).parts} and file not in dated
        ]
        logs = [one for one in (self.folder / "sources").glob("*") if len(_numbers(one)) > 1]
        shared += [file for log in logs for file in _visible(log.iterdir())]
        return sorted(one for one in (self.folder / "metadata", *shared) if not self.sound(one))

    def can_go_on_from(self, batch: int) -> bool:
        """Return whether a restart could go on from a committed batch, once snapshots that are not whole are away.

        Raises:
            OSError: a file cannot be read.
        """
        around = batch == 0 or self.sound(self._offset(batch + 1)) or self.sound(self._offset(batch - 1))
        return (
            around
            and self.sound(self._offset(batch))
            and self.sound(self.folder / COMMITS / str(batch))
            and all(self.sound(one.path) for one in self._operator_metadata if one.batch <= batch)
            and all(self._restorable(store, batch + 1) for store in self.stores.values())
        )

    def in_the_way(self, batch: int) -> list[Path]:
        """Return the snapshots that are not whole and that a restart from a batch could load.

        Raises:
            OSError: a file cannot be read.
        """
        return [
            file
            for store in self.stores.values()
            for version, file in _of(store, SNAPSHOTS).items()
            if version <= batch + 1 and not self.whole(file)
        ]

    def sound(self, file: Path) -> bool:
        """As `is_sound`, looked at once."""
        if file not in self._sound:
            self._sound[file] = is_sound(file)
        return self._sound[file]

    def whole(self, snapshot: Path) -> bool:
        """Return whether a snapshot is sound with the files of RocksDB's that it names and shares with others."""
        if snapshot not in self._whole:
            shared = _shared(snapshot) if self.sound(snapshot) and snapshot.suffix == ".zip" else []
            self._whole[snapshot] = self.sound(snapshot) and shared is not None and all(map(self.sound, shared))
        return self._whole[snapshot]

    def _restorable(self, store: dict[str, dict[int, Path]], version: int) -> bool:
        """Whether a store comes to a version from its newest whole snapshot, or from nothing."""
        whole = [at for at, file in _of(store, SNAPSHOTS).items() if at <= version and self.whole(file)]
        changes = _of(store, CHANGELOGS)
        needed = range(max(whole, default=0) + 1, version + 1)
        return all(at in changes and self.sound(changes[at]) for at in needed)

    def _offset(self, batch: int) -> Path:
        return self.folder / OFFSETS / str(batch)

    @cached_property
    def _state_files(self) -> list[Path]:
        return [*_visible((self.folder / "state").rglob("*"))]

    @cached_property
    def _operator_metadata(self) -> list[BatchFile]:
        """Of operators that are written anew with the first batch of each run."""
        return [
            BatchFile(file, int(file.name))
            for file in self._state_files
            if file.parent.name == "v2" and file.parent.parent.name == "_metadata" and file.name.isdigit()
        ]


def _shared(snapshot: Path) -> list[Path] | None:
    """Files outside its archive that make up a snapshot of RocksDB, as the archive says; None: it is none."""
    try:
        with zipfile.ZipFile(snapshot) as archive:
            told = json.loads(archive.read("metadata").decode().splitlines()[-1])
        tables = [snapshot.parent / "SSTs" / one["dfsSstFileName"] for one in told.get("sstFiles", ())]
        logs = [snapshot.parent / "logs" / one["dfsLogFileName"] for one in told.get("logFiles", ())]
    except (zipfile.BadZipFile, KeyError, IndexError, ValueError, TypeError, AttributeError):
        return None
    return [*tables, *logs]


def _of(store: dict[str, dict[int, Path]], endings: Iterable[str]) -> dict[int, Path]:
    return {version: file for ending in endings for version, file in store.get(ending, {}).items()}


def _numbers(log: Path) -> list[int]:
    return sorted(int(file.name) for file in log.iterdir() if file.name.isdigit()) if log.is_dir() else []


def _visible(files: Iterable[Path]) -> Iterator[Path]:
    """Files that hold something of the query's: no checksums, and nothing that was being written."""
    yield from (one for one in files if not one.name.startswith(".") and one.suffix != ".crc" and one.is_file())
