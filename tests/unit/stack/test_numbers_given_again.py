"""A process's number is given away again once it was waited for: who has it then is not the stack's to end."""

import os
from types import SimpleNamespace

import psutil
import pytest

from pipelines.stack import keeper
from pipelines.stack.processes import spawn
from tests.fakes.waiting import PATIENCE_S


@pytest.fixture
def begin(tmp_path):
    made = []

    def start(*argv):
        made.append(spawn("child", [*argv], dict(os.environ), tmp_path / "child.log"))
        return made[-1]

    yield start
    for process in made:
        process.kill()


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_has_the_number_of_a_process_that_ended_is_left_alone(begin, end):
    ended, stranger = begin("true"), begin("sleep", "300")
    assert ended.wait(PATIENCE_S) == 0
    ended.popen.pid = stranger.pid  # as the kernel gives it away
    getattr(ended, end)()
    assert stranger.running()


def test_what_is_left_of_the_session_of_a_process_that_ended_is_ended(begin):
    ended = begin("sh", "-c", "sleep 300 & echo $!")
    assert ended.wait(PATIENCE_S) == 0
    left = psutil.Process(int(ended.log.read_text()))
    ended.kill()
    assert not left.is_running() or left.status() == psutil.STATUS_ZOMBIE


class Ended(psutil.Process):
    """Of a process that ended after it was watched, and whose number another one has."""

    def is_running(self):
        return False


@pytest.mark.parametrize("handle", [psutil.Process, Ended])
def test_the_keeper_ends_what_it_watched_and_nothing_that_has_its_number(begin, monkeypatch, handle):
    child = begin("sleep", "300")
    known = SimpleNamespace(Process=handle, pid_exists=psutil.pid_exists, NoSuchProcess=psutil.NoSuchProcess)
    monkeypatch.setattr(keeper, "psutil", known)
    keeper.run_keeper([f"watch {child.pid}\n"], "of no stack")
    assert child.running() is (handle is Ended)


def test_the_keeper_passes_over_what_has_ended_before_it_is_watched(begin):
    ended = begin("true")
    assert ended.wait(PATIENCE_S) == 0
    keeper.run_keeper([f"watch {ended.pid}\n"], "of no stack")
