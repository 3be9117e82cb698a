import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.serve.net import wire

TEXT = st.text(max_size=20)
FOUND = st.builds(
    wire.Found, st.integers(0, 2**62), st.integers(0, 2**62), st.integers(0, 2**62), st.binary(max_size=40)
)
REQUESTS = st.one_of(
    st.builds(wire.Put, st.binary(max_size=200)),
    st.builds(wire.Get, TEXT, st.none() | st.integers(0, 2**62)),
    st.builds(wire.AsOf, TEXT, st.integers(0, 2**62)),
    st.builds(wire.Versions, TEXT, st.integers(0, 9), st.integers(0, 9)),
    st.builds(wire.Frontier),
    st.builds(wire.Ping, st.binary(max_size=9)),
    st.builds(wire.WhatIf, TEXT, st.floats(allow_nan=False)),
)
ANSWERS = st.one_of(
    FOUND,
    st.builds(wire.PutResult, TEXT, st.lists(FOUND, max_size=2)),
    st.builds(wire.Absent),
    st.builds(wire.VersionList, st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3)),
    st.builds(wire.FrontierTimes, st.integers(0, 9), st.integers(0, 9)),
    st.builds(wire.Pong, st.binary(max_size=9)),
    st.builds(wire.WireForecast, st.lists(st.lists(st.floats(0, 9), max_size=2), max_size=2), st.just([0.5])),
    st.builds(wire.Refused, TEXT, TEXT),
)


def _with_a_byte_more(message, at, byte):
    body = wire.encode_frame(message)[4:]
    at %= len(body) + 1
    return body[:at] + bytes([byte]) + body[at:]


BODIES = st.binary(max_size=60) | st.builds(
    _with_a_byte_more, REQUESTS | ANSWERS, st.integers(0, 1000), st.integers(0, 255)
)


@given(st.lists(REQUESTS, max_size=6), st.data())
def test_requests_arrive_whole_however_the_bytes_are_cut(requests, data):
    stream = b"".join(wire.encode_frame(one) for one in requests)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    buffer, got = bytearray(), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        buffer += stream[begin:end]
        got += [wire.read_request(frame) for frame in wire.take_frames(buffer)]
    assert got == requests and not buffer


@given(ANSWERS)
def test_answers_arrive_as_they_were(answer):
    assert wire.read_answer(wire.encode_frame(answer)[4:]) == answer


@given(st.binary(max_size=300))
def test_any_bytes_are_frames_or_refused(noise):
    buffer = bytearray(noise)
    try:
        frames = wire.take_frames(buffer)
    except wire.WireError as error:
        assert error.code == "oversized"
        return
    assert b"".join(struct.pack("<I", len(frame)) + frame for frame in frames) + buffer == noise


@given(BODIES)
@example(b"\x91" * 100_000)
@example(b"\xff")
@example(b"\x92\x02\xa1\xff")
def test_any_body_of_a_frame_is_a_message_or_refused(body):
    assert wire.take_frames(bytearray(struct.pack("<I", len(body)) + body)) == [body]
    for read in (wire.read_request, wire.read_answer):
        try:
            read(body)
        except wire.WireError as error:
            assert error.code == "frame"


def test_a_frame_that_is_too_long_is_refused_before_it_is_read():
    with pytest.raises(wire.WireError, match="at most"):
        wire.take_frames(bytearray(struct.pack("<I", wire.MOST + 1)))
    with pytest.raises(wire.WireError, match="at most"):
        wire.encode_frame(wire.Ping(bytes(wire.MOST)))
