"""Which codec a topic's records are compressed by: measured on its newest ones when a query or a producer starts.

Candidates are what every reader of Tidecast's own can decompress: kafka-python does so with libraries that may be there
or not. Speeds are of one core, by Arrow's C++ library: the same frames as Kafka's clients write.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from kafka import codec as installed

from configs.sections import Kafka
from models.contract.slow.codecs import CHEAPER, PLAIN, MeasuredCodec, codec_cost, price
from pipelines.kafka.broker import read_records
from pipelines.kafka.connection import BrokerError

NONE = "none"
LEVELS: Mapping[str, int | None] = {"gzip": 6, "lz4": None, "zstd": 3}
"""Codecs by their names in Kafka and Arrow, and the level that Kafka's clients take."""
BANDWIDTH_BPS = 125e6
"""Of the network, which nobody measures: 1 Gbit/s, and idle where a codec is chosen."""
BATCH_BYTES = 16_384
"""Most bytes that Kafka's clients put into a batch by default."""
SAMPLE_BYTES = 65_536
NEWEST = 200  # records of each partition that are looked at
REPEATS = 5
LEAST_S = 0.02  # CPU seconds of a measurement at a query's start, five for each direction of a codec


class ChosenCodec(NamedTuple):
    """The codec of a topic by its name in Kafka, and why, for people."""

    name: str
    why: str


def readable() -> tuple[str, ...]:
    """Return the codecs that kafka-python decompresses here."""
    there = {"gzip": installed.has_gzip, "lz4": installed.has_lz4, "zstd": installed.has_zstd}
    return (NONE, *(name for name in LEVELS if there[name]()))


def choose_codec(values: Sequence[bytes], usual: str, busy: float, candidates: Iterable[str]) -> ChosenCodec:
    """Return the cheapest codec for records like these; the usual one unless another is cheaper by a tenth.

    The network is taken as idle: on one that is slow or full a codec that leaves fewer bytes may be cheaper.

    Args:
        values: of records; without any the usual codec stays.
        usual: what is taken otherwise; one of the candidates.
        busy: share of the cores that is busy, by which their time is priced.
        candidates: names of codecs.
    """
    batches = batches_of(values)
    if not batches:
        return ChosenCodec(usual, "the topic has no record to measure codecs on")
    measured = {name: measure_codec(name, batches) for name in candidates}
    costs = {name: codec_cost(one, 1e8, BANDWIDTH_BPS, price(busy), price(0.0)) for name, one in measured.items()}
    best = min(costs, key=lambda name: (costs[name], name))
    if costs[best] > (1 - CHEAPER) * costs[usual]:
        best = usual
    ordered = sorted(costs, key=lambda name: costs[name])
    told = ", ".join(f"{name} {costs[name]:.2f} s ({measured[name].ratio:.2f})" for name in ordered)
    by = f"{len(values)} records, cores {busy:.0%} busy, network taken as idle, {BANDWIDTH_BPS / 1e6:g} MB/s"
    return ChosenCodec(best, f"priced seconds of 100 MB (and bytes left of each) by {by}: {told}")


def chosen_codec(kafka: Kafka, topic: str, usual: str) -> ChosenCodec:
    """Return the codec for a topic by its newest records; the usual one where they cannot be read.

    Takes a second or two: reads up to 64 KiB, and measures a codec for a fifth of a second.

    Args:
        kafka: the broker.
        topic: name without the prefix.
        usual: what is taken otherwise.
    """
    try:
        values = newest_values(kafka, topic)
    except BrokerError as error:
        return ChosenCodec(usual, f"its records cannot be read: {error}")
    return choose_codec(values, usual, busy_share(), readable())


def newest_values(kafka: Kafka, topic: str) -> list[bytes]:
    """Return values of a topic's newest records, up to SAMPLE_BYTES of them.

    Raises:
        BrokerError, SettingsError: as `read_records`, or a record is compressed in a way that kafka-python cannot read.
    """
    kept: deque[bytes] = deque()
    size = 0
    for record in read_records(kafka, topic, newest=NEWEST):
        if record.value:
            kept.append(record.value)
            size += len(record.value)
        while size > SAMPLE_BYTES and len(kept) > 1:
            size -= len(kept.popleft())
    return list(kept)


def busy_share() -> float:
    """Return the share of this computer's cores that was busy in the last minute, at most 1."""
    return min(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0)


def batches_of(records: Iterable[bytes]) -> list[bytes]:
    """Put records together as a producer does before it compresses them: one after the other, up to BATCH_BYTES.

    Args:
        records: values of records; of one that is larger alone there is a batch of its own.
    """
    batches: list[bytes] = []
    batch: list[bytes] = []
    size = 0
    for record in records:
        if batch and size + len(record) > BATCH_BYTES:
            batches.append(b"".join(batch))
            batch, size = [], 0
        batch.append(record)
        size += len(record)
    return [*batches, b"".join(batch)] if batch else batches


def measure_codec(name: str, batches: Sequence[bytes]) -> MeasuredCodec:
    """Measure ratio and speeds of a codec on batches, at the level of Kafka's clients; takes 10 times LEAST_S.

    Args:
        name: in Arrow, or none.
        batches: at least one, not empty.
    """
    import pyarrow as pa

    if name == NONE:
        return PLAIN
    codec = pa.Codec(name, LEVELS.get(name))
    packed = [codec.compress(batch, asbytes=True) for batch in batches]
    sizes = list(map(len, batches))
    size = sum(sizes)
    encode_s = _seconds(lambda: [codec.compress(batch) for batch in batches])
    pairs = list(zip(packed, sizes, strict=True))
    decode_s = _seconds(lambda: [codec.decompress(one, length) for one, length in pairs])
    return MeasuredCodec(sum(map(len, packed)) / size, size / encode_s, size / decode_s)


def _seconds(work: Callable[[], Any]) -> float:
    """CPU seconds that it takes once: the median of five times as often as makes a time that a clock can tell."""
    work()
    found = []
    for _ in range(REPEATS):
        times, began = 0, time.process_time()
        while times == 0 or time.process_time() - began < LEAST_S:
            work()
            times += 1
        found.append((time.process_time() - began) / times)
    return median(found)
