import os
import time

import psutil

from configs.settings import load
from pipelines.stack import state
from pipelines.stack.state import StackState


def of(processes: dict[str, tuple[int, float]]) -> StackState:
    told = {"TIDECAST_KAFKA__BOOTSTRAP": "127.0.0.1:20001", "TIDECAST_AIRFLOW__URL": "http://127.0.0.1:20002"}
    return StackState("id", time.time(), True, processes, {"broker": "127.0.0.1:20001"}, told)


def me() -> tuple[int, float]:
    return os.getpid(), psutil.Process().create_time()


def test_state_is_read_back(tmp_path):
    written = of({"broker": me()})
    state.write(tmp_path, written)
    assert state.running(tmp_path) == written
    assert state.path(tmp_path).stat().st_mode & 0o077 == 0  # its environment is the children's


def test_another_process_with_the_same_number_is_not_the_stack(tmp_path):
    state.write(tmp_path, of({"broker": (os.getpid(), psutil.Process().create_time() - 100)}))
    assert state.read(tmp_path) is not None
    assert state.running(tmp_path) is None


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


def test_one_stack_per_folder(tmp_path):
    first = state.lock(tmp_path)
    assert first is not None and state.lock(tmp_path) is None
    first.close()
    again = state.lock(tmp_path)
    assert again is not None
    again.close()
