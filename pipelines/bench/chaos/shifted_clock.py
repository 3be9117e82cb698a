"""A wall clock of a part's own, that is set while the part runs (libfaketime); its steady clock goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.bench.site.servers import SiteError

FAKED = Path(__file__).with_name("faked")
"""Folder of what Python imports first in such a process."""
LIBRARIES, PACKAGE = "/usr/lib", "*/faketime/libfaketime.so.1"


class ShiftedClock:
    """The clock of all processes that have `environment`."""

    def __init__(self, file: Path) -> None:
        """Write the file that holds by how much it is off: by nothing yet.

        Raises:
            SiteError: libfaketime is not installed.
            OSError: the file cannot be written.
        """
        found = sorted(Path(LIBRARIES).glob(PACKAGE))
        if not found:
            raise SiteError(
                f"{LIBRARIES}/{PACKAGE} is not there: cells in which a clock is set need Debian's package libfaketime."
            )
        modules = [str(FAKED), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._file = file
        self.environment = {
            "LD_PRELOAD": str(found[0]), "FAKETIME_TIMESTAMP_FILE": str(file), "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # of older C libraries: all waits of a JVM would spin
            "PYTHONPATH": os.pathsep.join(modules),
        }  # fmt: skip
        self.shift(0)

    @contextmanager
    def of_all(self) -> Iterator[None]:
        """Let every process that is started within the block have it, not this one itself."""
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value

    def shift(self, by_s: int) -> None:
        """Set it so many seconds off the computer's; processes see that within a second.

        Raises:
            OSError: the file cannot be written.
        """
        new = self._file.with_suffix(".new")
        new.write_text(f"{by_s:+d}\n")
        new.replace(self._file)
