"""What a process prints is kept up to a size, however long it runs and however often it is started."""

import os

import pytest

from pipelines.stack import kept_log
from pipelines.stack.kept_log import bound_log
from pipelines.stack.processes import spawn
from tests.fakes.waiting import PATIENCE_S, wait_until


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log" / "orders.join.log"


def say(log, script, append=True):
    return spawn("orders.join", ["sh", "-c", script], dict(os.environ), log, append=append)


def test_a_log_is_set_aside_while_its_process_goes_on(log, tmp_path, monkeypatch):
    bound_log(log)  # which is missing yet
    child = say(log, f"echo first; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo second", append=False)
    try:
        wait_until(lambda: log.read_text() == "first\n", "what it says")
        bound_log(log)
        assert log.read_text() == "first\n"
        monkeypatch.setattr(kept_log, "LOG_BYTES", 6)
        bound_log(log)
        assert log.read_text() == ""
        (tmp_path / "go").touch()
        assert child.wait(PATIENCE_S) == 0
    finally:
        child.kill()
    assert log.read_text() == "second\n"
    assert log.with_name("orders.join.old.log").read_text() == "first\n"


def test_what_is_started_again_and_again_keeps_its_newest_words(log, monkeypatch):
    monkeypatch.setattr(kept_log, "LOG_BYTES", 6)
    for word, append in (("older", False), ("first", False), ("again", True), ("third", True)):
        assert say(log, f"echo {word}", append).wait(PATIENCE_S) == 0
    assert log.read_text() == "third\n"
    assert log.with_name("orders.join.old.log").read_text() == "again\n"
