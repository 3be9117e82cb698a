"""Messages in, the model out: newest values, an account that goes on from the autoscaler's, nothing that ends it."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.policy.core.budget import Account, Promise
from pipelines.bench.team.console.records import (
    NOW,
    batch,
    beat,
    contract,
    decision,
    forecast,
    interval,
    order,
    outcome,
    progress,
    record,
    word,
)
from pipelines.console.backfills import backfill_rows
from pipelines.console.read.fold import ReadModel, fold
from pipelines.console.shown import forecast_fan, job_details, job_row
from tests.fakes.records import bad_records


def seen(*records, job="orders"):
    return fold(ReadModel(), records, NOW + 60).jobs[job]


def test_the_newest_of_everything_is_a_row():
    known = seen(
        contract("orders", latency_target_s=6.0, error_budget=0.02),
        interval("orders", NOW, 80.0, 2), interval("orders", NOW + 1, 90.0, 3, lag_records=7),
        batch("orders", NOW + 1, 2.5), decision("orders", NOW + 1, 4),
        word("orders", NOW - 5, "act"), beat("orders", NOW + 1),
    )  # fmt: skip
    row = job_row(known, NOW + 3)
    expected = {
        "target_s": 6.0, "budget": 0.02, "executors": 3, "target": 4, "arrival_rps": 90.0, "lag_records": 7,
        "latency_s": 2.5, "mode": "act", "age_s": 2.0,
    }  # fmt: skip
    assert row | expected == row
    assert row["word"] == {"mode": "act", "at": NOW - 5, "by": "ann"}
    assert (row["rank"], row["trouble"]) == (0, "")


def test_without_a_decision_the_account_is_that_of_the_jobs_batches():
    batches = [(NOW + 3.0 * i, 2.0 + 7.0 * (i % 5 == 0)) for i in range(50)]
    known = seen(contract("orders"), *(batch("orders", at, latency) for at, latency in batches))
    account = Account()
    for at, latency_s in batches:
        account = account.add_batch(Promise(5.0, 0.01, 7.0), at, latency_s, 1.0)
    assert account.late_s > 0
    assert known.account == account


def test_without_a_decision_a_figure_is_told_once_its_window_has_been_seen():
    """Of a promise of a day: 514 s of the long window, which are 1/168 of it, and 43 s of the short one."""
    batches = [batch("orders", NOW - 600 + i, 2.0) for i in range(600)]

    def known(many):
        standing = seen(contract("orders", window_days=1.0), *batches[:many]).standing()
        return {name for name, value in standing.items() if value is not None}

    assert known(40) == {"seconds"}
    assert known(60) == {"seconds", "burn_short"}
    assert known(600) == {"seconds", "burn_short", "burn_long"}


@given(st.integers(5, 55), st.integers(0, 4), st.integers(0, 99))
def test_it_goes_on_from_what_a_decision_says_whenever_that_is_read(cut, lag, phase):
    """The lake's figure is the autoscaler's: an account of all batches. The console has seen the newest alone."""
    promise, account = Promise(5.0, 0.01, 7.0), Account()
    batches = [(NOW + 3.0 * i, 2.0 + 7.0 * ((i * 37 + phase) % 11 == 0)) for i in range(120)]
    for at, latency_s in batches[: 60 + cut]:
        account = account.add_batch(promise, at, latency_s, 1.0)
    at = batches[60 + cut - 1][0]
    said = decision("orders", at + 0.1, promise=account.standing(promise, 1.0), metric_wall_time=at)
    late = [batch("orders", *pair) for pair in batches[60:]]
    late.insert(cut + lag, said)
    known = fold(ReadModel(), [contract("orders"), *late], NOW + 600).jobs["orders"]
    for pair in batches[60 + cut :]:
        account = account.add_batch(promise, *pair, 1.0)
    ours, theirs = known.standing(), account.standing(promise, 1.0)
    assert ours["late_s"] == theirs["late_s"] and ours["seconds"] == theirs["seconds"]
    assert ours["budget_left"] == theirs["budget_left"]
    assert ours["burn_long"] == pytest.approx(theirs["burn_long"], rel=0.02)
    assert ours["burn_short"] == pytest.approx(theirs["burn_short"], rel=0.02)


def test_a_contract_that_is_read_last_finds_the_account_as_if_it_had_been_read_first():
    said = {"late_s": 50.0, "seconds": 1000.0, "budget_left": 0.9, "burn_long": 1.0, "burn_short": 1.0}
    stated, known = contract("orders"), [batch("orders", NOW + 3 * i, 9.0) for i in range(9)]
    known.append(decision("orders", NOW + 9, promise=said, metric_wall_time=NOW + 9))
    standings = [seen(*known[:i], stated, *known[i:]).standing() for i in range(len(known) + 1)]
    assert all(standing == standings[0] for standing in standings) and standings[0]["late_s"] > 50.0
    assert seen(*known[:9], stated).account == seen(stated, *known[:9]).account


def test_late_seconds_so_far_count_on_when_a_contract_is_said_again():
    said = {"late_s": 50.0, "seconds": 1000.0, "budget_left": 0.9, "burn_long": 1.0, "burn_short": 1.0}
    records = [contract("orders"), decision("orders", NOW, promise=said, metric_wall_time=NOW)]
    records += [batch("orders", NOW + 3 * i, 9.0) for i in range(200)]  # more than are kept
    assert seen(*records, contract("orders")).account == seen(*records).account
    assert seen(*records).standing()["late_s"] > 300


def test_what_was_said_before_counts_no_more():
    newer = {"late_s": 50.0, "seconds": 1000.0, "budget_left": 0.9, "burn_long": 1.0, "burn_short": 1.0}
    older = {**newer, "late_s": 10.0}
    known = seen(
        contract("orders"), decision("orders", NOW, promise=newer, metric_wall_time=NOW),
        decision("orders", NOW - 9, promise=older, metric_wall_time=NOW - 9),
    )  # fmt: skip
    assert known.standing()["late_s"] == 50.0
    assert [decided.at for decided in known.decisions] == [NOW - 9, NOW]


def test_an_outcome_is_set_beside_its_decision_also_if_it_is_read_first():
    known = seen(outcome("orders", NOW), decision("orders", NOW), decision("orders", NOW + 5), interval("orders", NOW))
    shown = job_details(known, NOW + 9, 0.0)["decisions"]
    assert [(one["at"], one["outcome"]) for one in shown] == [(NOW + 5, None), (NOW, "confirmed")]
    assert (shown[1]["before"], shown[1]["executors"], shown[1]["codes"]) == (2, 3, ("up", "forecast"))


def test_a_fan_lies_where_its_steps_are_in_wall_time():
    fan = forecast_fan(seen(interval("orders", NOW), forecast("orders", NOW, 100.0, steps=2, step_s=60.0)))
    assert fan["times"] == [NOW - 1, NOW + 59, NOW + 119]  # [NOW, NOW + 1) of the job's time was measured at NOW
    assert fan["levels"] == [0.05, 0.25, 0.5, 0.75, 0.95]
    assert fan["quantiles"][2] == [100.0, 100.0]


def test_repeats_change_nothing():
    records = [contract("orders"), *(make("orders", NOW) for make in (interval, batch, decision, outcome))]
    once = fold(ReadModel(), records, NOW)
    again = fold(once, records, NOW)
    assert replace(again.jobs["orders"], revision=0) == replace(once.jobs["orders"], revision=0)


def test_once_the_clock_was_set_back_what_comes_is_the_newest_at_once_and_the_hours_before_stay():
    said = {"late_s": 50.0, "seconds": 1000.0, "budget_left": 0.9, "burn_long": 1.0, "burn_short": 1.0}
    hours = [interval("orders", NOW - 7200 + 10 * i, 70.0) for i in range(721)]
    newest = [
        batch("orders", NOW, 2.5), decision("orders", NOW, 4, promise=said, metric_wall_time=NOW),
        beat("orders", NOW), forecast("orders", NOW, 100.0),
    ]  # fmt: skip
    back = [record_of("orders", NOW - 3600) for record_of in (interval, batch, decision, beat)]
    known = seen(contract("orders"), *hours, *newest, *back, forecast("orders", NOW - 3600, 90.0))
    assert (known.sample.wall_time, known.batch.wall_time, known.beat.wall_time) == (NOW - 3600,) * 3
    assert known.forecast.wall_time == NOW - 3600 and [decided.at for decided in known.decisions] == [NOW - 3600]
    assert known.standing()["late_s"] is None
    (times, *_) = known.coarse.columns()
    assert (times[0], len(times)) == (NOW - 7200, 361) and known.coarse.columns(NOW - 0.5)[0] == times
    late = seen(*hours, interval("orders", NOW - 30, 10.0))
    assert late.sample.wall_time == NOW, "a record that comes late sets no clock back"


def test_only_jobs_that_changed_have_a_new_revision():
    first = fold(ReadModel(), [interval("orders", NOW), interval("rides", NOW)], NOW)
    second = fold(first, [interval("rides", NOW + 1)], NOW)
    assert second.jobs["orders"] is first.jobs["orders"]
    assert second.jobs["rides"].revision == second.revision == first.revision + 1


@pytest.mark.parametrize("topic", ["metrics", "decisions", "outcomes", "forecasts", "contracts"])
def test_bad_records_are_counted_and_change_no_job(topic):
    bad = [record(topic, "word_count", value or b"") for value, _ in bad_records(topic).values()]
    model = fold(fold(ReadModel(), [interval("orders", NOW)], NOW), bad, 1_760_000_000.0)
    assert model.refused == len(bad) and set(model.jobs) == {"orders"}


def test_a_contract_that_is_none_and_a_word_under_anothers_key_are_refused():
    strange = json.loads(contract("orders").value)
    records = [
        record("contracts", strange["hash"], json.dumps({**strange, "text": "{}"}).encode()),
        record("contracts", strange["hash"], json.dumps({**strange, "job": "rides"}).encode()),
        record("control", "rides:mode", word("orders", NOW, "freeze").value),
        record("control", "orders:clock", b"anything"),
        record("control", "orders:mode", b""),
    ]
    assert fold(ReadModel(), records, NOW) == ReadModel(refused=3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
COUNTS = st.none() | st.integers(0, 2**63 - 1)
INPUTS = ["promise", "needed_forecast", "capacity_rps", "metric_wall_time"]
KINDS = ["interval", "batch", "decision", "outcome", "forecast", "beat", "contract", "word", "order", "progress"]
NUMBERS = st.none() | st.floats(0, 1e15)
TIMES = st.floats(0, 4e9)


@st.composite
def strange(draw):
    """A record that is valid by its fields, of any time, in any order, with anything where anything may stand."""
    job, at = draw(st.sampled_from(["orders", "rides"])), draw(TIMES)
    scale = draw(st.floats(0, 1e6, exclude_min=True))
    made = draw(st.sampled_from(KINDS))
    if made == "interval":
        fields = {"arrival_rps": draw(st.floats(0, 1e9)), "executors": draw(COUNTS), "lag_records": draw(COUNTS)}
        made = interval(job, at, **fields, mode=draw(st.none() | st.text(max_size=3)))
    elif made == "batch":
        made = batch(job, at, draw(NUMBERS), batch_rows=draw(st.none() | st.integers(0, 9)))
    elif made == "decision":
        inputs = draw(st.dictionaries(st.sampled_from(INPUTS), JSON))
        said = {name: draw(JSON) for name in ("late_s", "seconds", "budget_left", "burn_long", "burn_short")}
        made = decision(job, at, draw(st.integers(0, 99)), **{"promise": said, **inputs})
    elif made == "forecast":
        made = forecast(job, at, draw(st.floats(0, 1e12)), draw(st.integers(1, 4)), draw(st.floats(1e-300, 3e7)))
    elif made == "contract":
        made = contract(job, window_days=draw(st.floats(0.01, 366)))
    elif made == "order":
        made = order(job, "fix", at, by=draw(st.none() | TIMES), begin_ms=draw(st.none() | st.integers(0, 4 * 10**12)))
    elif made == "progress":
        made = progress(job, "fix", at, draw(st.integers(0, 2**63 - 1)), rps=draw(NUMBERS))
    elif made == "word":
        made = word(job, at, "freeze")
    else:
        made = {"outcome": outcome, "beat": beat}[made](job, at)
    fields = json.loads(made.value)
    if "time_scale" in fields:
        fields["time_scale"] = scale
    return replace(made, value=json.dumps(fields).encode())


@given(st.lists(strange(), max_size=12))
def test_whatever_comes_the_page_of_every_job_is_json_and_another_jobs_row_the_same(records):
    calm = [contract("calm"), interval("calm", NOW), batch("calm", NOW)]
    model = ReadModel()
    for one in (*calm, *records):
        model = fold(model, [one], 4.1e9)
    json.dumps(backfill_rows(model, NOW), allow_nan=False)
    for job in model.jobs.values():
        json.dumps([job_row(job, NOW), job_details(job, NOW, 0.0)], allow_nan=False)
    assert job_row(model.jobs["calm"], NOW) == job_row(fold(ReadModel(), calm, NOW).jobs["calm"], NOW)


def test_late_seconds_that_a_decision_has_counted_are_not_counted_again_whenever_their_batches_are_read():
    said = {"late_s": 50.0, "seconds": 1000.0, "budget_left": 0.9, "burn_long": 1.0, "burn_short": 1.0}
    told = decision("orders", NOW + 60.5, promise=said, metric_wall_time=NOW + 58, batch_wall_time=NOW + 60)
    batches = [batch("orders", NOW + 3 * i, 9.0) for i in range(30)]
    in_turn = seen(contract("orders"), *batches[:21], told, *batches[21:])
    at_first = seen(contract("orders"), told, *batches)
    assert at_first.account == in_turn.account
    # Nine batches later, each over 3 s of which all were late.
    assert (in_turn.standing()["late_s"], in_turn.standing()["seconds"]) == (77.0, 1027.0)


def test_a_second_shows_what_was_asked_for_then_though_later_decisions_are_known():
    told = [decision("orders", NOW + at, 3 + at, capacity_rps=100.0 + at) for at in (0, 1, 5)]
    columns = seen(*told, *(interval("orders", NOW + at) for at in (-1, 0, 4, 5))).fine.columns()
    assert columns[3:5] == [[None, 3.0, 4.0, 8.0], [None, 100.0, 101.0, 105.0]]
