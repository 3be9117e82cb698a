"""The way to the broker and back, on a real one."""

import pytest

from configs.sections import Kafka
from pipelines.kafka import round_trip
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.round_trip import round_trip_s
from tests.fakes.clock import clock_with
from tests.fakes.slow_way import slow_way

pytestmark = pytest.mark.integration


def test_it_is_the_median_of_the_requests_after_the_one_that_connects(empty_topics, monkeypatch):
    assert 0 < round_trip_s(empty_topics) < 1
    clock = iter([0.0, *(at for probe in range(20) for at in (10.0 + probe, 10.0 + probe + (0.1 * probe)))])
    monkeypatch.setattr(round_trip, "time", clock_with(perf_counter=lambda: next(clock)))
    assert round_trip_s(empty_topics) == pytest.approx(0.95)


def test_a_slow_way_is_probed_as_one(empty_topics):
    with slow_way(empty_topics.bootstrap, delay_s=0.02) as address:
        assert 0.02 <= round_trip_s(empty_topics.model_copy(update={"bootstrap": address})) < 1


def test_a_broker_that_does_not_answer_is_told(monkeypatch):
    monkeypatch.setattr(round_trip, "WAIT_S", 0.5)
    with pytest.raises(BrokerError, match=r"broker at 127.0.0.1:9: no answer within 0.5 s"):
        round_trip_s(Kafka(bootstrap="127.0.0.1:9"))
