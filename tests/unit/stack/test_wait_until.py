"""Waiting for a child process to become ready."""

import os
import sys

import pytest

from pipelines.stack.processes import ProcessError, spawn


@pytest.fixture
def child(tmp_path):
    made = []

    def start(code):
        made.append(spawn("child", [sys.executable, "-c", code], dict(os.environ), tmp_path / "child.log"))
        return made[-1]

    yield start
    for process in made:
        process.kill()


def test_it_returns_once_the_process_is_ready(child, tmp_path):
    sign = tmp_path / "sign"
    process = child(f"import time, pathlib; time.sleep(.2); pathlib.Path({str(sign)!r}).touch(); time.sleep(60)")
    process.wait_until(sign.exists, "leave a sign", 30.0)
    assert sign.exists() and process.running()


def test_an_end_before_that_is_told_with_what_the_log_says(child):
    process = child("print('no such topic'); raise SystemExit(3)")
    with pytest.raises(ProcessError, match=r"child ended before it could begin.\n(.*\n)*  no such topic"):
        process.wait_until(lambda: False, "begin", 30.0)


def test_what_takes_too_long_is_given_up_and_left_running(child):
    process = child("import time; time.sleep(60)")
    with pytest.raises(ProcessError, match=r"child did not begin within 0 s"):
        process.wait_until(lambda: False, "begin", 0.3)
    assert process.running()
