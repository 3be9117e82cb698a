"""The class archive that `make setup` wrote, in a JVM that runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pipelines.spark import class_archive

pytestmark = pytest.mark.spark


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_session_maps_the_archive(spark):
    assert class_archive.archive_path().is_file(), "`make setup` writes it"
    jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    assert str(class_archive.archive_path()) in Path(f"/proc/{jvm}/maps").read_text()
