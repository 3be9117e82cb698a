import errno
import json
import os
import subprocess
import time
from functools import partial

import psutil
import pytest

from configs.settings import load
from pipelines.stack import began, processes, state
from pipelines.stack.began import began_s
from pipelines.stack.context import StackRunsError
from pipelines.stack.state import StackState


def of(processes: dict[str, tuple[int, float]]) -> StackState:
    told = {"TIDECAST_KAFKA__BOOTSTRAP": "127.0.0.1:20001", "TIDECAST_AIRFLOW__URL": "http://127.0.0.1:20002"}
    return StackState("id", time.time(), True, processes, {"broker": "127.0.0.1:20001"}, told)


def me() -> tuple[int, float]:
    return os.getpid(), began_s(os.getpid())


def test_state_is_read_back(tmp_path):
    written = of({"broker": me()})
    state.write(tmp_path, written)
    assert state.running(tmp_path) == written
    assert state.path(tmp_path).stat().st_mode & 0o077 == 0  # its environment is the children's


def test_another_process_with_the_same_number_is_not_the_stack(tmp_path):
    state.write(tmp_path, of({"broker": (os.getpid(), began_s(os.getpid()) - 100)}))
    assert state.read(tmp_path) is not None
    assert state.running(tmp_path) is None


@pytest.mark.parametrize("by_s", [-3600, 5, 3600])
def test_a_stack_runs_on_where_the_clock_is_set(tmp_path, monkeypatch, by_s):
    state.write(tmp_path, of({"broker": me()}))
    booted = psutil.boot_time() + by_s  # as the system reckons it from its clock
    monkeypatch.setattr(psutil._psplatform, "boot_time", lambda: booted)
    assert state.running(tmp_path) is not None


def test_a_process_of_another_boot_is_not_the_stack(tmp_path, monkeypatch):
    state.write(tmp_path, of({"broker": me()}))
    (tmp_path / "boot_id").write_text("another\n")
    monkeypatch.setattr(began, "_BOOT_ID", tmp_path / "boot_id")
    assert state.running(tmp_path) is None


def test_a_stack_of_an_earlier_release_is_found_by_epoch_seconds(tmp_path):
    state.write(tmp_path, of({"broker": (os.getpid(), psutil.Process().create_time())}))
    told = json.loads(state.path(tmp_path).read_text())
    del told["boot"]
    state.path(tmp_path).write_text(json.dumps(told))
    assert state.running(tmp_path) is not None


def test_no_or_broken_file_is_no_stack(tmp_path):
    assert state.running(tmp_path) is None
    state.path(tmp_path).write_text('{"id": "x"')
    assert state.running(tmp_path) is None


def test_addresses_of_the_stack_fill_in_only_what_the_settings_leave_open(tmp_path):
    state.write(tmp_path, of({"broker": me()}))
    settings = load(var=tmp_path, kafka={"bootstrap": "mine:9092"})
    filled = state.with_stack_addresses(settings)
    assert filled.kafka.bootstrap == "mine:9092"
    assert filled.airflow.url == "http://127.0.0.1:20002"
    assert filled.spark.master is None


def test_who_has_a_folder_is_named_with_what_ends_that(tmp_path):
    held = str(StackRunsError(tmp_path, os.getpid()))
    assert held.startswith(f"{tmp_path} is in use by process {os.getpid()} (")
    assert f"`kill {os.getpid()}`" in held and "make down" not in held  # which would end a person's own stack, or none
    left = str(StackRunsError(tmp_path / "my var" / "demo", None))
    assert f"`TIDECAST_VAR='{tmp_path}/my var/demo' make down`" in left


def test_one_stack_per_folder(tmp_path):
    first = state.lock(tmp_path)
    assert first is not None and state.lock(tmp_path) is None
    first.close()
    again = state.lock(tmp_path)
    assert again is not None
    again.close()


def test_a_folder_is_reserved_for_as_long_as_its_lock_is_held(tmp_path):
    assert not state.is_reserved(tmp_path)
    held = state.lock(tmp_path)
    assert state.is_reserved(tmp_path) and state.holder(tmp_path) == os.getpid()
    held.close()
    assert not state.is_reserved(tmp_path) and state.lock(tmp_path) is not None


def test_a_file_system_without_locks_is_named_and_no_stack_that_runs(tmp_path, monkeypatch):
    def without(file, kind):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(state.fcntl, "flock", without)
    with pytest.raises(OSError, match="No locks available") as found:
        state.lock(tmp_path)
    assert found.value.filename == str(tmp_path / "stack.lock")


def test_what_is_left_of_a_session_whose_first_process_was_killed_is_ended_though_it_shows_no_marker(
    tmp_path, monkeypatch
):
    begun = subprocess.Popen(
        ["bash", "-c", "sleep 600 & echo $!; wait"], env={"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    assert begun.stdout is not None
    left = psutil.Process(int(begun.stdout.readline()))
    state.write(tmp_path, of({"airflow": (begun.pid, began_s(begun.pid)), "broker": (2**22 - 1, 1.0)}))
    at_once = partial(processes.end_processes, grace_s=0.2)  # nobody is left to whom SIGTERM is sent
    monkeypatch.setattr(processes, "end_processes", at_once)
    begun.kill()
    begun.wait()
    assert state.running(tmp_path) is None
    assert state.end_recorded_stack(tmp_path) == ["airflow"]
    assert not left.is_running() or left.status() == psutil.STATUS_ZOMBIE
