"""The planted secrets of a deployment, searched for in what it leaves: logs, volumes, and its database."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from pipelines.bench.site.containers import ComposeProject

BLOCK = 1 << 20
"""Bytes that are read at a time: a volume holds gigabytes."""
DUMP = ("pg_dumpall", "-U", "airflow")
"""Of all databases, in PostgreSQL's container: in its files a long value is compressed."""


class Leaks:
    """A search for secrets: `searched`, how many logs, files and dumps so far; `found`, where one stands, in words."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        """Nothing is searched yet.

        Args:
            secrets: values by names; none is empty.
        """
        self._secrets = {name: value.encode() for name, value in secrets.items()}
        self.searched = 0
        self.found: list[str] = []

    def search_logs(self, made: ComposeProject) -> None:
        """Search what each of a project's containers has printed.

        Raises:
            subprocess.CalledProcessError: podman failed.
        """
        for name in made.containers():
            self.search_output(f"log of {name}", ("podman", "logs", name))

    def search_database(self, made: ComposeProject) -> None:
        """Search a dump of all databases, whose server has to run; raises as `search_output`."""
        self.search_output("dump of PostgreSQL", ("podman", "exec", made.container("postgres"), *DUMP))

    def search_volumes(self, made: ComposeProject) -> None:
        """Search all files on a project's volumes, with what was deleted from PostgreSQL's; needs root.

        Raises:
            subprocess.CalledProcessError: podman failed.
            OSError: a file cannot be read.
        """
        for name, folder in made.volumes().items():
            self.search_folder(f"volume {name}", folder)

    def search_output(self, what: str, command: Sequence[str]) -> None:
        """Search what a command prints.

        Raises:
            subprocess.CalledProcessError: it ended with another status than 0.
        """
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            assert process.stdout is not None
            self.search_stream(what, process.stdout)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)

    def search_folder(self, what: str, folder: Path) -> None:
        """Search all files below a folder; links are not followed, and what vanishes meanwhile is left out.

        Raises:
            OSError: a file cannot be read.
        """

        def raise_it(error: OSError) -> None:
            raise error

        for where, _, files in os.walk(folder, onerror=raise_it):
            for path in (Path(where, file) for file in files):
                with suppress(FileNotFoundError):
                    if stat.S_ISREG(path.lstat().st_mode):
                        with path.open("rb") as held:
                            self.search_stream(f"{what}: {path.relative_to(folder)}", held)

    def search_stream(self, what: str, held: IO[bytes]) -> None:
        """Search what is read until its end, in blocks; a secret may begin in one and end in the next."""
        names, before = set[str](), b""
        longest = max(map(len, self._secrets.values()))
        while block := held.read(BLOCK):
            window = before + block
            names.update(name for name, value in self._secrets.items() if value in window)
            before = window[-(longest - 1) :]
        self.searched += 1
        self.found += [f"{what}: {name}" for name in sorted(names)]
