"""Restores the backup of a `var` folder: `tidecast restore`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from configs.settings import Settings
from pipelines.stack.backup.archive import (
    FORM,
    MANIFEST,
    ONCE_KEPT,
    REMADE,
    SUMS,
    Backup,
    BackupError,
    alone_on,
    kept_files,
)
from pipelines.stack.backup.paths import move_paths

_CHUNK = 1 << 20


def restore_backup(settings: Settings, file: Path) -> Backup:
    """Restore an archive of `write_backup` to a `var` folder that holds nothing of what it would bring.

    Everything is unpacked and compared with its SHA-256 before the first file is where it belongs. Absolute paths into
    the old folder become those of the new one (`move_paths`).

    Raises:
        BackupError: the archive is missing, damaged, of another form or none; the folder holds something, or a stack
            runs on it. Nothing has changed then.
        OSError: a file cannot be written.
    """
    var = settings.var_dir
    with alone_on(var):
        if held := sorted({PurePosixPath(name).parts[0] for name in kept_files(var)}):
            raise BackupError(
                f"{var}: holds {', '.join(held)}, and nothing is overwritten. Move the folder away, or set "
                "TIDECAST_VAR to another one."
            )
        new = var / ".restoring"
        shutil.rmtree(new, ignore_errors=True)
        try:
            made = _unpack(file, new)
            move_paths(new, made.var, var)
            entries = sorted(entry for entry in new.iterdir() if entry.name not in ONCE_KEPT)
            for entry in entries:
                if (var / entry.name).exists():
                    raise BackupError(f"{var / entry.name}: is in the way. Move it away, or set TIDECAST_VAR.")
            for entry in entries:
                entry.replace(var / entry.name)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return made


def _unpack(file: Path, new: Path) -> Backup:
    try:
        with tarfile.open(file, "r:gz") as archive:
            return _unpack_members(file, archive, new)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise BackupError(f"{file}: {error.strerror}. Name a file that `tidecast backup` wrote.") from None
    except (tarfile.TarError, EOFError, zlib.error, ValueError, KeyError, TypeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of this computer's disk, not of the archive
            raise
        raise BackupError(f"{file}: damaged, or no backup ({error}). Nothing was restored; take another one.") from None


def _unpack_members(file: Path, archive: tarfile.TarFile, new: Path) -> Backup:
    members = iter(archive)
    first = next(members, None)
    if first is None or first.name != MANIFEST:
        raise ValueError(f"it does not begin with {MANIFEST}")
    told = json.loads(_read(archive, first))
    if (form := told.pop("form")) != FORM:
        raise BackupError(f"{file}: written in form {form}, this release reads {FORM}. Restore it with release "
                          f"{told.get('release')}.")  # fmt: skip
    made = Backup(**{**told, "elsewhere": tuple(told["elsewhere"])})
    sums: dict[str, str] = {}
    for member in members:
        if member.name == SUMS:
            if json.loads(_read(archive, member)) != sums:
                raise ValueError("a file is not what its SHA-256 says")
            if len(sums) != made.files:
                raise ValueError(f"{len(sums)} of {made.files} files")
            return made
        sums[member.name] = _write_member(archive, member, new)
    raise ValueError("it ends early")


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    source = archive.extractfile(member)
    if source is None:
        raise ValueError(f"{member.name} is no file")
    return source.read()


def _write_member(archive: tarfile.TarFile, member: tarfile.TarInfo, new: Path) -> str:
    """Write one file below `new`, and return its SHA-256."""
    name = PurePosixPath(member.name)
    outside = not name.parts or name.is_absolute() or ".." in name.parts or name.parts[0] in REMADE - ONCE_KEPT
    if not member.isreg() or outside or (new / name).exists():
        raise ValueError(f"{member.name} is not a file of a backup")
    source, target, found = archive.extractfile(member), new / name, hashlib.sha256()
    assert source is not None, member.name  # a regular file has content
    target.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, member.mode & 0o755), "wb") as sink:
        while data := source.read(_CHUNK):
            found.update(data)
            sink.write(data)
    os.utime(target, (member.mtime, member.mtime))  # Delta tells by it how long a version is kept
    return found.hexdigest()
