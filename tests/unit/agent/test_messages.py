"""Every record on every topic survives the wire, and everything that is not one is refused with a reason."""

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidecast.messages import (
    FUTURE_S,
    Control,
    Decision,
    Forecast,
    MessageError,
    MetricSample,
    Outcome,
    Reject,
    decode,
    encode,
)

NOW = 1_700_000_000.0
GOOD = [
    MetricSample("orders", "interval", NOW, NOW, arrival_rps=12.5, lag_records=3),
    MetricSample("orders", "batch", NOW, NOW, 720.0, 900.0, batch_id=4, batch_rows=10, batch_s=1.25, executors=2),
    Forecast(
        "orders", NOW, NOW, 720.0, 1800.0, [0.1, 0.5, 0.9], [[1.0, 2.0, 3.0]], "gru", "3", "champion", "network", 9, 1
    ),
    Decision("d1", "orders", NOW, NOW, 1.0, "act", "forecast", 3, "why", ["up"], {"lag": 4.0}, {"capacity_rps": 9.0}),
    Outcome("d1", "orders", NOW, NOW, 1.0, "confirmed", "1 -> 3", 1, 3, 3, NOW, NOW, NOW, NOW),
    Control("orders", NOW, mode="freeze"),
    Control("orders", NOW, wall_start=NOW, trace_start=0.0, time_scale=720.0),
    Reject("metrics", 0, 7, "autoscaler", "not JSON", "{", NOW),
]
KINDS = pytest.mark.parametrize("message", GOOD, ids=lambda m: type(m).__name__)


def changed(message, **fields):
    return json.dumps({**dataclasses.asdict(message), **fields}).encode()


@KINDS
def test_what_is_written_is_read(message):
    assert decode(type(message), encode(message), NOW) == message


@KINDS
@pytest.mark.parametrize("raw", [None, b"", b"{", b"\xff\xfe", b"[]", b"3", b"null", b'"text"', b"[" * 100_000])
def test_malformed_records_are_refused(message, raw):
    with pytest.raises(MessageError):
        decode(type(message), raw)


@KINDS
@pytest.mark.parametrize("schema", [0, 2, "1", None, True, [1]])
def test_unknown_schemas_are_refused(message, schema):
    with pytest.raises(MessageError, match="schema"):
        decode(type(message), changed(message, schema=schema))


@KINDS
def test_a_missing_schema_is_refused(message):
    data = dataclasses.asdict(message)
    del data["schema"]
    with pytest.raises(MessageError, match="schema"):
        decode(type(message), json.dumps(data))


@KINDS
def test_every_required_field_is_required(message):
    for spec in dataclasses.fields(message):
        if spec.default is dataclasses.MISSING and spec.default_factory is dataclasses.MISSING:
            data = dataclasses.asdict(message)
            del data[spec.name]
            with pytest.raises(MessageError, match=spec.name):
                decode(type(message), json.dumps(data))


@KINDS
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 10**400, "12", True, [], {}])
def test_no_number_may_be_anything_but_a_finite_number(message, bad):
    for spec in dataclasses.fields(message):
        if "float" in str(spec.type) and "list" not in str(spec.type):
            with pytest.raises(MessageError, match=spec.name):
                decode(type(message), changed(message, **{spec.name: bad}))


@KINDS
def test_the_far_future_is_refused_when_the_reader_knows_the_time(message):
    with pytest.raises(MessageError, match="ahead"):
        decode(type(message), changed(message, wall_time=NOW + FUTURE_S + 1), NOW)
    decode(type(message), changed(message, wall_time=NOW + FUTURE_S - 1), NOW)


@KINDS
def test_fields_of_a_newer_version_are_ignored(message):
    newer = changed(message, colour="blue", nested={"list": [1, None]})
    assert decode(type(message), newer, NOW) == message


@KINDS
def test_what_is_not_there_is_not_written(message):
    assert b"null" not in encode(message)


@KINDS
@pytest.mark.parametrize(
    ("tail", "why"),
    [
        (b',"wall_time":1,"wall_time":2}', "twice"),
        (b',"later":{"a":1,"a":2}}', "twice"),
        (b',"later":NaN}', "finite"),
        (b',"later":1e400}', "finite"),
        (b',"later":"\\ud800"}', "surrogate"),
        (b',"later":' + b"[" * 40 + b"]" * 40 + b"}", "nested"),
        (b',"later":"' + b"x" * (1 << 20) + b'"}', "bytes"),
        (b',"later":"\xff"}', "JSON"),
        (b',"later":' + b"1" * 5000 + b"}", "JSON"),
    ],
)
def test_what_no_reader_takes_alike_is_refused_even_where_nobody_looks(message, tail, why):
    with pytest.raises(MessageError, match=why):
        decode(type(message), encode(message)[:-1] + tail)


@KINDS
def test_a_byte_order_mark_is_refused_of_bytes_and_of_text(message):
    for raw in (b"\xef\xbb\xbf" + encode(message), encode(message).decode().encode("utf-16")):
        with pytest.raises(MessageError, match="JSON"):
            decode(type(message), raw)
    with pytest.raises(MessageError, match="JSON"):
        decode(type(message), "\ufeff" + encode(message).decode())


@pytest.mark.parametrize(
    "name", ["", "a b", "o'clock", 'a"b', "../up", ".hidden", "a/b", "größe", "x" * 65, "a\nb", "a:b"]
)
def test_a_name_that_is_no_job_is_refused(name):
    with pytest.raises(MessageError, match="job="):
        decode(MetricSample, changed(GOOD[0], job=name))


@pytest.mark.parametrize("rows", [-1, 1.5, True, "9", None, {"n": 9}])
def test_rows_of_a_query_s_steps_are_counts(rows):
    counted = changed(GOOD[1], operator_rows={"parse": 9, "views": 0})
    assert decode(MetricSample, counted).operator_rows == {"parse": 9, "views": 0}
    with pytest.raises(MessageError, match=r"operator_rows\['views'\]"):
        decode(MetricSample, changed(GOOD[1], operator_rows={"parse": 9, "views": rows}))


def test_a_reject_of_any_record_is_short_and_can_be_sent():
    for raw in (None, b"", b"\xff" * 3_000_000, "\ud800" * 3_000_000, b"\x00" * 3_000_000):
        found = Reject.of("metrics", 0, 7, "agent of orders", "x" * 3_000_000, raw, NOW)
        assert len(encode(found)) < 50_000
        assert decode(Reject, encode(found)) == found


def test_an_error_repeats_little_of_a_long_value():
    with pytest.raises(MessageError) as refused:
        decode(MetricSample, changed(GOOD[0], kind="x" * 900_000))
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (GOOD[0], {"arrival_rps": -1}),
        (GOOD[0], {"lag_records": -1}),
        (GOOD[0], {"arrival_rps": None}),
        (GOOD[0], {"kind": "minute"}),
        (GOOD[0], {"time_scale": 0}),
        (GOOD[0], {"span_s": -5}),
        (GOOD[1], {"batch_rows": 1.5}),
        (GOOD[1], {"task_ceiling": 0}),
        (GOOD[2], {"quantiles": []}),
        (GOOD[2], {"quantiles": [[1, 2]]}),
        (GOOD[2], {"quantiles": [[3, 2, 1]]}),
        (GOOD[2], {"quantiles": [[-1, 2, 3]]}),
        (GOOD[2], {"quantiles": [[1, math.nan, 3]]}),
        (GOOD[2], {"levels": [0.5, 0.1, 0.9]}),
        (GOOD[2], {"levels": [0.1, 0.5, 1.5]}),
        (GOOD[2], {"step_s": 0}),
        (GOOD[2], {"epoch": 2**62}),
        (GOOD[3], {"executors": -1}),
        (GOOD[3], {"executors": 2.5}),
        (GOOD[3], {"mode": "freeze"}),
        (GOOD[3], {"time_scale": -1}),
        (GOOD[3], {"inputs": {"deep": [{"er": math.nan}]}}),
        (GOOD[3], {"codes": "up"}),
        (GOOD[4], {"status": "done"}),
        (GOOD[5], {"mode": "stop"}),
        (GOOD[6], {"time_scale": -720}),
    ],
)
def test_impossible_values_are_refused(message, fields):
    with pytest.raises(MessageError):
        decode(type(message), changed(message, **fields))


def test_a_server_may_take_up_what_is_older_than_its_claim_and_none_claims_ahead_of_its_reader():
    late = changed(GOOD[2], epoch=round((NOW + 3600) * 1000))  # an hour of metrics waited for the server
    assert decode(Forecast, late, NOW + 3600).wall_time == GOOD[2].wall_time
    with pytest.raises(MessageError, match="ahead of the reader"):
        decode(Forecast, late, NOW)


def test_nothing_unreadable_is_written():
    with pytest.raises(MessageError):
        encode(dataclasses.replace(GOOD[0], arrival_rps=math.nan))


finite = st.floats(-1e15, 1e15)
moment = st.floats(NOW - 1e9, NOW - 2e6)
wall = st.floats(NOW - 1e3, NOW)
above = st.floats(min_value=1e-6, max_value=1e6)
maybe = st.none() | st.floats(min_value=0, max_value=1e12)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
job = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True)
count = st.integers(0, 2**63 - 1)
facts = st.dictionaries(text, st.recursive(st.none() | finite | text, lambda x: st.lists(x, max_size=3), max_leaves=5))
samples = st.builds(
    MetricSample, job=job, kind=st.just("batch"), time=moment, wall_time=wall, time_scale=above, span_s=above,
    arrival_rps=st.none() | st.floats(0, 1e9), batch_s=maybe, latency_p95_s=maybe, watermark_lag_s=st.none() | finite,
    lag_records=st.none() | count, executors=st.none() | st.integers(0, 99), mode=st.none() | text,
)  # fmt: skip
decisions = st.builds(
    Decision, id=text, job=job, time=moment, wall_time=wall, time_scale=above, mode=st.sampled_from(["observe", "act"]),
    policy=text, executors=count, reason=text, codes=st.lists(text), inputs=facts, expected=facts,
    admission_rps=maybe, replay_rps=maybe,
)  # fmt: skip
outcomes = st.builds(
    Outcome, decision_id=text, job=job, time=moment, wall_time=wall, time_scale=above,
    status=st.sampled_from(["confirmed", "failed"]), reason=text, applied_at=st.none() | moment, expected=facts,
    observed=facts,
)  # fmt: skip
forecasts = st.builds(
    lambda rows, **rest: Forecast(levels=[0.1, 0.5, 0.9], quantiles=[sorted(row) for row in rows], **rest),
    rows=st.lists(st.lists(st.floats(0, 1e9), min_size=3, max_size=3), min_size=1, max_size=4),
    job=job, time=moment, wall_time=wall, time_scale=above, step_s=above, model=text, version=text, alias=text,
    kind=text, history_steps=count, epoch=st.integers(0, 1_000_000_000_000), last_rps=maybe,
)  # fmt: skip
controls = st.builds(Control, job=job, wall_time=wall, mode=st.none() | st.sampled_from(Control.MODES))
rejects = st.builds(
    Reject, topic=text, partition=count, offset=count, by=text, reason=text, value=text, wall_time=wall
)  # fmt: skip


@given(samples | decisions | outcomes | forecasts | controls | rejects)
def test_any_message_survives_the_wire(message):
    assert decode(type(message), encode(message)) == message


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_bytes_bring_a_reader_down(raw):
    for message in GOOD:
        with pytest.raises(MessageError):
            decode(type(message), raw)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda x: st.lists(x) | st.dictionaries(text, x),
    max_leaves=8,
)


@given(st.data())
def test_no_value_in_any_field_brings_a_reader_down(data):
    message = data.draw(st.sampled_from(GOOD))
    name = data.draw(st.sampled_from([f.name for f in dataclasses.fields(message)]))
    raw = changed(message, **{name: data.draw(json_values)})
    try:
        assert isinstance(decode(type(message), raw, NOW), type(message))
    except MessageError as error:
        assert str(error)
