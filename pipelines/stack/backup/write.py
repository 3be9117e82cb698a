"""Writes the backup of a `var` folder: `tidecast backup`."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import time
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import tidecast
from configs.errors import without_logins
from configs.settings import Settings
from pipelines.figures.written import find_commit
from pipelines.stack.backup.archive import FORM, MANIFEST, SUMS, Backup, BackupError, alone_on, kept_files, links_out


def write_backup(settings: Settings, file: Path) -> Backup:
    """Write all files of the `var` folder that nothing makes again to a new tar archive (gzip), each with its SHA-256.

    Not those of REMADE, nor folders of other stacks in it, as the main job's `demo`. The stack must not run; a file
    that changes meanwhile is found, whoever writes it.

    Args:
        settings: with the folder.
        file: of the archive; its owner alone may read it.

    Raises:
        BackupError: the file is there, or within the folder; a stack runs there, or something else writes to it; there
            is nothing to keep. No archive is left then.
        OSError: a file cannot be read, or the archive not be written.
    """
    var, file = settings.var_dir, file.absolute()
    if file.exists() or file.is_symlink():
        raise BackupError(f"{file}: is there already, and nothing is overwritten. Name another file.")
    if file.resolve().is_relative_to(var.resolve()):
        raise BackupError(f"{file}: lies in the folder that is to be kept, {var}. Name a file elsewhere.")
    if not kept_files(var):
        raise BackupError(f"{var}: there is nothing to keep. Set TIDECAST_VAR to the folder of the deployment.")
    with alone_on(var):
        before = kept_files(var)
        made = Backup(
            len(before), sum(size for size, _ in before.values()), _name_release(),
            time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), str(var), _elsewhere(settings),
        )  # fmt: skip
        part = file.with_name(f".{file.name}.part")
        try:
            part.unlink(missing_ok=True)  # of an earlier call that was killed
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as raw:
                _pack(raw, var, before, made)
            if changed := _differing(before, kept_files(var)):
                raise _changed(var / changed)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
    return made


def _name_release() -> str:
    return " ".join(filter(None, (tidecast.__version__, find_commit())))


def _changed(path: Path) -> BackupError:
    return BackupError(
        f"{path}: was written meanwhile. Stop what uses the folder (a server, an autoscaler, a job), then try again."
    )


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    names = sorted(before.keys() | after.keys())
    return next((name for name in names if before.get(name) != after.get(name)), None)


def _elsewhere(settings: Settings) -> tuple[str, ...]:
    theirs = {
        "topics of the broker at {}": settings.kafka.bootstrap,
        "models and runs of MLflow at {}": settings.mlflow.tracking_uri,
        "runs of Airflow at {}": settings.airflow.url,
        "the lake at {}": settings.lake.address,
        "signing keys in {}": settings.kafka.signing_keys,
        "contracts in {}": settings.contracts_dir,
        "pools in {}": settings.pools_dir if settings.pools_dir.is_dir() else None,
        "topologies in {}": settings.topologies_dir,
        "settings in {} (TIDECAST_FILE)": os.environ.get("TIDECAST_FILE"),
    }
    told = [without_logins(words.format(where)) for words, where in theirs.items() if where]
    return (*told, *(f"what {link} leads to" for link in links_out(settings.var_dir)))


def _pack(raw: IO[bytes], var: Path, files: Mapping[str, tuple[int, int]], made: Backup) -> None:
    sums = {}
    with tarfile.open(fileobj=raw, mode="w:gz", compresslevel=6, dereference=True) as archive:
        _add_json(archive, MANIFEST, {"form": FORM, **made._asdict()})
        for name, (size, _) in files.items():
            try:
                source = (var / name).open("rb")
            except FileNotFoundError:
                raise _changed(var / name) from None
            with source:
                info, reader = archive.gettarinfo(arcname=name, fileobj=source), _Summed(source)
                if info.size != size or os.fstat(source.fileno()).st_size != size:
                    raise _changed(var / name)
                archive.addfile(info, reader)
            sums[name] = reader.sum.hexdigest()
        _add_json(archive, SUMS, sums)


def _add_json(archive: tarfile.TarFile, name: str, content: Any) -> None:
    data = json.dumps(content).encode()
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, BytesIO(data))


class _Summed:
    """A file that sums up what is read of it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.sum = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if len(data) < size:  # it has become shorter: the archive stays whole, and the look afterwards finds it
            data += bytes(size - len(data))
        self.sum.update(data)
        return data
