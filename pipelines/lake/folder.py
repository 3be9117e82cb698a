"""Where the lake is: a folder of a mounted file system, or one of HDFS; the one place that knows which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from configs.settings import Settings
from pipelines.lake.hdfs_path import HdfsPath

Folder = Path | HdfsPath
"""A folder or file of the lake."""
_READERS = 16


def lake_folder(settings: Settings) -> Folder:
    """Return the folder of the lake's tables: `lake.address`, else `lake` under `var`; it need not exist."""
    address = settings.lake_address
    return HdfsPath.parse(address) if address.startswith("hdfs://") else Path(address)


def read_texts(files: Sequence[Folder]) -> Iterable[str]:
    """Return what the files hold, in their order.

    Raises:
        OSError: one of them cannot be read.
    """
    if not files or isinstance(files[0], Path):
        return (file.read_text() for file in files)
    with ThreadPoolExecutor(_READERS) as pool:  # for each of them two servers are waited for
        return list(pool.map(lambda file: file.read_text(), files))
