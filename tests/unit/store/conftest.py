"""Stores of these tests lie in memory where the computer has such a place: what they test is not the disk."""

import shutil
import tempfile
from pathlib import Path

import pytest

ROOM = 1 << 31
"""A container's own place may hold 64 MiB."""


@pytest.fixture
def tmp_path(tmp_path):
    memory = Path("/dev/shm")
    if not memory.is_dir() or shutil.disk_usage(memory).free < ROOM:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
