from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.jobs.events import MAX_KEY, MAX_SEQ, EventError, LoadEvent, decode_event, encode_event
from tests.fakes.bad_events import BAD_EVENTS, NOW


@given(
    st.integers(0, MAX_SEQ), st.floats(0, NOW), st.text(min_size=1, max_size=MAX_KEY).filter(lambda t: t.isprintable())
)
def test_what_is_encoded_is_decoded(seq, time, key):
    event = decode_event(encode_event(LoadEvent(seq, time, key)), NOW)
    assert event == LoadEvent(seq, round(time, 3), key)


@pytest.mark.parametrize("name", BAD_EVENTS)
def test_bad_event_is_refused_with_its_reason(name):
    raw, reason = BAD_EVENTS[name]
    with pytest.raises(EventError) as error:
        decode_event(raw, NOW)
    assert reason in str(error.value)


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(EventError, match="key="):
        decode_event(b'{"seq":1,"time":5,"key":"\\ud800"}', NOW)


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize("fields", [b'"seq":%s,"time":5', b'"seq":1,"time":%s'])
def test_a_number_of_many_digits_is_refused(fields, digits):
    with pytest.raises(EventError):
        decode_event(b"{" + fields % (b"9" * digits) + b',"key":"a"}', NOW)


def test_unknown_fields_are_allowed():
    assert decode_event(b'{"seq":1,"time":5,"key":"a","colour":"blue"}', NOW) == LoadEvent(1, 5.0, "a")


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(raw):
    with suppress(EventError):
        decode_event(raw, NOW)
