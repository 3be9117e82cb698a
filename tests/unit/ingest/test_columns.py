from __future__ import annotations

import dataclasses

import pytest

from pipelines.ingest.columns import KINDS, spark_columns


@pytest.mark.parametrize("topic", KINDS)
def test_every_field_of_every_message_has_a_column(topic):
    assert list(spark_columns(KINDS[topic])) == [f.name for f in dataclasses.fields(KINDS[topic])]


def test_columns_have_the_type_of_the_field():
    found = spark_columns(KINDS["decisions"])
    assert (found["job"], found["executors"], found["admission_rps"]) == ("string", "bigint", "double")
    assert (found["codes"], found["inputs"]) == ("array<string>", "string")


def test_a_field_of_an_unknown_type_is_named():
    @dataclasses.dataclass
    class Odd:
        colour: bytes

    with pytest.raises(TypeError, match=r"Odd.colour: bytes"):
        spark_columns(Odd)
