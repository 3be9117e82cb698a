"""Forecasts and heartbeats as the autoscaler reads them: quickly, and no otherwise than every other reader."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.scale.received import read_record
from tests.fakes.records import GOOD, NOW, bad_records
from tidecast.messages import Forecast, Heartbeat, MessageError, decode_keyed, encode

JOB = GOOD["forecasts"]["job"]
BEAT = Heartbeat(JOB, "serving", 1_413_950_400.0, NOW - 5, 720.0, "1", NOW - 60)
SOUND = {"forecasts": GOOD["forecasts"], "heartbeats": json.loads(encode(BEAT))}
KINDS = {"forecasts": Forecast, "heartbeats": Heartbeat}
NAMES = {topic: sorted(field.name for field in dataclasses.fields(kind)) for topic, kind in KINDS.items()}
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 2000), st.floats(), st.lists(st.one_of(st.integers(), st.floats(0, 1))),
    st.lists(st.lists(st.floats(), max_size=3), max_size=2),
    st.sampled_from(["serving", "autoscaler", "", "5", "a:b", "größe", "\x00", 10**30, -(2**70), NOW + 301]),
)  # fmt: skip


def quick(topic, raw, key=JOB):
    return read_record({"topic": topic, "value": raw}, key, NOW)


def told(read):
    """What is read, to the last type, or why nothing is."""
    try:
        return repr(read())
    except MessageError as error:
        return str(error)


@pytest.mark.parametrize("topic", KINDS)
@given(st.data())
def test_a_record_is_taken_or_refused_in_the_words_of_the_slow_reader(topic, data):
    changes = data.draw(st.dictionaries(st.sampled_from([*NAMES[topic], "colour"]), ODD, max_size=3))
    missing = data.draw(st.sets(st.sampled_from(NAMES[topic]), max_size=1))
    fields = {name: value for name, value in {**SOUND[topic], **changes}.items() if name not in missing}
    raw = json.dumps(fields).encode()
    key = data.draw(st.sampled_from([JOB, "orders"]))
    assert told(lambda: quick(topic, raw, key)) == told(lambda: decode_keyed(KINDS[topic], key, raw, NOW))


@pytest.mark.parametrize("name", bad_records("forecasts"))
def test_a_bad_forecast_is_refused_in_the_words_of_the_slow_reader(name):
    raw, word = bad_records("forecasts")[name]
    found = told(lambda: quick("forecasts", raw))
    assert word in found and found == told(lambda: decode_keyed(Forecast, JOB, raw, NOW))


LONG = {
    **GOOD["forecasts"], "levels": [0.05, 0.5, 0.95], "quantiles": [[0.0, 1e15, 1e15], [1, 2, 3.5]], "last_rps": 212.5,
}  # fmt: skip


@pytest.mark.parametrize(("topic", "fields"), [*SOUND.items(), ("forecasts", LONG)])
def test_a_usual_record_never_needs_the_slow_reader(monkeypatch, topic, fields):
    raw = json.dumps(fields).encode()
    expected = decode_keyed(KINDS[topic], JOB, raw, NOW)
    monkeypatch.setattr("pipelines.scale.received.decode_keyed", None)
    found = quick(topic, bytearray(raw))  # as Spark has it
    assert repr(found) == repr(expected) and [*vars(found)] == [*vars(expected)]


@pytest.mark.parametrize("topic", KINDS)
def test_of_a_name_that_stands_twice_neither_value_is_taken(topic):
    with pytest.raises(MessageError, match="field 'job' stands twice"):
        quick(topic, json.dumps(SOUND[topic]).encode()[:-1] + b',"job":"%b"}' % JOB.encode())
