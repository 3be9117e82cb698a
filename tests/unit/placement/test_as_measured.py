"""A topology as its queries were measured, by hand."""

import numpy as np
import pytest

from configs.settings import ROOT
from configs.topology import load_topology
from models.placement.known_work import KnownWork
from models.placement.plan import as_measured as plan
from models.placement.plan.measured import Block, Measure, Placement
from models.placement.plan.observed import ObservedBlock, observe_block
from models.placement.rates import rates_of
from tests.unit.placement.test_observed_blocks import batch

ADVERTS = load_topology("adverts", ROOT / "configs" / "topologies")
FIRST = Block(("parse", "views", "project"), "east", 1, 1.0, 1.0)
SECOND = Block(("join", "count"), "west", 3, 1.0, 1.5)
TWO = Placement((FIRST, SECOND), 3.0, 2.5, True)


def as_measured(topology, placement, observed, trips_ms=None, sizes=None, work=None):
    return plan.as_measured(topology, placement, observed, trips_ms or {}, sizes or {}, work or {})


def seen(rps, record_s=None, block=FIRST, said=600.0):
    return ObservedBlock(block, said, rps, 1.0, 1.0, 40, record_s)


def test_sources_and_what_reaches_a_later_query_are_as_measured():
    found = as_measured(ADVERTS, TWO, [seen(900.0), seen(450.0, block=SECOND, said=198.0)])
    rates = rates_of(found)
    assert rates.sent["events"] == pytest.approx(900.0) and rates.sent["project"] == pytest.approx(450.0)
    assert found.operators["views"] == ADVERTS.operators["views"]
    assert found.operators["project"].selectivity == pytest.approx(450 / (0.33 * 900))


def test_the_work_of_a_query_is_what_its_batches_tell_of_a_record():
    found = as_measured(ADVERTS, TWO, [seen(900.0, 0.004), seen(None)])
    blocks = (FIRST.operators, SECOND.operators)
    assert Measure(found, rates_of(found)).wiring(blocks).loads[0] == pytest.approx(0.004 * 900)
    ratio = found.operators["parse"].work_ms / ADVERTS.operators["parse"].work_ms
    assert found.operators["views"].work_ms == pytest.approx(ratio * ADVERTS.operators["views"].work_ms)
    assert found.operators["join"] == ADVERTS.operators["join"]


@pytest.mark.parametrize("times", [0.5, 2.0])
def test_a_query_that_writes_two_topics_has_the_work_that_its_batches_tell_though_it_runs_what_is_before_them_twice(
    times,
):
    ranked = load_topology("words_ranked", ROOT / "configs" / "topologies" / "bench")
    blocks = (("parse", "split", "count"), ("top",))
    first, last = (Block(one, "east", 1, 1.0, 1.0) for one in blocks)
    real = ranked.model_copy(update={"operators": {
        name: own.model_copy(update={"work_ms": own.work_ms * (times if name in blocks[0] else 1.0)})
        for name, own in ranked.operators.items()
    }})  # fmt: skip
    load = Measure(real, rates_of(real)).wiring(blocks).loads[0]
    told = [seen(30.0, load / 30.0, first, 30.0), seen(None, block=last)]
    found = as_measured(ranked, Placement((first, last), 2.0, 2.0, True), told)
    assert Measure(found, rates_of(found)).wiring(blocks).loads[0] == pytest.approx(load)
    assert found.operators["parse"].work_ms == pytest.approx(times * ranked.operators["parse"].work_ms)


def test_inside_a_query_operators_make_as_many_records_of_one_as_were_counted():
    counted = {"events": 900.0, "parse": 810.0, "views": 162.0, "project": 162.0}
    first = seen(900.0, 0.004)._replace(sent_rps=counted)
    found = as_measured(ADVERTS, TWO, [first, seen(162.0, block=SECOND, said=198.0)])
    rates = rates_of(found)
    assert {name: rates.sent[name] for name in counted} == pytest.approx(counted)
    blocks = (FIRST.operators, SECOND.operators)  # what a record takes is what was measured, at these rates
    assert Measure(found, rates).wiring(blocks).loads[0] == pytest.approx(0.004 * 900)
    ratio = found.operators["parse"].work_ms / ADVERTS.operators["parse"].work_ms
    assert found.operators["project"].work_ms == pytest.approx(ratio * ADVERTS.operators["project"].work_ms)
    alone = as_measured(ADVERTS, TWO, [first, seen(None, block=SECOND, said=198.0)])  # the later one says nothing yet
    assert rates_of(alone).taken["join"] == pytest.approx(162.0)


def test_what_is_counted_inside_is_no_guess_where_the_next_query_is_behind():
    counted = {"events": 600.0, "parse": 600.0, "views": 300.0, "project": 300.0}
    late = seen(120.0, block=SECOND, said=198.0)._replace(latency_s=9.0)
    rates = rates_of(as_measured(ADVERTS, TWO, [seen(600.0)._replace(sent_rps=counted), late]))
    assert rates.sent["project"] == pytest.approx(300.0)
    nothing = dict(counted, views=0.0, project=0.0)
    quiet = as_measured(ADVERTS, TWO, [seen(600.0)._replace(sent_rps=nothing), seen(None)])
    assert rates_of(quiet).sent["project"] == 0 and quiet.operators["project"] == ADVERTS.operators["project"]


def test_a_query_that_is_behind_does_not_lower_what_reaches_it():
    late = seen(100.0, block=SECOND, said=198.0)._replace(latency_s=3.1)
    assert rates_of(as_measured(ADVERTS, TWO, [seen(600.0), late])).sent["project"] == pytest.approx(198.0)
    more = late._replace(rps=400.0)
    assert rates_of(as_measured(ADVERTS, TWO, [seen(600.0), more])).sent["project"] == pytest.approx(400.0)
    in_time = late._replace(latency_s=2.9)
    assert rates_of(as_measured(ADVERTS, TWO, [seen(600.0), in_time])).sent["project"] == pytest.approx(100.0)


def test_what_a_query_that_is_behind_holds_back_is_no_other_ones_selectivity():
    late = seen(500.0)._replace(latency_s=5.0)
    rates = rates_of(as_measured(ADVERTS, TWO, [late, seen(165.0, block=SECOND, said=198.0)]))
    assert rates.sent["events"] == pytest.approx(600.0) and rates.sent["project"] == pytest.approx(198.0)


def test_of_a_query_that_reads_sources_what_comes_counts_not_what_it_managed_to_read():
    full = seen(860.0, 0.004)._replace(come_rps=1_200.0, latency_s=9.0)
    found = as_measured(ADVERTS, TWO, [full, seen(0.33 * 860, block=SECOND, said=198.0)])
    assert rates_of(found).sent["events"] == pytest.approx(1_200)
    assert rates_of(found).sent["project"] == pytest.approx(0.33 * 1_200)
    blocks = (FIRST.operators, SECOND.operators)
    assert Measure(found, rates_of(found)).wiring(blocks).loads[0] == pytest.approx(0.004 * 1_200)
    drains = seen(1_500.0)._replace(come_rps=1_000.0)  # and so does what it sends on
    rates = rates_of(as_measured(ADVERTS, TWO, [drains, seen(0.33 * 1_500, block=SECOND, said=198.0)]))
    assert rates.sent["events"] == pytest.approx(1_000) and rates.sent["project"] == pytest.approx(330)
    less = seen(400.0)._replace(come_rps=400.0, latency_s=9.0)  # slow, but no more than that comes
    assert rates_of(as_measured(ADVERTS, TWO, [less, seen(None)])).sent["events"] == pytest.approx(400)
    none = seen(5.0)._replace(come_rps=0.0)
    assert rates_of(as_measured(ADVERTS, TWO, [none, seen(2.0, block=SECOND, said=198.0)])).sent["project"] == 0


def test_what_comes_from_sources_that_are_stated_without_records_counts_in_equal_parts():
    none = ADVERTS.sources["events"].model_copy(update={"rps": 0.0})
    views = ADVERTS.operators["views"].model_copy(update={"of": ("parse", "others")})
    for sources in (["events"], ["events", "others"]):
        operators = {**ADVERTS.operators, **({"views": views} if "others" in sources else {})}
        silent = ADVERTS.model_copy(update={"sources": dict.fromkeys(sources, none), "operators": operators})
        told = [seen(860.0, 0.004, said=0.0)._replace(come_rps=900.0), seen(None, block=SECOND, said=0.0)]
        found = as_measured(silent, TWO, told)
        rates = rates_of(found)
        assert [rates.sent[name] for name in sources] == pytest.approx([900 / len(sources)] * len(sources))
        assert rates.sent["project"] == pytest.approx(0.33 * 900)
        blocks = (FIRST.operators, SECOND.operators)
        assert Measure(found, rates).wiring(blocks).loads[0] == pytest.approx(0.004 * 900)


def test_what_a_query_that_hangs_has_read_of_what_comes_tells_nothing_of_those_after_it():
    hangs = ObservedBlock(FIRST, 600.0, None, None, None, 1, come_rps=1_800.0)
    later = seen(5.0, block=SECOND, said=198.0)  # what it got before that
    rates = rates_of(as_measured(ADVERTS, TWO, [hangs, later]))
    assert rates.sent["events"] == pytest.approx(1_800) and rates.sent["project"] == pytest.approx(0.33 * 1_800)
    assert plan.offered_loads(ADVERTS, TWO, [hangs, later]) == pytest.approx([0, 1 / 3])


def test_the_load_of_a_query_that_cannot_keep_up_is_above_one_and_what_it_holds_back_is_the_next_one_s_load():
    full, later = seen(860.0)._replace(come_rps=1_200.0), seen(0.33 * 860, block=SECOND, said=198.0)
    first, second = plan.offered_loads(ADVERTS, TWO, [full, later])
    assert first == pytest.approx(1_200 / 860) and second == pytest.approx(1_200 / 860 / 3)
    assert plan.offered_loads(ADVERTS, TWO, [full._replace(come_rps=None), later]) == pytest.approx([1, 1 / 3])
    drains = full._replace(rps=1_500.0)  # all its cores are busy with what has waited
    assert plan.offered_loads(ADVERTS, TWO, [drains, later])[0] == pytest.approx(0.8)
    late = later._replace(rps=99.0, latency_s=9.0)  # half of what reaches it
    assert plan.offered_loads(ADVERTS, TWO, [seen(600.0), late]) == pytest.approx([1, 2 / 3])


def test_a_query_that_is_behind_does_not_raise_what_reaches_those_that_do_not_read_of_it():
    views = ADVERTS.operators["views"]
    other = {name: views.model_copy(update={"of": (of,)}) for name, of in (("clicks", "others"), ("rank", "clicks"))}
    two = ADVERTS.model_copy(update={
        "sources": {**ADVERTS.sources, "others": ADVERTS.sources["events"]},
        "operators": {**ADVERTS.operators, **other},
    })  # fmt: skip
    third, last = Block(("clicks",), "west", 1, 1.0, 1.0), Block(("rank",), "west", 1, 1.0, 1.0)
    placement = Placement((FIRST, SECOND, third, last), 5.0, 2.5, True)
    late = seen(300.0)._replace(latency_s=5.0)
    told = [late, seen(99.0, block=SECOND), seen(600.0, block=third), seen(198.0, block=last)]
    rates = rates_of(as_measured(two, placement, told))
    assert rates.sent["others"] == pytest.approx(600.0) and rates.sent["clicks"] == pytest.approx(198.0)
    assert rates.sent["events"] == pytest.approx(600.0) and rates.sent["project"] == pytest.approx(198.0)


def test_what_was_not_measured_is_as_stated():
    assert as_measured(ADVERTS, TWO, [seen(None), seen(None)]) == ADVERTS


def test_round_trips_are_what_they_take_beyond_those_within_the_broker_s_cluster():
    unseen = [seen(None), seen(None)]
    probed = as_measured(ADVERTS, TWO, unseen, {"west": 36.5, "east": 1.5})
    assert probed.round_trip_ms("west", "east") == probed.round_trip_ms("east", "west") == 35.0
    assert as_measured(ADVERTS, TWO, unseen, {"west": 36.5}).round_trip_ms("east", "west") == 36.5
    assert as_measured(ADVERTS, TWO, unseen, {"east": 1.5}).round_trip_ms("east", "west") == 20.0
    assert as_measured(ADVERTS, TWO, unseen, {"west": 0.5, "east": 1.5}).round_trip_ms("east", "west") == 0.0
    assert ADVERTS.round_trip_ms("east", "west") == 20.0


def test_records_are_as_large_as_on_their_topics():
    found = as_measured(ADVERTS, TWO, [seen(None), seen(None)], sizes={"events": 231.0, "project": 55.0})
    assert found.sources["events"].bytes == 231.0 and found.operators["project"].bytes == 55.0
    assert found.operators["join"] == ADVERTS.operators["join"]


def test_what_a_record_takes_is_told_apart_from_what_a_batch_takes_where_batches_differ():
    random = np.random.default_rng(0)
    rows = random.integers(200, 1200, 30)
    batches = [batch(100.0 + at, int(many), 0.5 + 0.003 * many) for at, many in enumerate(rows)]
    assert observe_block(ADVERTS, TWO, 0, batches).record_s == pytest.approx(0.003)
    alike = [batch(100.0 + at, 600 + at % 3, 2.3) for at in range(30)]
    assert observe_block(ADVERTS, TWO, 0, alike).record_s is None
    assert observe_block(ADVERTS, TWO, 0, batches[:5]).record_s is None


def looked_at(rows, run_s, every_s, work=None):
    """The job as one query on two executors, and what a minute and more of batches that are all alike have told."""
    one = Placement((Block(tuple(ADVERTS.operators), "east", 2, 1.56, 1.8),), 2.0, 1.8, True)
    batches = [batch(100.0 + every_s * at, rows, run_s) for at in range(int(80 / every_s))]
    found = observe_block(ADVERTS, one, 0, batches, work=work)
    assert found.record_s is None
    return one, found._replace(come_rps=600.0)


def work_of(one, found, work=None):
    """Core-seconds of a record with which 600/s that come are planned."""
    topology = as_measured(ADVERTS, one, [found], work=work)
    return Measure(topology, rates_of(topology)).wiring((one.blocks[0].operators,)).loads[0] / 600


STATED_S = 1.56064 / 600
OWN_MS, TOPICS_MS = 1.4 + 3.6 * 0.33, 0.0130725


def known_as(record_s):
    """What a plan by the stated selectivities has kept."""
    return {"parse": KnownWork(record_s, (1000 * record_s - TOPICS_MS) / OWN_MS)}


def test_a_query_all_of_whose_batches_are_full_is_planned_with_what_its_cores_did_for_a_record():
    """Two executors have five triggers of stated work for 3,844 records, which take them 7.8 s."""
    one, full = looked_at(3_844, 3_844 * 0.004, 8.0)
    assert full.full and full.whole_s == pytest.approx(0.004)
    assert work_of(one, full) == work_of(one, full, known_as(0.001)) == pytest.approx(0.004)
    one, small = looked_at(3_844, 3_844 * 0.004, 8.0, known_as(0.001))  # they may have 10,000
    assert not small.full


def test_what_a_record_takes_with_its_share_of_a_small_batch_is_the_most_that_it_may_take():
    one, night = looked_at(15, 1.5, 1.5)  # no work to speak of: 0.1 s for each of 600/s would be 60 cores
    assert not night.full and night.whole_s == pytest.approx(0.1)
    assert work_of(one, night) == pytest.approx(STATED_S, rel=1e-4)
    assert work_of(one, night, known_as(0.004)) == pytest.approx(0.004)  # as the plan before had found
    one, quick = looked_at(600, 0.6, 1.0)
    assert work_of(one, quick) == work_of(one, quick, known_as(0.004)) == pytest.approx(0.001)
    assert work_of(one, quick, known_as(0.0005)) == pytest.approx(0.0005)


def test_known_work_goes_with_the_records_that_operators_make_of_one_now():
    one, steady = looked_at(600, 600 * 0.0051, 1.0)
    assert work_of(one, steady, known_as(0.0013)) == pytest.approx(0.0013)
    passed = {"events": 600.0, "parse": 600.0, "views": 540.0, "project": 540.0, "join": 540.0, "count": 27.0}
    more = steady._replace(sent_rps=passed)  # 90 % are views, where 33 % were: 4.64 ms and 0.014925 for topics
    assert work_of(one, more) == work_of(one, more, {"parse": KnownWork(STATED_S, 1.0)}) == pytest.approx(0.004654925)
    assert work_of(one, more, {"parse": KnownWork(0.0013, 0.5)}) == pytest.approx(0.002334925)
    assert work_of(one, more, {"parse": KnownWork(0.0039, 1.5)}) == pytest.approx(0.0051)  # all that batches took
    for older_s, planned_s in ((0.0026, 0.004654925), (0.005, 0.005)):  # nobody knows at which selectivities
        assert work_of(one, more, {"parse": KnownWork(older_s)}) == pytest.approx(planned_s)


def test_a_few_batches_that_may_have_loaded_classes_tell_no_work():
    one, found = looked_at(3_844, 3_844 * 0.004, 8.0)
    began = observe_block(ADVERTS, one, 0, [batch(100.0 + 8 * at, 3_844, 40.0) for at in range(8)])
    assert began.whole_s is None and work_of(one, began._replace(come_rps=600.0)) == pytest.approx(STATED_S, rel=1e-4)
    assert found.whole_s is not None
