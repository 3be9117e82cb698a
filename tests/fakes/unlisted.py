"""A folder that may not be listed: no mode refuses root, as whom tests may run."""

import errno
import os
from contextlib import contextmanager


@contextmanager
def unlisted(monkeypatch, folder):
    scandir = os.scandir

    def refusing(path="."):
        if os.fspath(path) == os.fspath(folder):
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
        return scandir(path)

    with monkeypatch.context() as now:
        now.setattr(os, "scandir", refusing)
        yield
