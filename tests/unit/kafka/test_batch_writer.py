"""What a writer of batches does with answers that a broker gives while it moves or loads its offsets."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from configs.sections import Kafka
from pipelines.kafka import transactions
from pipelines.kafka.transactions import BatchWriter


class Reader:
    """Fails with codes in turn, then answers."""

    def __init__(self, *codes):
        self.codes = list(codes)

    def committed(self, places, wait_s):
        if self.codes:
            raise KafkaException(KafkaError(self.codes.pop(0)))
        return places


def test_a_broker_that_loads_its_offsets_is_asked_again(monkeypatch):
    monkeypatch.setattr(transactions, "AGAIN_S", 0.0)
    writer = BatchWriter(Kafka(bootstrap="127.0.0.1:1"), "block", 3, 1, "results")
    loading = Reader(KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    assert writer._committed(loading).partition == 3
    with pytest.raises(KafkaException):
        writer._committed(Reader(KafkaError.GROUP_AUTHORIZATION_FAILED))
    monkeypatch.setattr(transactions, "WAIT_S", -1.0)
    with pytest.raises(KafkaException):
        writer._committed(Reader(KafkaError.NOT_COORDINATOR))
