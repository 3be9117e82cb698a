from __future__ import annotations

import dataclasses

import pytest

from pipelines.ingest.columns import KINDS, columns


@pytest.mark.parametrize("topic", KINDS)
def test_every_field_of_every_message_has_a_column(topic):
    assert [c.name for c in columns(KINDS[topic])] == [f.name for f in dataclasses.fields(KINDS[topic])]


def test_columns_carry_type_need_default_and_bound_of_the_field():
    found = {c.name: c for c in columns(KINDS["metrics"])}
    assert (found["job"].spark, found["job"].required) == ("string", True)
    assert (found["arrival_rps"].spark, found["arrival_rps"].required, found["arrival_rps"].least) == (
        "double",
        False,
        0,
    )
    assert (found["span_s"].default, found["schema"].default) == (1.0, None)
    assert {c.name: c.default for c in columns(KINDS["outcomes"])}["observed"] == "{}"


def test_a_field_of_an_unknown_type_is_named():
    @dataclasses.dataclass
    class Odd:
        colour: bytes

    with pytest.raises(TypeError, match=r"Odd.colour: bytes"):
        columns(Odd)
