"""Corrected records, sent to their topic by the driver, acknowledged; where that gets lost one may come twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka.errors import KafkaError

from tidecast.backfill.spec import BackfillError
from tidecast.connection.security import translate_spark_options
from tidecast.connection.transport import producer

HEADER = "tidecast-backfill"
"""Header of a corrected record: the id of the replay."""
PATIENCE_S = 120
_LINGER_MS = 20
Correction = tuple[str, int | None, bytes | None]
"""Key, partition (None: by the key) and value (None: a tombstone) of a record."""


def send_corrections(rows: Iterable[Correction], topic: str, source: Mapping[str, str], name: str) -> int:
    """Send records and wait until all are acknowledged; return how many there were.

    Those of a key that is there already go to its partition, so that they are the newest of it.

    Args:
        rows: what is to be sent.
        topic: name on the broker.
        source: options of Spark's Kafka source: broker and security.
        name: id of the replay.

    Raises:
        BackfillError: not all were acknowledged within PATIENCE_S (120 s); those that were stay.
        tidecast.connection.reach.UnreachableError, ValueError: no broker answers; no such security option.
    """
    options = {option.lower(): value for option, value in source.items()}
    out = producer(options["kafka.bootstrap.servers"], translate_spark_options(options), linger_ms=_LINGER_MS)
    failed: list[BaseException] = []
    sent = 0
    try:
        for key, partition, value in rows:
            future = out.send(
                topic, key=key.encode(), value=value, partition=partition, headers=[(HEADER, name.encode())]
            )  # fmt: skip
            future.add_errback(failed.append)
            sent += 1
        out.flush(timeout=PATIENCE_S)
    except KafkaError as error:
        failed.append(error)
    finally:
        out.close()
    if failed:
        raise BackfillError(
            f"replay {name}: not all of {sent} corrected records are on {topic} ({failed[0]!r}): go on with the replay;"
            " those that are there are not sent again"
        )
    return sent
