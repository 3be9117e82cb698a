"""A job on a real YARN whose queue has no room for what it asks for: said plainly, learned from by nobody."""

import pytest

from configs.settings import load
from pipelines.bench.site.full_queue import full_queue


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYSPARK_SUBMIT_ARGS")
        return full_queue(load(), tmp_path_factory.mktemp("queue"))


def test_agent_decisions_and_command_say_that_there_is_no_room(found):
    assert "YARN's queue root.default has no room for the others, which wait" in found["said"]
    assert "the cluster has no room for 4 of 6 executors" in found["decided"]
    assert any("the cluster has no room for 4 of 6 executors" in line for line in found["shown"])


def test_nothing_is_asked_for_twice_and_no_lead_time_is_learned(found):
    assert found["ups_until_room"] == 0 < found["named"] and found["executors"] == 2
    assert found["starts"] == 0


def test_executors_come_with_room_and_every_record_is_counted(found):
    assert found["came"] >= 1 and found["most_executors"] == 6
    assert found["produced"] == found["counted"] > 0
