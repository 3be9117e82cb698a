"""What a deadline's order says in words, and what is refused: each by its name, with what would do."""

import re
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from configs.settings import load
from models.backfill.deadline import name_moment, read_moment
from models.backfill.given import BackfillPlanError
from pipelines.backfill import ordering
from pipelines.backfill.asked import NotHeldError, RangeError
from pipelines.backfill.further import forecast_further, reaching
from pipelines.backfill.lateness import Lateness
from pipelines.backfill.orders import OrderError
from pipelines.backfill.ranges import OffsetRange
from pipelines.backfill.tables import table_for
from tests.fakes.planned_job import NOW, STEP_S, live_rps, moment, order, plan_at
from tidecast.control import WALL, Clock

ZONE = "UTC"
"""It is 22:13:20 there."""
TEN = 1_699_956_000
"""10:00 UTC of that day."""


def test_a_plan_is_told_in_the_words_of_the_job_clock():
    planned = plan_at(order(), "23:45", 0.9, ZONE, moment())
    assert re.fullmatch(
        r"400 k records; .*; done by 23:\d\d \(90 %\), (23:\d\d|00:\d\d|an unknown time) with 99 %; live promise kept; "
        r"[\d.]+ executor-hours more \(at once: [\d.]+\)",
        planned.sentence,
    ), planned.sentence
    assert (planned.order.by, planned.order.sure) == (NOW + 91 * 60 + 40, 0.9) and planned.order.schedule
    assert planned.plan.by_s == 91 * 60 + 40


def test_in_a_replayed_trace_by_is_trace_time_and_so_are_the_words():
    clock = Clock(NOW, 1_400_000_000.0, 200.0)  # 2014-05-13T16:53:20Z; an hour of the wall is 8.3 days
    asked = order(records=100_000, begin_ms=0, end_ms=1_000)
    planned = plan_at(asked, "2014-05-20 12:00", 0.9, ZONE, moment(clock))
    assert planned.order.by == 1_400_587_200.0 and planned.plan.by_s == pytest.approx(587_200 / 200)
    assert re.search(r"done by \d\d:\d\d \(\+\d d\) \(90 %\)", planned.sentence), planned.sentence


@pytest.mark.parametrize(("by", "sure", "words"), [
    ("23:45", 1.0, r"--sure 1: a probability between 0 and 1"),
    ("23:45", 0.0, r"--sure 0: a probability between 0 and 1"),
    ("2023-11-14 22:00", 0.9, r"--by '2023-11-14 22:00' is .*, which is past; now is"),
    ("soon", 0.9, r"--by 'soon' is no time. Write 07:00"),
    ("02:00", 0.9, r"are too few to forecast .*: give an earlier --by"),
])  # fmt: skip
def test_a_deadline_that_makes_no_sense_is_refused(by, sure, words):
    with pytest.raises(BackfillPlanError, match=words):
        plan_at(order(), by, sure, ZONE, moment())


def test_a_plan_from_a_table_says_that_the_copy_is_not_counted():
    plain, copied = (
        ordering.plan_cheapest(order(table=table), "23:45", 0.9, ZONE, moment()) for table in ("", "/lake/orders")
    )
    assert "copy" not in plain.sentence and copied.hours == plain.hours
    assert re.search(r"the copy of its range .* is not counted: give a --by that is so much earlier", copied.sentence)


@pytest.mark.parametrize(("now", "meant"), [
    ("2026-10-24T23:30Z", "02:30 comes twice in Europe/Berlin: the first is meant"),
    ("2026-10-25T00:45Z", "02:30 comes twice in Europe/Berlin: the second is meant"),
    ("2026-03-29T00:05Z", "02:30 is skipped in Europe/Berlin: 03:00 CEST is meant"),
])  # fmt: skip
def test_which_instant_is_meant_of_a_time_that_the_clock_repeats_or_skips_is_told(now, meant):
    then = moment(now_s=datetime.fromisoformat(now).timestamp())
    planned = ordering.plan_cheapest(order(records=50_000), "02:30", 0.9, "Europe/Berlin", then)
    assert planned.sentence.endswith(f"; {meant}")
    with pytest.raises(BackfillPlanError, match=rf"cannot be met .*, or a lower --sure\. {meant}$"):
        ordering.plan_cheapest(order(records=10**7), "02:30", 0.9, "Europe/Berlin", then)


ZONES = [("Europe/Berlin", 1_699_952_400, "00:45"), (None, 1_699_923_600, "08:45")]
"""Zone that a contract states, when it is 10:00 there on that day, and the time when it is 23:45 in UTC.

The setting is Asia/Tokyo, nine hours ahead of UTC; Berlin is one."""


@pytest.mark.parametrize(("stated", "ten", "by"), ZONES)
def test_a_range_and_a_deadline_are_in_the_zone_of_the_jobs_contract_and_else_of_the_setting(
    tmp_path, monkeypatch, stated, ten, by
):
    monkeypatch.setenv("TIDECAST_CONTRACTS", str(tmp_path))
    monkeypatch.setenv("TIDECAST_REPLAY__TIMEZONE", "Asia/Tokyo")
    (tmp_path / "orders.yaml").write_text("job: orders\n" + (f"timezone: {stated}\n" if stated else ""))
    now = moment()
    known = replace(now.known, contract=now.known.contract.model_copy(update={"timezone": stated}))
    monkeypatch.setattr(ordering, "read_now", lambda settings, job: now._replace(known=known))
    monkeypatch.setattr(ordering, "read_clock", lambda kafka, job: None)
    monkeypatch.setattr(ordering, "read_orders", lambda kafka, job: {})
    monkeypatch.setattr(ordering, "read_lateness", lambda kafka, job, clock: Lateness((), WALL))
    offsets = OffsetRange({"sales": {"0": 0}}, {"sales": {"0": 400_000}})
    monkeypatch.setattr(ordering, "find_range", lambda kafka, topic, span, table: offsets)
    asked = ordering.AskedRange("orders", "2023-11-14T10:00", "2023-11-14T11:00", ("sales",))
    made = ordering.make_order(load(), asked)
    assert (made.begin_ms, made.end_ms) == (1000 * ten, 1000 * (ten + 3600))
    assert made.id == "20231114T100000-20231114T110000"
    planned = ordering.plan_by(load(), made, by, 0.9)
    assert planned.order.by == NOW + 91 * 60 + 40
    assert planned.sentence.endswith(f"; times of {stated or 'Asia/Tokyo'}"), planned.sentence


def from_table(name, table, days, *topics):
    """An order of the hour from 10:00 UTC so many days ago, of a table of these topics; it is over."""
    begin = TEN - 86_400 * days
    starts, ends = ({topic: {"0": at} for topic in topics} for at in (0, 9))
    return order(
        name, wanted="done", starts=starts, ends=ends, table=str(table), begin_ms=begin * 1000,
        end_ms=(begin + 3600) * 1000,
    )  # fmt: skip


def test_the_table_is_known_from_which_an_earlier_order_read_all_that_is_to_be_read_and_that_is_still_there(tmp_path):
    far, near, gone = tmp_path / "far", tmp_path / "near", tmp_path / "gone"
    far.mkdir()
    near.mkdir()
    orders = [
        order("topic"), from_table("january", far, 30, "sales"), from_table("fix", near, 2, "sales", "refunds"),
        from_table("lost", gone, 1, "sales"), from_table("others", far, 0, "visits"),
    ]  # fmt: skip
    known = {one.id: one for one in orders}
    of_near = (
        f". Table {near} held 2023-11-12T10:00:00Z to 2023-11-12T11:00:00Z when replay 'fix' of this job was ordered, "
        f"and was not opened now: give it (--table {near}, or Table in the form)"
    )
    assert table_for(known, ["sales"], TEN, {}) == of_near
    month_ago = TEN - 86_400 * 29
    assert table_for(known, ["sales"], month_ago, {}).startswith(f". Table {far} held 2023-10-15T10:00:00Z to 2023-10-")
    assert table_for(known, ["sales", "refunds"], month_ago, {}) == of_near
    assert table_for(known, ["sales", "returns"], TEN, {}) == table_for({}, ["sales"], TEN, {}) == ""


def test_the_table_that_the_contract_names_comes_before_that_of_an_earlier_order(tmp_path):
    lake, link, near = tmp_path / "lake", tmp_path / "link", tmp_path / "near"
    lake.mkdir()
    near.mkdir()
    link.symlink_to(lake)
    known = {one.id: one for one in (from_table("fix", near, 2, "sales"), from_table("january", lake, 30, "sales"))}
    assert table_for(known, ["sales"], TEN, {"sales": str(link)}) == (
        f". Table {link} is the one that the job's contract names (backpressure.tables), held 2023-10-15T10:00:00Z to "
        f"2023-10-15T11:00:00Z when replay 'january' of this job was ordered, and was not opened now: give it (--table "
        f"{link}, or Table in the form)"
    )
    assert table_for(known, ["sales", "refunds"], TEN, {"refunds": str(lake), "sales": str(lake)}) == (
        f". Table {lake} is the one that the job's contract names (backpressure.tables), and was not opened now: give "
        f"it (--table {lake}, or Table in the form)"
    )


def test_why_a_table_of_the_contract_does_not_serve_is_told_and_then_that_of_an_earlier_order(tmp_path):
    near, gone, topics = tmp_path / "near", tmp_path / "gone", ["sales", "refunds"]
    near.mkdir()
    known = {"fix": from_table("fix", near, 2, *topics)}
    of_near = table_for(known, topics, TEN, {})
    assert of_near.startswith(f". Table {near} held")
    for stated, told in (
        (
            {"sales": near},
            "The job's contract names a table of sales and none of refunds (backpressure.tables): state it there, if "
            "there is one",
        ),
        (
            {"sales": near, "refunds": gone},
            f"The job's contract names several tables of these topics, {near}, {gone} (backpressure.tables): copy what "
            "is to be read into one table, and state that for each of them",
        ),
        (
            {"sales": gone, "refunds": gone},
            f"Table {gone}, which the job's contract names (backpressure.tables), is no folder here: mount it where "
            "tidecast runs, or correct the contract",
        ),
    ):
        paths = {topic: str(table) for topic, table in stated.items()}
        assert table_for(known, topics, TEN, paths) == f". {told}{of_near}"
        assert table_for({}, topics, TEN, paths) == f". {told}"


def test_a_range_that_the_topic_no_longer_holds_is_refused_with_the_table_that_is_known(tmp_path, monkeypatch):
    def find(kafka, topics, span, table):
        raise NotHeldError("topic 'sales' begins at noon. Give --from noon, or read the rest with --table PATH")

    known = from_table("fix", tmp_path, 2, "sales")
    monkeypatch.setattr(ordering, "read_clock", lambda kafka, job: None)
    monkeypatch.setattr(ordering, "read_lateness", lambda kafka, job, clock: Lateness((), WALL))
    monkeypatch.setattr(ordering, "read_orders", lambda kafka, job: {known.id: known})
    monkeypatch.setattr(ordering, "find_range", find)
    asked = ordering.AskedRange("orders", "2023-11-14T10:00:00Z", "2023-11-14T11:00:00Z", ("sales",))
    words = rf"^topic 'sales' begins at noon\. .*--table PATH\. Table .* \(--table {tmp_path}, or Table in the form\)$"
    with pytest.raises(RangeError, match=words):
        ordering.make_order(load(), asked)


def test_the_table_of_the_contract_is_named_in_the_refusal_and_nothing_is_read_from_it_unasked(tmp_path, monkeypatch):
    read_from = []

    def find(kafka, topics, span, table):
        read_from.append(table)
        raise NotHeldError("topic 'sales' begins at noon")

    lake = tmp_path / "lake"
    lake.mkdir()
    (tmp_path / "orders.yaml").write_text(f"job: orders\nbackpressure:\n  tables:\n    sales: {lake}\n")
    monkeypatch.setenv("TIDECAST_CONTRACTS", str(tmp_path))
    monkeypatch.setattr(ordering, "read_clock", lambda kafka, job: None)
    monkeypatch.setattr(ordering, "read_lateness", lambda kafka, job, clock: Lateness((), WALL))
    monkeypatch.setattr(ordering, "read_orders", lambda kafka, job: {})
    monkeypatch.setattr(ordering, "find_range", find)
    asked = ordering.AskedRange("orders", "2023-11-14T10:00:00Z", "2023-11-14T11:00:00Z", ("sales",))
    words = rf"^topic 'sales' begins at noon\. Table {lake} is the one that the job's contract .*--table {lake}, or "
    with pytest.raises(NotHeldError, match=words):
        ordering.make_order(load(), asked)
    assert read_from == [None]


def test_a_deadline_before_the_end_of_the_range_is_refused():
    later = order(end_ms=int((NOW + 7200) * 1000))
    with pytest.raises(BackfillPlanError, match=r"--by 2023-11-14T23:00:00\+00:00 is before --to 2023-11-15T00:13:20"):
        plan_at(later, "23:00", 0.9, ZONE, moment())


def test_a_deadline_that_cannot_be_met_is_refused_with_the_earliest_that_can_and_what_it_would_take():
    with pytest.raises(BackfillPlanError) as refused:
        plan_at(order(records=1_000_000), "22:30", 0.9, ZONE, moment())
    told = re.fullmatch(
        r"--by 22:30 cannot be met with a probability of 0.9, not with all 8 executors from now on. The earliest that "
        r"can be met is (\d\d:\d\d); for 22:30 it takes (\d+) executors \(executors.max in the job's contract\), or a "
        r"lower --sure",
        str(refused.value),
    )
    assert told and int(told[2]) > 8, refused.value
    assert plan_at(order(records=1_000_000), told[1], 0.9, ZONE, moment()).plan.schedule.chance >= 0.9
    with pytest.raises(BackfillPlanError, match=r"later than the forecast reaches; .* no number of executors"):
        plan_at(order(records=10**9), "23:30", 0.9, ZONE, moment())


def test_beside_an_agent_that_takes_no_rate_and_with_an_autoscaler_that_only_observes_no_deadline_is_planned():
    for mode in ("freeze", "observe"):
        with pytest.raises(BackfillPlanError, match=rf"in mode {mode}: .* still. `tidecast job mode orders act`"):
            plan_at(order(), "23:45", 0.9, ZONE, moment(mode=mode))
    now = moment()
    with pytest.raises(BackfillPlanError, match=r"only observes \(autoscaler.mode\).* Set it to act, and restart"):
        plan_at(order(), "23:45", 0.9, ZONE, now._replace(known=replace(now.known, observes=True)))
    assert plan_at(order(), "23:45", 0.9, ZONE, moment(mode=None)).order.schedule  # not heard of yet


def test_without_a_forecast_no_deadline_is_planned():
    now = moment()
    with pytest.raises(BackfillPlanError, match="no forecast of job 'orders' yet"):
        plan_at(order(), "23:00", 0.9, ZONE, now._replace(known=replace(now.known, issued=None)))


def test_a_second_backfill_of_a_name_or_over_a_part_of_a_range_is_refused():
    new = order("new")
    ordering.refuse_second(new, {"new": order("new", wanted="done"), "old": order("old", wanted="done")})
    with pytest.raises(OrderError, match="'new' of job 'orders' is ordered already"):
        ordering.refuse_second(new, {"new": order("new")})
    with pytest.raises(OrderError, match=r"'old' of job 'orders' has a part of the range of 'new'.*--cancel old"):
        ordering.refuse_second(new, {"old": order("old")})


def test_a_deadline_beyond_the_served_forecast_is_planned_from_a_further_one_of_its_past():
    long = moment(past=400)  # of steps of ten minutes
    same = reaching(long, 3600.0)
    assert same is long
    further = reaching(long, 4 * 3600.0).known.issued
    assert further.step_s == 3 * STEP_S and further.times_s[-1] == long.known.issued.times_s[-1]
    assert further.reaches_s >= NOW + 4 * 3600
    ahead = further.outlook(NOW, live_rps(NOW), 8, 1800.0).median
    assert ahead == pytest.approx([live_rps(NOW + (k + 0.5) * 1800) for k in range(8)], rel=0.25)
    planned = plan_at(order(), "02:00", 0.9, ZONE, long)
    assert planned.plan.schedule.chance >= 0.9
    with pytest.raises(BackfillPlanError, match="too few to forecast"):
        forecast_further(moment(past=100).known.issued, WALL, NOW + 4 * 3600.0)


@pytest.mark.parametrize(("text", "at"), [
    ("2026-10-25", 1792879200.0), ("2026-10-25T02:30+02:00", 1792888200.0), ("2026-10-25T02:30+01:00", 1792891800.0),
    ("2026-10-25T03:30", 1792895400.0),
])  # fmt: skip
def test_a_border_of_a_range_is_in_the_jobs_zone_unless_it_has_an_offset(text, at):
    assert read_moment(text, ZoneInfo("Europe/Berlin")) == at


@pytest.mark.parametrize("text", ["2026-10-25T02:30", "2026-03-29T02:30"])
def test_a_border_that_the_zone_shows_twice_or_skips_is_refused_with_what_to_write(text):
    with pytest.raises(BackfillPlanError, match=rf"of Europe/Berlin shows it twice.*{text}:00\+0\d:00 or {text}:00\+"):
        read_moment(text, ZoneInfo("Europe/Berlin"))


def test_ranges_of_both_passes_of_the_hour_that_comes_twice_have_names_of_their_own():
    zone = ZoneInfo("Europe/Berlin")
    hours = ["2026-10-25T01:30", "2026-10-25T02:30+02:00", "2026-10-25T02:30+01:00", "2026-10-25T03:00"]
    assert [name_moment(read_moment(text, zone), zone) for text in hours] == [
        "20261025T013000", "20261025T003000Z", "20261025T013000Z", "20261025T030000",
    ]  # fmt: skip
