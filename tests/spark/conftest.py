"""A table of results that tests copy: Delta takes two seconds to make one."""

from pathlib import Path

import pytest

from tests.fakes.result_tables import HOURLY, live


@pytest.fixture(scope="session")
def hourly(spark, tmp_path_factory) -> Path:
    """What a live query has written in its first micro-batch: `HOURLY`."""
    folder = tmp_path_factory.mktemp("written") / "hourly"
    live(spark, folder, HOURLY)
    return folder
