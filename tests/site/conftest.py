"""How long the whole of `make test-site` took is kept, for the table of `tidecast bench site`."""

import time
from pathlib import Path

import psutil
import pytest

from configs.settings import load
from pipelines.bench.site.measure import keep_tests

HERE = Path(__file__).parent


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    """Nothing is kept of a choice of tests (`make test-site ARGS=...`), nor of a run that was broken off."""
    whole = [Path(one).resolve() for one in config.args] == [HERE]
    ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    if whole and ended and not terminalreporter.stats.get("deselected") and not config.option.collectonly:
        passed = len(terminalreporter.stats.get("passed", []))
        seconds = time.time() - psutil.Process().create_time()
        keep_tests(load(), seconds, terminalreporter._session.testscollected, passed)
