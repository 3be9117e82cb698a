"""A path on HDFS, with what the lake needs of `pathlib.Path`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from pipelines.lake.hadoop_client import HadoopClient, client_of


@dataclass(frozen=True, order=True)
class HdfsPath:
    """A file or folder; nothing is asked of HDFS before a method needs it, which raises as `HadoopClient` does.

    Attributes:
        authority: of whose file system, `hdfs://HOST:PORT`.
        path: in it, absolute.
    """

    authority: str
    path: PurePosixPath

    @classmethod
    def parse(cls, address: str) -> HdfsPath:
        """Read `hdfs://HOST:PORT/FOLDER`, as the settings checked it."""
        parts = urlsplit(address)
        return cls(f"{parts.scheme}://{parts.netloc}", PurePosixPath(parts.path))

    def __str__(self) -> str:
        return f"{self.authority}{self.path}"

    def __truediv__(self, name: str) -> HdfsPath:
        return HdfsPath(self.authority, self.path / name)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.name

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return self.path.stem

    @property
    def parent(self) -> HdfsPath:
        """The folder that it lies in."""
        return HdfsPath(self.authority, self.path.parent)

    @property
    def parents(self) -> tuple[HdfsPath, ...]:
        """The folders above it, the nearest first."""
        return tuple(HdfsPath(self.authority, above) for above in self.path.parents)

    def glob(self, pattern: str) -> Iterator[HdfsPath]:
        """Yield what lies in this folder and fits the pattern; nothing where there is no such folder."""
        for address in self._client.glob(f"{self.path}/{pattern}"):
            yield HdfsPath(self.authority, PurePosixPath(urlsplit(address).path))

    def read_text(self) -> str:
        """Return what the file holds, in UTF-8."""
        return self._client.read(str(self.path)).decode()

    def exists(self) -> bool:
        """Return whether there is such a file or folder."""
        return self._client.exists(str(self.path))

    def refuse_read_only(self) -> None:
        """Refuse a folder in which nothing can be written."""
        self._client.refuse_read_only(str(self.path))

    @property
    def _client(self) -> HadoopClient:
        return client_of(self.authority)
