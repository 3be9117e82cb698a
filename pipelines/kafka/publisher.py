"""Sending to Kafka: messages of Tidecast and raw records, to topics named without the prefix `kafka.prefix`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from kafka.errors import AuthorizationError, KafkaError, RetriableError

from configs.sections import Kafka
from pipelines.kafka.broker import Record
from pipelines.kafka.connection import RIGHTS, BrokerError, bootstrap_address, connect_client
from pipelines.kafka.signing import Signer
from tidecast.connection.signing import HEADER
from tidecast.connection.transport import producer
from tidecast.messages import Message, Reject, encode


class Publisher:
    """Sends messages to Kafka, acknowledged by all replicas; `close` waits until everything sent is acknowledged.

    What agents obey is signed, if the settings name keys for it.

    Raises:
        BrokerError: no broker is set, or none answers within 10 s.
        SettingsError: the file of signing keys is wrong.
        ValueError: an unknown security option.
    """

    def __init__(self, kafka: Kafka, **options: Any) -> None:
        self._address, self._name, self._signer = bootstrap_address(kafka), kafka.topic, Signer.of(kafka)
        self._signer.check_file()
        self._failure: Exception | None = None
        self._producer = connect_client(producer, kafka, **options)

    def send(self, topic: str, key: str, message: Message) -> Any:
        """Queue one message as JSON; returns as `send_bytes`. A failed delivery shows at `flush`.

        Raises:
            MessageError: a number in it is not finite.
            BrokerError: as `send_bytes`.
        """
        value = encode(message)
        signature = self._signer.sign(topic, key, value, getattr(message, "job", None))
        return self.send_bytes(topic, key.encode(), value, headers=[] if signature is None else [(HEADER, signature)])

    def send_bytes(
        self, topic: str, key: bytes, value: bytes, partition: int | None = None, timestamp_s: float | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> Any:  # fmt: skip
        """Queue one record; returns kafka-python's future of `partition` and `offset`, done once it is acknowledged.

        Blocks up to the producer's `max_block_ms` (60 s unless set) while the topic is unknown. Delivery is retried for
        120 s unless `delivery_timeout_ms` is set; a failure then makes the next `flush` raise.

        Args:
            topic: name without the prefix.
            key: the record's key.
            value: the record's value.
            partition: number of the partition; default: by the key's hash.
            timestamp_s: the record's timestamp, epoch seconds, cut to ms; default: now.
            headers: of the record.

        Raises:
            BrokerError: the topic stayed unknown, the queue full, or the record is too large.
        """
        stamp = None if timestamp_s is None else int(timestamp_s * 1000)
        name = self._name(topic)
        try:
            future = self._producer.send(
                name, key=key, value=value, partition=partition, timestamp_ms=stamp, headers=list(headers)
            )
        except KafkaError as error:
            raise BrokerError(
                f"the broker at {self._address} takes no record for topic {name}: {error}. Create the topic "
                "(`make up`, or your broker's tools), or send it again once the broker answers."
            ) from error
        future.add_errback(self._failed)
        return future

    def reject(self, record: Record, by: str, reason: object) -> None:
        """Queue a record that could not be accepted, with the reason, for the topic `rejects`; `by` is who refused it.

        Raises:
            BrokerError: as `send_bytes`.
        """
        at = record.topic, record.partition, record.offset
        self.send("rejects", record.topic, Reject.of(*at, by, reason, record.value, time.time()))

    def flush(self, timeout: float = 120) -> None:
        """Wait up to `timeout` seconds until every record sent so far is acknowledged or has failed.

        Raises:
            BrokerError: a record failed since the last `flush` (the first such error is shown), or some are neither by
                then; a later `flush` waits for them.
        """
        try:
            self._producer.flush(timeout=timeout)
        except KafkaError as error:
            raise BrokerError(
                f"the broker at {self._address} has not acknowledged every record within {timeout:g} s. Look at the "
                "broker; what it has not taken is sent again when it answers."
            ) from error
        failure, self._failure = self._failure, None
        if failure is not None:
            became, remedy = "did not accept", "Send it again."
            if isinstance(failure, AuthorizationError):
                remedy = RIGHTS
            elif isinstance(failure, RetriableError):  # given up after its time, perhaps on its way
                became, remedy = "has not acknowledged", "It may have it all the same: look before you send it again."
            raise BrokerError(f"the broker at {self._address} {became} a record: {failure!r}. {remedy}")

    def close(self) -> None:
        """Flush and close the producer, which is closed even if the flush fails.

        Raises:
            BrokerError: as `flush`.
        """
        try:
            self.flush()
        finally:
            self._producer.close()

    def _failed(self, error: Exception) -> None:
        self._failure = self._failure or error
