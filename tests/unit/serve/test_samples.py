import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.serve.step.samples import fields_by_name, read_sample
from tests.fakes.records import GOOD, NOW, bad_records, record
from tidecast.messages import MessageError, MetricSample, decode, encode

FIELDS = sorted({f.name for f in dataclasses.fields(MetricSample)})
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 2000), st.floats(), st.lists(st.integers(), max_size=1),
    st.sampled_from(["interval", "batch", "act", "", "5"]),
)  # fmt: skip


@pytest.mark.parametrize(("name", "bad"), bad_records("metrics").items(), ids=lambda v: v if isinstance(v, str) else "")
def test_a_bad_record_is_refused_in_the_words_of_the_slow_reader(name, bad):
    value = bad[0] or b""
    with pytest.raises(MessageError) as slow:
        decode(MetricSample, value, NOW)
    with pytest.raises(MessageError) as quick:
        read_sample(value, NOW)
    assert str(quick.value) == str(slow.value)


@given(
    st.dictionaries(st.sampled_from([*FIELDS, "colour"]), ODD, max_size=5), st.sets(st.sampled_from(FIELDS), max_size=2)
)
def test_both_readers_agree_on_every_record(changes, missing):
    data = {k: v for k, v in {**GOOD["metrics"], **changes}.items() if k not in missing}
    raw = json.dumps(data).encode()
    try:
        slow = decode(MetricSample, raw, NOW)
    except MessageError:
        with pytest.raises(MessageError):
            read_sample(raw, NOW)
        return
    quick = read_sample(raw, NOW)
    assert {name: getattr(quick, name) for name in FIELDS} == {name: getattr(slow, name) for name in FIELDS}


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"time": NOW + 400, "time_scale": 1.0}, "set the sender's clock"),
        ({"time": NOW - 10, "time_scale": 1.0, "span_s": 86_400.0}, "correct the span"),
        ({"time": -1.0}, "at least 0"),
        ({"wall_time": -5.0}, "at least 0"),
        ({"time": 1e300, "time_scale": 720.0}, "at most 4102444800"),
        ({"span_s": 1e300}, "at most 31622400"),
        ({"lag_records": 10**400}, "at most 9223372036854775807"),
    ],
)
def test_what_no_window_could_have_is_refused(changes, word):
    with pytest.raises(MessageError, match=word):
        read_sample(record("metrics", **changes), NOW)


PLAIN_BATCH = {
    "kind": "batch", "arrival_rps": None, "processed_rps": 210.5, "batch_id": 7, "batch_rows": 900, "batch_s": 2.5,
    "executors": 2, "latency_max_s": 4.5, "watermark_lag_s": -1.5, "spilled_bytes": 0,
}  # fmt: skip


@pytest.mark.parametrize("changes", [{}, PLAIN_BATCH])
def test_a_plain_sample_never_needs_the_slow_reader(monkeypatch, changes):
    sample = decode(MetricSample, record("metrics", **changes), NOW)
    monkeypatch.setattr("pipelines.serve.step.samples.decode", None)
    quick = read_sample(encode(sample), NOW)
    assert fields_by_name(quick) == fields_by_name(sample) == dataclasses.asdict(sample)


def test_a_name_that_stands_twice_is_refused():
    with pytest.raises(MessageError, match="twice"):
        read_sample(encode(decode(MetricSample, record("metrics"), NOW))[:-1] + b',"job":"orders"}', NOW)


@pytest.mark.parametrize(
    ("sound", "odd"),
    [(b'"act"', b'"\xffact"'), (b'"word_count"', b'"word_\xc3count"'), (b'"mode"', b'"mode\xff"')],
)
def test_a_text_that_is_no_utf_8_is_refused_where_it_stands(sound, odd):
    raw = record("metrics").replace(sound, odd)
    with pytest.raises(MessageError, match="not JSON"):
        read_sample(raw, NOW, "word_count")


def test_history_may_span_days_that_are_over():
    history = record("metrics", time=NOW - 7 * 86_400.0, time_scale=1.0, span_s=6.9 * 86_400.0)
    assert read_sample(history, NOW).span_s == 6.9 * 86_400.0


def test_a_replay_may_run_ahead_of_the_wall():
    assert read_sample(record("metrics", time=NOW + 400, time_scale=720.0), NOW).time == NOW + 400
