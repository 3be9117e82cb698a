"""How late the records may be that a range is to hold: as late as live has counted them, by its metrics, and final."""

from types import SimpleNamespace

import pytest

from configs.settings import load
from pipelines.backfill import lateness, ordering
from pipelines.backfill.asked import RangeError, check_moments
from pipelines.backfill.lateness import LATE_S, CountedBatch, Lateness, counted_batches
from pipelines.backfill.ranges import OffsetRange
from pipelines.kafka.broker import Record
from tidecast.control import WALL, Clock
from tidecast.messages import MetricSample, encode

DAY_S, DELAY_S, EACH_S, TOOK_S = 86_400.0, 300.0, 10.0, 4.0
NOON = 1_700_000_000.0 - 1_700_000_000.0 % DAY_S + DAY_S / 2
"""The end of the range."""


def steady(begin, end, delay_s=DELAY_S):
    """Batches every ten seconds; each goes by the newest record of the one before."""
    count = int((end - begin) / EACH_S)
    return tuple(
        CountedBatch(begin + n * EACH_S + TOOK_S, TOOK_S, begin + (n - 1) * EACH_S - delay_s) for n in range(count)
    )


def told(batches, clock=WALL, job="orders"):
    """The same as records of `metrics`."""
    rows = []
    for n, one in enumerate(batches):
        began = one.ended - one.batch_s
        sample = MetricSample(
            job, "batch", clock.at(began), one.ended + 0.01, clock.scale, one.batch_s * clock.scale, batch_id=n,
            batch_s=one.batch_s, watermark_lag_s=one.ended - one.watermark,
        )  # fmt: skip
        rows.append(Record("metrics", 0, n, job, encode(sample), one.ended))
    return rows


def test_a_range_ends_where_the_last_record_was_that_live_can_have_counted_in_it():
    """Live takes records five minutes late: one of 11:59 that comes at 12:03 is in its results."""
    batches = steady(NOON - 600, NOON + 3600)
    first = next(one for one in batches if one.watermark >= NOON)
    found = Lateness(batches, WALL)
    assert found.late_s(NOON) == first.ended - NOON > DELAY_S
    span = found.range_of(NOON - 7200, NOON, None, NOON + 7200)
    assert span.until == first.ended and span.until > NOON + 240
    assert found.late_s(NOON - DAY_S) == pytest.approx(DELAY_S + 2 * EACH_S, abs=EACH_S)  # longer ago than is known


def test_where_live_caught_up_a_range_goes_no_further_than_the_records_of_that_batch():
    """It stood for two hours, and read the first of them in a batch that ended three hours after they had happened."""
    before = steady(NOON - 600, NOON - 300)
    after = (
        CountedBatch(NOON + 7200, 60.0, before[-1].watermark + EACH_S),
        CountedBatch(NOON + 7300, 60.0, NOON + 1800),  # the newest record by then was produced five minutes later
        CountedBatch(NOON + 7400, 60.0, NOON + 3600),
    )
    found = Lateness(before + after, WALL)
    assert 3600 + DELAY_S <= found.late_s(NOON) <= 3600 + DELAY_S + EACH_S + LATE_S
    assert Lateness((before + after)[:-1], WALL).late_s(NOON) == 7300  # nothing says yet what it had read


@pytest.mark.parametrize("asked_s", [-1.0, float("nan"), float("inf"), 1e12, 0.0, 60.0, 299.0])
def test_less_than_live_takes_is_refused_and_so_is_what_is_no_time(asked_s):
    found = Lateness(steady(NOON - 600, NOON + 3600), WALL)
    words = "too little: the live query takes records that come 310 s late, .*give 314,"
    with pytest.raises(RangeError, match=f"--late-s .*{words if 0 <= asked_s < 300 else '0 to .*are expected'}"):
        found.range_of(NOON - 7200, NOON, asked_s, NOON + 7200)


def test_more_than_live_takes_is_as_it_is_asked_for_and_where_nothing_is_known_it_is_a_minute():
    found = Lateness(steady(NOON - 600, NOON + 3600), WALL)
    assert found.range_of(NOON - 7200, NOON, 5_000.0, NOON + 7200).slack_s == 5_000.0
    quick = Lateness(steady(NOON - 600, NOON + 3600, 0.0), WALL)
    assert quick.range_of(NOON - 7200, NOON, None, NOON + 7200).slack_s == LATE_S == 60.0
    assert quick.range_of(NOON - 7200, NOON, 15.0, NOON + 7200).slack_s == 15.0
    unknown = Lateness((), WALL).range_of(NOON - 7200, NOON, None, NOON + 7200)
    assert (unknown.slack_s, unknown.least_s) == (60.0, 0.0)
    check_moments(unknown)
    assert Lateness((), WALL).range_of(NOON - 7200, NOON, 0.0, NOON + 7200).slack_s == 0.0


def test_a_range_that_live_may_still_change_is_refused_with_what_is_final():
    batches = steady(NOON - 7200, NOON + 200)
    now = NOON + 200
    with pytest.raises(RangeError, match=r"may come until \S+, it is \S+: end the range by \S+Z$"):  # nothing smaller
        check_moments(Lateness(batches, WALL).range_of(NOON - 7200, NOON, 310.0, now))
    with pytest.raises(RangeError, match=r", or give a smaller --late-s \(Late in the form of Airflow's DAG\)$"):
        check_moments(Lateness(batches, WALL).range_of(NOON - 7200, NOON, 900.0, now))
    # It stands: long after the range it has not come to its end.
    with pytest.raises(RangeError, match=r"may still change windows before --to \S+T12:00:00Z, .*was at \S+T11:58:00Z"):
        check_moments(Lateness(batches, WALL).range_of(NOON - 7200, NOON, None, NOON + DAY_S))
    check_moments(Lateness(batches, WALL).range_of(NOON - 7200, batches[-1].watermark, None, NOON + DAY_S))


def test_batches_are_those_of_the_job_with_a_watermark_in_wall_time_of_its_clock():
    clock = Clock(NOON, 1_400_000_000.0, 200.0)
    batches = steady(NOON, NOON + 100)
    others = told(steady(NOON, NOON + 100), clock, "others")
    earlier = told(steady(NOON, NOON + 50), Clock(NOON, 1_300_000_000.0, 200.0))  # a run before, by another clock
    none = Record("metrics", 0, 1, "orders", encode(MetricSample("orders", "batch", clock.at(NOON), NOON)), NOON)
    broken = Record("metrics", 0, 2, "orders", b"{}", NOON)
    found = counted_batches([*others, *earlier, none, broken, *told(batches, clock)[::-1]], "orders", clock)
    assert [tuple(one) for one in found] == [pytest.approx(tuple(one), abs=1e-3) for one in batches]


def test_an_order_asks_for_the_range_that_live_has_counted(monkeypatch):
    asked, batches = [], steady(NOON - 600, NOON + 3600)
    monkeypatch.setattr(lateness, "read_records", lambda kafka, topic, newest: iter(told(batches)))
    monkeypatch.setattr(ordering, "read_clock", lambda kafka, job: None)
    monkeypatch.setattr(ordering, "read_orders", lambda kafka, job: {})
    monkeypatch.setattr(ordering, "time", SimpleNamespace(time=lambda: NOON + 7200))

    def find(kafka, topics, span, table):
        asked.append(span)
        if not topics:
            raise RangeError("no topic")
        return OffsetRange(*({topic: {"0": at} for topic in topics} for at in (0, 9)))

    monkeypatch.setattr(ordering, "find_range", find)
    iso = "2023-11-14T{}:00:00Z".format
    order = ordering.make_order(load(), ordering.AskedRange("orders", iso(10), iso(12)))
    assert (asked[0].end, order.end_ms) == (NOON, NOON * 1000)
    for topics in (("sales", "refunds", "sales"), ("sales, refunds,",), ("sales,refunds", "", "refunds")):
        of_several = ordering.make_order(load(), ordering.AskedRange("orders", iso(10), iso(12), topics))
        assert ([*of_several.starts], of_several.records, order.records) == (["sales", "refunds"], 18, 9)
    for topics in (("",), (" ,",)):
        with pytest.raises(RangeError, match="no topic"):  # the job's own is for whoever gives no option
            ordering.make_order(load(), ordering.AskedRange("orders", iso(10), iso(12), topics))
    marked = ordering.make_order(load(), ordering.AskedRange("orders", iso(10), iso(12), mark="1f"))
    assert (order.id, marked.id) == ("20231114T100000-20231114T120000", "20231114T100000-20231114T120000-1f")
    assert asked[0].until > NOON + DELAY_S and asked[0].final == batches[-1].watermark
    with pytest.raises(RangeError, match="too little"):
        ordering.make_order(load(), ordering.AskedRange("orders", iso(10), iso(12), late_s=60.0))
