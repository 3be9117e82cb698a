"""A second autoscaler on the topics of a first one."""

import threading
import time

import pytest

from pipelines.kafka.publisher import Publisher
from pipelines.scale.other_autoscaler import AnotherAutoscalerError, refuse_another
from pipelines.scale.turn import Turn
from tests.fakes.waiting import wait_until
from tidecast.messages import Heartbeat

pytestmark = pytest.mark.integration


def beat(publisher, by):
    now = time.time()
    publisher.send("heartbeats", "orders", Heartbeat("orders", by, now, now, 1.0))
    publisher.flush(10)


def test_one_is_refused_while_another_one_speaks_and_not_after_that(empty_topics):
    publisher, over = Publisher(empty_topics), threading.Event()
    began = time.monotonic()
    beat(publisher, "serving")
    refuse_another(empty_topics, 60.0)
    assert time.monotonic() - began < 30  # nobody has decided: it is not listened for

    def speak():
        while not over.wait(0.2):
            beat(publisher, "autoscaler")

    speaker = threading.Thread(target=speak)
    beat(publisher, "autoscaler")
    speaker.start()
    try:
        with pytest.raises(AnotherAutoscalerError, match=r"job 'orders' on the topics .*TIDECAST_KAFKA__PREFIX"):
            refuse_another(empty_topics, 30.0)
    finally:
        over.set()
        speaker.join()
    refuse_another(empty_topics, 1.5)  # one that has just ended
    publisher.close()


def test_of_two_whose_jobs_do_not_run_the_earlier_one_sees_the_later_one(empty_topics, tmp_path):
    first, second = (Turn(tmp_path / name, empty_topics) for name in ("one", "two"))
    assert first.has_come()
    time.sleep(0.5)
    assert first.look() == [] and not first.lost
    assert second.has_come()
    assert wait_until(lambda: first.look() or first.lost, "see the other's claim", 20) and first.lost
    assert second.look() == [] and not second.lost
    first.hand_over()
    second.hand_over()
