"""Which partitions a replay of a topic reads: those with a part of its range, from where that begins."""

import json
from types import SimpleNamespace

import pytest
from pyspark.sql import functions

from tidecast.orders import ReplayOrder
from tidecast.replay.pace import WORTH
from tidecast.replay.source import places_read, replay_stream


class Reader:
    """What a stream of Kafka is asked for, and by what its records are chosen."""

    def __init__(self):
        self.told = {}

    def __getattr__(self, name):
        return lambda *given, **named: self.told.update({given[0]: given[-1]} if name == "option" else {}) or self

    def where(self, condition):
        self.told["where"] = condition
        return self


class Name(str):
    """A column in words."""

    def __eq__(self, other):
        return Name(f"{self}={other}")

    def __lt__(self, other):
        return Name(f"{self}<{other}")

    def __and__(self, other):
        return Name(f"{self} and {other}")

    def __or__(self, other):
        return Name(f"{self} or {other}")


def order(starts, ends):
    return ReplayOrder("fix", "orders", 1.0, "run", {"sales": starts}, {"sales": ends})


@pytest.fixture
def read(monkeypatch):
    monkeypatch.setattr(functions, "col", Name)

    def of(starts, ends):
        reader = Reader()
        replay_stream(SimpleNamespace(readStream=reader), order(starts, ends), {})
        return reader.told

    return of


def test_partitions_without_a_part_of_the_range_have_no_part_of_its_batches(read):
    """The topic was widened after the range, and a partition was quiet in it."""
    starts, ends = {"0": 10, "1": 40, "2": 7, "3": 0}, {"0": 60, "1": 90, "2": 7, "3": 0}
    told = read(starts, ends)
    assert json.loads(told["assign"]) == {"sales": [0, 1]}
    assert json.loads(told["startingOffsets"]) == {"sales": {"0": 10, "1": 40}}
    assert told["maxOffsetsPerTrigger"] == str(2 * WORTH)
    assert str(told["where"]) == (
        "topic=sales and partition=0 and offset<60 or topic=sales and partition=1 and offset<90"
    )
    assert places_read(order(starts, ends)) == {("sales", 0): 10, ("sales", 1): 40}


def test_of_a_range_without_records_all_are_assigned_as_spark_reads_no_source_without_any(read):
    assert json.loads(read({"0": 5, "1": 0}, {"0": 5, "1": 0})["assign"]) == {"sales": [0, 1]}
