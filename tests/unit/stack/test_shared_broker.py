import threading
from contextlib import ExitStack

import pytest

from configs.sections import Kafka
from pipelines.stack.state import StackState
from tests.fakes import shared_broker as shared
from tests.fakes.shared_broker import shared_broker
from tests.fakes.waiting import wait_until


@pytest.fixture
def stacks(monkeypatch):
    """Stacks that are written down instead of started: True for each that runs."""
    running, kafka = [], Kafka(bootstrap="127.0.0.1:9")

    class Recorded:
        def __init__(self, settings, parts):
            self.settings = settings.model_copy(update={"kafka": kafka})

        def __enter__(self):
            self.number = len(running)
            running.append(True)
            return self

        def __exit__(self, *_):
            running[self.number] = False

    alive = StackState("id", 0.0, False, {}, {}, {"TIDECAST_KAFKA__BOOTSTRAP": kafka.bootstrap})
    monkeypatch.setattr(shared, "Stack", Recorded)
    monkeypatch.setattr(shared, "create_topics", lambda kafka: None)
    monkeypatch.setattr(shared, "ASK_S", 0.01)
    monkeypatch.setattr("pipelines.stack.state.running", lambda var: alive if any(running) else None)
    return running


def test_the_first_starts_it_and_ends_it_after_the_last(stacks, tmp_path):
    begun, over = threading.Event(), threading.Event()

    def first():
        with shared_broker(tmp_path / "broker"):
            begun.set()
            over.wait(10)

    worker = threading.Thread(target=first)
    worker.start()
    assert begun.wait(10)
    with ExitStack() as second:
        kafka = second.enter_context(shared_broker(tmp_path / "broker"))
        assert kafka.bootstrap == "127.0.0.1:9"
        over.set()
        worker.join(0.1)
        with shared_broker(tmp_path / "broker"):  # a third comes while the first waits
            assert stacks == [True]
    wait_until(lambda: stacks == [False], "its end")
    worker.join(10)
    with shared_broker(tmp_path / "broker"):
        assert stacks == [False, True]
    assert stacks == [False, False]
