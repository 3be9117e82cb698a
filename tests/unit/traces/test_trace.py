from datetime import UTC, datetime

import numpy as np
import pytest

from configs.sections import Replay
from pipelines.traces.trace import PEAK_RPS, TRACES, TraceError, load_trace


def epoch(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def replay_of(tmp_path, text, **options):
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    given = {
        "trace": str(path),
        "live_start": "2024-03-01T02:00:00",
        "live_hours": 2,
        "history_days": 1 / 12,
        "peak_rps": 100,
    }
    return Replay(**{**given, **options})


def hours(*values, day="2024-03-01"):
    """An hourly file from midnight; None leaves the row out, text is written as it is."""
    rows = [f"{day} {hour:02d}:00:00,{value}" for hour, value in enumerate(values) if value is not None]
    return "\n".join(["timestamp,value", *rows]) + "\n"


def test_default_trace_is_cut_into_history_and_live_and_scaled_to_its_peak():
    trace = load_trace(Replay())
    times, rates = trace.history()
    begins, live = trace.live()
    assert (trace.step_s, len(times), len(begins)) == (1800, 28 * 48, 48)
    assert times[-1] + 1800 == begins[0] == epoch("2014-10-22T04:00:00")
    assert max(rates.max(), live.max()) == pytest.approx(PEAK_RPS)
    assert trace.notes == ()


@pytest.mark.parametrize("name", sorted(p.stem for p in TRACES.glob("*.csv")))
def test_every_shipped_trace_loads(name):
    start = {"nyc_taxi": "2014-10-22T04:00:00", "twitter_aapl": "2015-03-18", "elb_request_count": "2014-04-18"}[name]
    trace = load_trace(Replay(trace=name, live_start=start, history_days=7))
    assert np.isfinite(trace.live()[1]).all()


def test_history_and_live_of_a_small_file(tmp_path):
    trace = load_trace(replay_of(tmp_path, hours(10, 20, 30, 50)))
    assert trace.history()[1].tolist() == [20, 40]
    assert trace.live()[1].tolist() == [60, 100]


def test_zero_history_is_allowed(tmp_path):
    times, rates = load_trace(replay_of(tmp_path, hours(10, 20, 30, 50), history_days=0)).history()
    assert len(times) == len(rates) == 0


def test_short_gap_is_filled_and_told(tmp_path):
    trace = load_trace(replay_of(tmp_path, hours(0, None, None, None, 40, 50, 60), live_hours=4))
    assert trace.values.tolist() == [0, 10, 20, 30, 40, 50, 60]
    assert "3 missing step(s) from 2024-03-01 01:00:00 UTC, filled" in trace.notes[0]


def test_empty_cell_is_a_missing_step(tmp_path):
    trace = load_trace(replay_of(tmp_path, hours(0, "", 20, 30, 40)))
    assert trace.values[1] == 10


def test_equal_row_given_twice_is_one_row(tmp_path):
    text = hours(10, 20, 30, 50).replace("2024-03-01 01:00:00,20", "2024-03-01 01:00:00,20\n2024-03-01 01:00:00,20")
    assert load_trace(replay_of(tmp_path, text)).values.tolist() == [10, 20, 30, 50]


def test_other_columns_separators_byte_order_mark_and_epoch_seconds(tmp_path):
    begin = int(epoch("2024-03-01"))
    rows = [f"x;{begin + 3600 * hour};{hour + 1}" for hour in range(4)]
    replay = replay_of(tmp_path, "\ufeff" + "\n".join(["id;at;load", *rows]), time_column="at", value_column="load")
    assert load_trace(replay).values.tolist() == [1, 2, 3, 4]


def test_eight_digits_are_a_date(tmp_path):
    rows = [f"202403{day:02d},{day}" for day in range(1, 5)]
    replay = replay_of(
        tmp_path, "\n".join(["timestamp,value", *rows]), live_start="20240303", live_hours=48, history_days=2
    )
    assert load_trace(replay).times[0] == epoch("2024-03-01")


def test_off_grid_times_may_be_rounded(tmp_path):
    text = hours(10, 20, 30, 50).replace("01:00:00", "01:00:05")
    assert load_trace(replay_of(tmp_path, text)).times[1] == epoch("2024-03-01T01:00:00")


NOON = hours(1, 2, 3, 4).replace("2024-03-01 02:00:00", "noon")
GAP = hours(0, None, None, None, None, 50, 60, 70)
TWICE = hours(10, 20, 30, 50).replace("02:00:00", "01:00:00")
UNORDERED = hours(10, 20, 30, 50).replace("02:00:00", "00:30:00")
IRREGULAR = hours(10, 20, 30, 50, 60).replace("03:00:00", "03:20:00")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", ["the file is empty"], id="empty file"),
        pytest.param("timestamp,value\n", ["no rows under the header"], id="header only"),
        pytest.param(hours(1), ["one row under the header"], id="one row"),
        pytest.param("when,what\n1,1\n", ["row 1", "'timestamp'", "'when', 'what'", "time_column"], id="columns"),
        pytest.param(hours(1, 2, "many", 4), ["row 4", "value='many'", "not a number"], id="text"),
        pytest.param(hours(1, 2, "nan", 4), ["row 4", "value=nan", "finite"], id="NaN"),
        pytest.param(hours(1, 2, "inf", 4), ["row 4", "value=inf", "finite"], id="infinite"),
        pytest.param(hours(1, 2, -3, 4), ["row 4", "value=-3", "0 or more"], id="negative"),
        pytest.param(hours(1, "2,5", 3, 4), ["row 3", "3 cells", "2 are expected"], id="too many cells"),
        pytest.param(NOON, ["row 4", "'noon'", "ISO 8601"], id="no time"),
        pytest.param(NOON.replace("noon", "1709251200000"), ["row 4", "epoch seconds"], id="milliseconds"),
        pytest.param(GAP, ["4 missing step(s) from 2024-03-01 01:00:00 UTC", "at most 3"], id="long gap"),
        pytest.param(TWICE, ["rows 3 and 4", "twice", "20 and 30", "Keep one"], id="doubled"),
        pytest.param(UNORDERED, ["row 4", "00:30:00", "lies before", "row 3", "Sort the file"], id="unordered"),
        pytest.param(IRREGULAR, ["row 5", "4800 s after row 4", "step is 3600 s", "Resample"], id="irregular"),
        pytest.param(hours(0, 0, 0, 0), ["every value", "is 0"], id="all zero"),
        pytest.param(hours(1, 2, 3), ["live part, 2 h", "runs from 2024-03-01 00:00:00"], id="too short"),
    ],
)  # fmt: skip
def test_bad_file_is_refused_in_words(tmp_path, text, words):
    with pytest.raises(TraceError) as error:
        load_trace(replay_of(tmp_path, text))
    for word in ["mine.csv", *words]:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"trace": "nyc_taxis"}, ["nyc_taxis", "nyc_taxi", "path of a CSV file"]),
        ({"trace": "none/such.csv"}, ["none/such.csv", "no such file"]),
        (
            {"live_start": "2016-01-01T00:00:00"},
            ["2016-01-01", "runs from 2014-07-01 00:00:00 UTC to 2015-02-01 00:00:00 UTC"],
        ),
        ({"live_start": "tomorrow"}, ["live_start='tomorrow'", "2014-10-22T04:00:00"]),
        ({"live_start": "2014-07-03T00:00:00"}, ["history_days=28", "2.00 days before"]),
        ({"timezone": "Mars/Olympus"}, ["timezone='Mars/Olympus'", "Europe/Berlin"]),
    ],
)
def test_bad_settings_are_refused_in_words(options, words):
    with pytest.raises(TraceError) as error:
        load_trace(Replay(**options))
    for word in words:
        assert word in str(error.value)


def test_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "bytes.csv"
    path.write_bytes(b"timestamp,value\n2024-03-01,\xff\xfe1\n")
    with pytest.raises(TraceError, match="UTF-8"):
        load_trace(Replay(trace=str(path)))


# Clocks in Berlin change at 01:00 UTC: back on 2024-10-27 (03:00 -> 02:00), forward on 2024-03-31 (02:00 -> 03:00).
BACK = ["00:00", "01:00", "02:00", "02:00", "03:00", "04:00"]
FORWARD = ["00:00", "01:00", "03:00", "04:00", "05:00"]


def local(day, clocks):
    return "\n".join(["timestamp,value", *(f"{day} {clock}:00,{i + 1}" for i, clock in enumerate(clocks))])


def test_clock_set_back_doubles_an_hour_that_the_zone_tells_apart(tmp_path):
    options = {"timezone": "Europe/Berlin", "live_start": "2024-10-27T03:00:00", "live_hours": 1}
    trace = load_trace(replay_of(tmp_path, local("2024-10-27", BACK), **options))
    assert trace.times.tolist() == [epoch("2024-10-26T22:00:00") + 3600 * i for i in range(6)]
    assert trace.values.tolist() == [1, 2, 3, 4, 5, 6]
    assert trace.live_start == epoch("2024-10-27T02:00:00")


def test_clock_set_back_within_finer_steps(tmp_path):
    clocks = ["01:30", "02:00", "02:30", "02:00", "02:30", "03:00", "03:30"]
    options = {
        "timezone": "Europe/Berlin",
        "live_start": "2024-10-27T03:00:00",
        "live_hours": 1,
        "history_days": 1 / 24,
    }
    trace = load_trace(replay_of(tmp_path, local("2024-10-27", clocks), **options))
    assert trace.times.tolist() == [epoch("2024-10-26T23:30:00") + 1800 * i for i in range(7)]


def test_clock_set_back_without_a_zone_is_refused_with_a_hint(tmp_path):
    with pytest.raises(TraceError, match=r"twice.*name its zone in replay\.timezone"):
        load_trace(replay_of(tmp_path, local("2024-10-27", BACK), live_start="2024-10-27T02:00:00"))


def test_clock_set_forward_leaves_no_gap(tmp_path):
    options = {"timezone": "Europe/Berlin", "live_start": "2024-03-31T04:00:00"}
    trace = load_trace(replay_of(tmp_path, local("2024-03-31", FORWARD), **options))
    assert trace.times.tolist() == [epoch("2024-03-30T23:00:00") + 3600 * i for i in range(5)]
    assert trace.notes == ()


def test_local_time_that_does_not_exist_is_refused(tmp_path):
    text = local("2024-03-31", ["00:00", "01:00", "02:00", "03:00"])
    with pytest.raises(TraceError, match=r"row 4.*02:00:00' does not exist in Europe/Berlin.*UTC"):
        load_trace(replay_of(tmp_path, text, timezone="Europe/Berlin", live_start="2024-03-31T01:00:00"))
