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
_BROKEN = (
    tarfile.TarError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError, OverflowError,
    RecursionError,
)  # fmt: skip
"""What an archive raises that is none, or says of itself what no backup does."""


def restore_backup(settings: Settings, file: Path, only: str = "") -> Backup:
    """Restore an archive of `write_backup` to a `var` folder that holds nothing of what it would bring.

    Everything is unpacked and compared with its SHA-256 before the first file is where it belongs. Absolute paths into
    the old folder become those of the new one (`move_paths`).

    Args:
        settings: with the folder.
        file: the archive.
        only: path within `var` of the folder or file to restore, which may not be there; "": all, to an empty `var`.

    Returns:
        what the archive says, with number and size of the restored files.

    Raises:
        BackupError: the archive is missing, damaged, of another form or none, or has no such part; the folder holds
            something, or a stack runs on it. Nothing has changed then.
        OSError: a file cannot be written.
    """
    var, part = settings.var_dir, PurePosixPath(only)
    with alone_on(var):
        _refuse_what_is_there(var, part)
        new = var / ".restoring"
        shutil.rmtree(new, ignore_errors=True)
        try:
            made = _unpack(file, new, part)
            move_paths(new, made.var, var)
            entries = [only] if part.parts else sorted({entry.name for entry in new.iterdir()} - ONCE_KEPT)
            for entry in entries:
                if os.path.lexists(var / entry):
                    raise BackupError(f"{var / entry}: is in the way. Move it away, or set TIDECAST_VAR.")
            for entry in entries:
                (var / entry).parent.mkdir(parents=True, exist_ok=True)
                (new / entry).replace(var / entry)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return made


def _refuse_what_is_there(var: Path, part: PurePosixPath) -> None:
    if part.parts:
        if os.path.lexists(var / part):
            raise BackupError(f"{var / part}: is there, and nothing is overwritten. Move it away first.")
    elif held := sorted({PurePosixPath(name).parts[0] for name in kept_files(var)}):
        raise BackupError(
            f"{var}: holds {', '.join(held)}, and nothing is overwritten. Move the folder away, or set TIDECAST_VAR "
            "to another one. A part that is not there is brought back by `--only PART`, as in `--only mlflow`."
        )


def _unpack(file: Path, new: Path, part: PurePosixPath) -> Backup:
    try:
        with tarfile.open(file, "r:gz") as archive:
            return _unpack_members(file, archive, new, part)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise BackupError(f"{file}: {error.strerror}. Name a file that `tidecast backup` wrote.") from None
    except (*_BROKEN, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of this computer's disk, not of the archive
            raise
        raise BackupError(f"{file}: damaged, or no backup ({error}). Nothing was restored; take another one.") from None


def _unpack_members(file: Path, archive: tarfile.TarFile, new: Path, part: PurePosixPath) -> Backup:
    members = iter(archive)
    first = next(members, None)
    if first is None or first.name != MANIFEST:
        raise ValueError(f"it does not begin with {MANIFEST}")
    told = json.loads(_read(archive, first))
    if (form := told.pop("form")) != FORM:
        raise BackupError(f"{file}: written in form {form}, this release reads {FORM}. Restore it with release "
                          f"{told.get('release')}.")  # fmt: skip
    made = Backup(**{**told, "elsewhere": tuple(told["elsewhere"])})
    if not all(isinstance(text, str) for text in (made.release, made.written, made.var, *made.elsewhere)):
        raise TypeError(f"{MANIFEST} has no text where there should be one")
    sums: dict[str, str] = {}
    size = 0
    for member in members:
        if member.name == SUMS:
            expected = json.loads(_read(archive, member))
            if {name: one for name, one in expected.items() if _is_within(name, part)} != sums:
                raise ValueError("a file is not what its SHA-256 says")
            if len(expected) != made.files:
                raise ValueError(f"{len(expected)} of {made.files} files")
            if not sums:
                held = ", ".join(sorted({PurePosixPath(name).parts[0] for name in expected}))
                raise BackupError(f"{file}: has no {part}. It has {held}; `tar -tzf` lists all of it.")
            return made._replace(files=len(sums), size=size)
        if _is_within(member.name, part):
            sums[member.name] = _write_member(archive, member, new)
            size += member.size
    raise ValueError("it ends early")


def _is_within(name: str, part: PurePosixPath) -> bool:
    return not part.parts or PurePosixPath(name).is_relative_to(part)


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
