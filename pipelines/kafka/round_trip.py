"""How long the way to the broker and back takes, from wherever this runs."""

from __future__ import annotations

import time
from statistics import median

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from configs.sections import Kafka
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.librdkafka import make_client

PROBES, WAIT_S = 20, 10.0


def round_trip_s(kafka: Kafka) -> float:
    """Return the median of 20 requests for what the broker knows of a topic, on one connection, seconds.

    The broker's own time for them is in it, under a millisecond on idle cores.

    Raises:
        BrokerError: no broker is set, or it does not answer within 10 s.
        SettingsError: a security option without a counterpart.
    """
    client = make_client(AdminClient, kafka, {})
    took = []
    try:
        for probe in range(PROBES + 1):
            began = time.perf_counter()
            client.list_topics(kafka.topic("metrics"), WAIT_S)
            if probe:  # the first one connects
                took.append(time.perf_counter() - began)
    except KafkaException as error:
        raise BrokerError(
            f"broker at {kafka.bootstrap}: no answer within {WAIT_S:g} s. {error.args[0].str()}"
        ) from None
    return median(took)
