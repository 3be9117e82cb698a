"""What the backfill bench plans, and what it makes of sessions: by hand, of cells that were never run."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from configs.contract import Contract
from configs.errors import SettingsError
from configs.settings import load
from pipelines.bench.backfill import (
    cells,
    deadlines,
    faults,
    finish,
    latency,
    limits,
    measure,
    outages,
    rows,
    workloads,
)
from pipelines.bench.backfill.arrangement import CAPACITY_RPS, EXECUTORS, Arrangement, arrange
from pipelines.bench.backfill.cells import MeasuredCell
from pipelines.bench.backfill.loads import (
    BURSTS,
    CORRECTED,
    HOT,
    LOADS,
    PARTITIONS,
    STEP,
    draw_arrivals,
    live_rates,
    mean_rps,
)
from pipelines.bench.backfill.text import describe_cell, format_figures
from pipelines.figures import goals
from tidecast.fields import job_name

GOALS = goals.goals_of("tidecast bench backfill")


def session(p99=400, rps=None, seconds=600, **more):
    """What a session showed: a record a second, all with this latency, hundredths of a second."""
    found = {
        "seconds": float(seconds), "latency": [[p99]] * seconds, "p99_s": p99 / 100, "limit_s": 4.6, "done_s": None,
        "rps": rps, "exact": None, "rates": [], "decisions": 0, "differing": 0, "planned": None, "futures": None,
        "refused": None, "schedule": None, "commit": "abc", "busy_before": 0.0,
    }  # fmt: skip
    return {**found, **more}


def away(back_s, filled_s=None, wrong=0):
    """What a session with an outage showed."""
    return session(p99_s=None, back_s=back_s, late_s=0.0, filled_s=filled_s, began_s=20.0, wrong=wrong, windows=48)


def kept_of(planned, showed):
    """Each planned cell with what `showed` says of its arm, or of the cell."""
    return {cell: showed(cell) for cell in planned}


def test_arms_take_turns_and_which_is_first_does_too():
    planned = cells.take_turns("finish", "steady", ("alone", "ours", "two"), 3, 5.0)
    assert [cell.arm for cell in planned] == ["alone", "ours", "two", "two", "ours", "alone", "alone", "ours", "two"]
    assert [cell.turn for cell in planned] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_cells_are_kept_and_only_those_of_a_row_and_load_are_forgotten(tmp_path):
    first, other = (
        MeasuredCell("latency", "steady", "fixed:40", 0, 0.5),
        MeasuredCell("latency", "taxi", "ours", 1, 10.0),
    )
    for cell in (first, other):
        (tmp_path / cell.name).mkdir()
        cells.keep(tmp_path, cell, session())
    (tmp_path / "broken-off").mkdir()
    assert set(cells.read_kept(tmp_path)) == {first, other}
    assert cells.read_kept(tmp_path)[first] == session()
    cells.forget(tmp_path, {("latency", "steady"), ("finish", "taxi")})
    assert list(cells.read_kept(tmp_path)) == [other]


def test_the_limit_is_that_of_the_loads_first_session_alone():
    cell = MeasuredCell("finish", "taxi", "two", 2, 5.0)
    assert cells.latency_limit_s({}, cell, 1.15) is None
    known = {
        MeasuredCell("finish", "taxi", "alone", 0, 5.0): session(400),
        MeasuredCell("finish", "taxi", "alone", 1, 5.0): session(9),
    }
    assert cells.latency_limit_s(known, cell, 1.15) == pytest.approx(4.6)
    assert cells.latency_limit_s(known, cell._replace(load="steady"), 1.15) is None


@pytest.mark.parametrize("name", LOADS)
def test_records_of_a_load_come_in_order_and_as_often_as_they_should(name):
    found = draw_arrivals(name, 90.0, 90.0, seed=3)
    assert (np.diff(found.at_s) >= 0).all() and found.at_s[0] >= 0 and found.at_s[-1] <= 90.0
    assert len(found.at_s) == len(found.key) == len(found.partition)
    assert (found.takes_back < 0).sum() == pytest.approx(90 * mean_rps(name, 90.0), rel=0.06)
    assert set(found.partition.tolist()) == set(range(PARTITIONS))
    again = draw_arrivals(name, 90.0, 90.0, seed=3)
    assert all((one == other).all() for one, other in zip(found, again, strict=True))


def test_retractions_follow_what_they_take_back_at_most_two_seconds_later_and_each_record_goes_once():
    found = draw_arrivals(CORRECTED, 90.0, 90.0, seed=3)
    taken = np.flatnonzero(found.takes_back >= 0)
    whose = found.takes_back[taken]
    assert len(taken) == pytest.approx(0.1 * 80 * 90, rel=0.15) and len(set(whose.tolist())) == len(whose)
    assert (whose < taken).all() and (found.takes_back[whose] < 0).all()
    later_s = found.at_s[taken] - found.at_s[whose]
    assert later_s.max() <= 2.0 + 1e-9 and later_s.mean() == pytest.approx(0.66, rel=0.15)
    assert (found.key[taken] == found.key[whose]).all() and (found.partition[taken] == found.partition[whose]).all()
    assert (draw_arrivals("steady", 9.0, 9.0, seed=3).takes_back == -1).all()


def test_rates_by_hand():
    assert live_rates(STEP, np.array([0.0, 29.9, 30.0, 60.0, 200.0]), 90.0).tolist() == [50, 50, 110, 70, 70]
    assert live_rates(BURSTS, np.array([44.9, 45.0, 59.9, 60.0, 120.0]), 300.0).tolist() == [65, 130, 130, 65, 130]
    day = live_rates("taxi", np.arange(0.0, 600.0), 600.0)
    assert day.max() == pytest.approx(110.0, rel=5e-3) and 5 < day.min() < 30
    even = draw_arrivals(STEP, 90.0, 90.0, seed=1)
    assert len(even.at_s) == 30 * (50 + 110 + 70) and np.diff(even.at_s[:1000]) == pytest.approx(1 / 50, rel=1e-6)


def test_a_hot_key_has_its_share_of_the_middle_third_and_one_partition():
    found = draw_arrivals(HOT, 90.0, 90.0, seed=2)
    middle = (found.at_s >= 30) & (found.at_s < 60)
    hot, before = ((found.key[part] == 0).mean() for part in (middle, found.at_s < 30))
    assert hot == pytest.approx(0.4 + 0.6 * before, abs=0.05)
    assert (found.partition == found.key % PARTITIONS).all()


def test_arms_by_hand():
    def of(arm, until_done=True):
        return arrange(MeasuredCell("finish", "steady", arm, 0, 5.0), until_done)

    ours = of("ours")
    assert (ours.live, ours.agent, ours.admission, ours.apart) == ((4, 4), True, "ordered", None)
    assert ours.records == round(0.6 * (200 - 80) * 300) == 21_600 and (ours.most_s, ours.until_done) == (900.0, True)
    assert of("ours", until_done=False).records == 1.2 * 200 * 300
    assert (of("ours", until_done=False).most_s, of("ours", until_done=False).until_done) == (300.0, False)
    paper = of("paper")
    assert replace(paper, by_forecast=True) == ours != paper
    stated = [Contract.model_validate(how.contract("x", None)).backpressure.admit_by for how in (ours, paper)]
    assert stated == [None, "arrivals"]
    alone = of("alone")
    assert (alone.admission, alone.records, alone.most_s, alone.until_done) == ("none", 0, 300.0, False)
    assert (of("fixed:80").admission, of("fixed:80").offsets, of("fixed:80").agent) == ("fixed", 80, True)
    assert (of("split:3").live, of("split:3").apart, of("split:3").agent) == ((3, 3), (1, 1), False)
    assert of("split:3").offsets == 250 and (of("two").live, of("two").apart) == ((2, 4), (1, 4))
    assert {of(arm).seed for arm in ("ours", "alone", "two")} == {ours.seed}  # a turn's arms meet the same records
    with pytest.raises(ValueError, match=r"arm='thrice'.*alone, ours, paper, fixed, split, two"):
        of("thrice")


@pytest.mark.parametrize("name", rows.ROWS)
def test_every_planned_cell_has_a_name_a_contract_and_cores_of_the_cluster(name):
    row = rows.ROWS[name]
    planned = row.plan(row.minutes)
    assert len({cell.name for cell in planned}) == len(planned)
    for cell in planned:
        job_name(f"{cell.name}-range")
        how = row.arrange(cell)
        assert how.expected_s <= how.most_s
        if not isinstance(how, Arrangement):
            assert Contract.model_validate(how.contract(cell.name)).executors.max == EXECUTORS
            continue
        contract = Contract.model_validate(how.contract(cell.name, 4.6))
        assert contract.backpressure.paths[0].max_ms == pytest.approx(4600)
        assert contract.executors.max == how.live[1] <= EXECUTORS
        if how.apart is not None and cell.arm != "two":
            assert how.live[1] + how.apart[1] == EXECUTORS


def test_told_capacity_is_off_by_thirty_percent():
    def per_record_s(load):
        return arrange(MeasuredCell("limits", load, "ours", 0, 6.0), False).contract("x", None)["planning"][
            "per_record_s"
        ]

    assert per_record_s("told low") == pytest.approx(0.02 / 0.7)
    assert per_record_s("told high") == pytest.approx(0.02 / 1.3)
    assert per_record_s("step") == 0.02


def test_rows_are_chosen_by_name_or_by_its_beginning():
    assert rows.choose_rows([]) == list(rows.ROWS)
    assert rows.choose_rows(["limits-step", "latency"]) == ["latency-steady", "latency-taxi", "limits-step"]
    with pytest.raises(SettingsError, match="--rows 'latencies': there is no such row; there are latency-steady"):
        rows.choose_rows(["latencies"])
    assert {cell.minutes for cell in rows.plan_cells(["deadline"], 0.5)} == {0.5}
    everything = rows.plan_cells(rows.choose_rows([]), None)
    assert len({cell.name for cell in everything}) == len(everything)


def test_of_nothing_nothing_is_judged():
    figures = {**rows.summarise({}), "controller": {}}
    json.dumps(figures, allow_nan=False)
    assert [row.what for row in GOALS.fill_rows(figures) if row.holds is not None] == []
    assert format_figures(figures) == ""


def test_latency_by_hand():
    def showed(cell):
        rate = int(cell.arm.partition(":")[2] or 0)
        p99 = {"alone": 400, "ours": 440}.get(cell.arm, 480 if rate >= 64 else 400 + rate // 2)
        return session(p99, rps=90.0 if cell.arm == "ours" else rate)

    made = latency.summarise(kept_of(latency.plan_load("steady", latency.MINUTES), showed), "steady")
    assert (made["ratio"], made["low"], made["high"]) == (pytest.approx(1.1),) * 3 == (made["judged"],) * 3
    assert (made["ours_s"], made["alone_s"], made["n"]) == (4.4, 4.0, 4800)
    assert [one["ratio"] for one in made["sweep"]] == pytest.approx([1.02, 1.04, 1.2, 1.2, 1.2])
    assert made["best_rps"] == 32 and made["share"] == 90 / 32 and not made["none_keeps"] and not made["edge"]


def test_latency_of_too_few_seconds_or_without_a_whole_sweep_is_told_and_not_judged():
    planned = latency.plan_load("steady", latency.MINUTES)
    short = latency.summarise(kept_of(planned[:3], lambda cell: session(rps=50.0, seconds=240)), "steady")
    assert short["judged"] is None and short["share"] is None and short["ratio"] == 1.0
    unswept = latency.summarise(kept_of(planned[:-1], lambda cell: session(rps=50.0)), "steady")
    assert unswept["judged"] == 1.0 and unswept["best_rps"] is None and unswept["share"] is None


def test_the_highest_rate_is_asked_for_where_the_one_before_it_kept_the_limit_alone():
    planned = latency.plan_load("steady", latency.MINUTES)
    assert planned[-1].arm == "fixed:256"

    def showed(cell):
        return session(600 if cell.arm == "fixed:128" else 400, rps=float(cell.arm.partition(":")[2] or 20))

    broken = latency.summarise(kept_of(planned[:-1], showed), "steady")
    assert broken["best_rps"] == 64.0 and not broken["edge"] and broken["share"] == 20 / 64


def test_a_best_fixed_rate_that_is_the_highest_of_the_sweep_is_no_best_one():
    made = latency.summarise(kept_of(latency.plan_load("steady", latency.MINUTES), lambda cell: session(400)), "steady")
    assert made["edge"] and made["best_rps"] is not None and made["share"] is None


def test_where_no_fixed_rate_keeps_the_limit_the_lowest_is_more_than_the_highest_that_would():
    def showed(cell):
        rate = int(cell.arm.partition(":")[2] or 0)
        return session(900 if rate else 400, rps=float(rate or 10))

    made = latency.summarise(kept_of(latency.plan_load("steady", latency.MINUTES), showed), "steady")
    assert (made["best_rps"], made["none_keeps"], made["share"]) == (None, True, 10 / 16)


def finished(done_s, p99=400):
    return session(p99, rps=80.0, done_s=done_s, exact=True)


def test_finishing_by_hand():
    times = {
        "ours": 200,
        "paper": 210,
        "split:2": 280,
        "split:3": 260,
        "two": 320,
        "fixed:32": 360,
        "fixed:64": 190,
        "fixed:128": 150,
        "fixed:256": 140,
    }
    p99 = {"fixed:64": 461, "fixed:128": 500, "fixed:256": 500, "paper": 500}  # over 1.15 x 4 s

    def showed(cell):
        if cell.arm == "alone":
            return session(400)
        return finished(times[cell.arm], p99.get(cell.arm, 460))

    planned = finish.plan_load("taxi", finish.MINUTES)
    made = finish.summarise(kept_of(planned, showed), "taxi")
    assert made["limit_s"] == pytest.approx(4.6)
    assert (made["split"]["ratio"], made["split"]["arm"]) == (1.3, "split:3")
    assert (made["two"]["ratio"], made["fixed"]["ratio"], made["fixed"]["any"]) == (1.6, 1.8, 0.7)
    assert made["fixed"]["arm"] == "fixed:32" and made["edge"] is False
    kept = {one["arm"]: one["kept"] for one in made["arms"]}
    assert [kept.pop(arm) for arm in p99] == [False] * 4 and all(kept.values())
    assert made["paper"] == pytest.approx({"ratio": 1.05, "p99_ratio": 1.25, "ours": 1.15})

    part = finish.summarise(kept_of(planned[:-1], showed), "taxi")  # the last one is an arm of `fixed`
    assert part["fixed"]["ratio"] is None and part["fixed"]["why"] == "not measured to its end"
    assert part["split"]["ratio"] == 1.3
    over = finish.over_loads({"steady": made, "taxi": made, "bursts": made})
    each = dict.fromkeys(("steady", "taxi", "bursts"), 1.3)
    assert over["split"] == {"ratio": 1.3, "any": 1.3, "least": 1.3, "loads": each, "keeping": 3}
    assert over["p99_ratio"] == pytest.approx(1.15) and over["ours"] == {"keeping": 3}
    fixed = finish.over_loads({"steady": made, "taxi": part})["fixed"]
    assert fixed["ratio"] is None and fixed["loads"]["taxi"] is None and fixed["keeping"] == 2


def test_the_best_fixed_limit_is_not_judged_at_the_edge_of_those_that_were_tried():
    def showed(cell):
        return session(400) if cell.arm == "alone" else finished(100 if cell.arm == "fixed:256" else 200)

    made = finish.summarise(kept_of(finish.plan_load("taxi", finish.MINUTES), showed), "taxi")
    assert made["edge"] is True and made["fixed"]["arm"] == "fixed:256" and made["fixed"]["any"] == 0.5
    assert made["fixed"]["ratio"] is None and made["fixed"]["why"] == finish.AT_EDGE
    over = finish.over_loads({"taxi": made})
    assert over["fixed"]["loads"] == {"taxi": None} and over["two"]["loads"] == {"taxi": 1.0}


def test_an_earlier_judgement_is_made_anew_where_arms_have_been_added_since():
    def showed(cell):
        return session(400) if cell.arm == "alone" else finished(200, 460 if cell.arm == "ours" else 900)

    planned = finish.plan_load("taxi", finish.MINUTES)
    fewer = [cell for cell in planned if cell.arm not in ("fixed:128", "fixed:256")]
    before = rows.summarise(kept_of(fewer, showed))
    before["finish"]["taxi"]["fixed"] = {"ratio": 1.2, "any": 1.2, "arm": "fixed:64", "why": ""}
    made = rows.summarise({}, before)["finish"]
    assert made["taxi"]["fixed"]["ratio"] is None and made["all"]["fixed"]["loads"]["taxi"] is None
    assert made["all"]["fixed"]["keeping"] is None  # an arm that was not tried may keep it
    assert made["taxi"]["split"] == before["finish"]["taxi"]["split"]


def test_who_does_not_keep_the_limit_has_no_ratio_and_who_does_not_finish_counts_with_all_its_time():
    def showed(cell):
        arms = {"alone": session(400), "ours": finished(200), "two": session(390, seconds=900, rps=1.0)}
        return arms.get(cell.arm, finished(100, 900))

    made = finish.summarise(kept_of(finish.plan_load("steady", finish.MINUTES), showed), "steady")
    assert made["two"]["ratio"] == 4.5 and next(a for a in made["arms"] if a["arm"] == "two")["finished"] == 0
    assert made["split"] == {"ratio": None, "any": 0.5, "arm": None, "why": "none of its arms keeps the limit"}
    over = finish.over_loads({"steady": made})
    split = {"ratio": None, "any": 0.5, "least": 0.5, "loads": {"steady": 0.5}, "keeping": 0}
    assert over["split"] == split
    assert over["two"]["keeping"] == 1 and over["two"]["least"] == 4.5
    loud = kept_of(
        finish.plan_load("steady", finish.MINUTES), lambda c: session(400) if c.arm == "alone" else finished(9, 900)
    )
    none = finish.summarise(loud, "steady")
    assert none["two"]["why"] == "none of its arms keeps the limit"
    assert finish.over_loads({"steady": none})["two"]["least"] is None  # ours does not keep it either
    assert set(made["paper"].values()) == {None}  # its rule is measured on the taxi day alone
    short = kept_of(finish.plan_load("steady", 1.0), showed)
    assert finish.summarise(short, "steady")["arms"] == []


def test_deadlines_are_drawn_once_and_judged_by_hand():
    planned = deadlines.plan_cells(deadlines.MINUTES)
    hows = [deadlines.arrange_deadline(cell) for cell in planned]
    assert len(planned) == 20 and [cell.load for cell in planned[:3]] == ["steady", "taxi", "steady"]
    assert hows == [deadlines.arrange_deadline(cell) for cell in planned]
    for cell, how in zip(planned, hows, strict=True):
        work_s = how.records / (0.85 * CAPACITY_RPS - mean_rps(cell.load, 720.0))
        shortest_s = 10 + deadlines.shortest_s(work_s)
        assert 17 < work_s < 61 and 1.19 < how.by_s / shortest_s < 4.01 and how.most_s == 1.5 * how.by_s
    # 30 s of next to nothing, then a half, 0.65 and 0.8 of what is left for ten seconds each, and 0.95.
    assert [deadlines.shortest_s(work_s) for work_s in (5, 11.5, 19.5, 29)] == pytest.approx([40, 50, 60, 70])

    def showed(cell):
        by_s = hows[cell.turn].by_s
        if cell.turn == 0:
            return session(refused="not even all executors")
        return session(
            done_s=by_s + (1 if cell.turn < 2 else -1), planned=[by_s - 9, by_s - 2, by_s, by_s + 2], futures=4
        )

    made = deadlines.summarise(kept_of(planned, showed))
    assert (made["n"], made["kept"], made["judged"], made["refused"]) == (20, 18, 18, 1)
    assert made["places"] == [0.5] * 18 + [0.75] and made["distance"] == pytest.approx(0.5)
    part = deadlines.summarise(kept_of(planned[:5], showed))
    assert (part["n"], part["kept"], part["judged"], part["distance"]) == (5, 3, None, None)
    endless = deadlines.summarise({planned[1]: session(planned=[1.0, 2.0], futures=4)})
    assert endless["each"][0]["place"] == 1.0 and not endless["each"][0]["kept"]


def test_seconds_over_a_limit_and_ripple_by_hand():
    assert limits.seconds_over([[100, 601], [], [600], [700, 800]], 6.0) == 2
    rates = [(0, 10.0), (170, 60.0), (210, 80.0), (230, 74.0), (300, 100.0), (330, 110.0), (350, 108.0)]
    # settled from 200 and from 320 s on: 60 to 80, and 100 to 110 of 200 records/s
    assert limits.ripple_of(rates, 360.0) == pytest.approx(0.1)
    assert limits.ripple_of([(350, 1.0)], 360.0) is None and limits.ripple_of([], 360.0) is None


def test_limits_by_hand():
    def showed(cell):
        over = {"alone": 3, "ours": 12}[cell.arm]
        return session(latency=[[700]] * over + [[100]] * 300, rates=[(0, 50.0), (114, 56.0)])

    planned = limits.plan_load(STEP, limits.MINUTES)
    made = limits.summarise(kept_of(planned, showed), STEP)
    assert made["over_s"] == {"alone": 3.0, "ours": 12.0} and made["more_s"] == 9.0
    assert made["ripple"] == pytest.approx(0.03) and made["n"] == 1
    half = limits.summarise(kept_of(planned[:1], showed), STEP)
    assert half["more_s"] is None and half["ripple"] is None and half["n"] == 0
    parts = {load: {"more_s": 1.0, "ripple": None, "n": 2} for load in limits.LOADS} | {STEP: made}
    assert limits.over_loads(parts)["more_s"] == 9.0
    assert limits.over_loads(parts | {HOT: half})["more_s"] is None


def test_back_is_the_first_second_from_which_no_record_is_late_for_twenty():
    produced = np.arange(1_000.0, 1_100.0, 0.5)
    latency = np.full(200, 4.0)
    latency[:60] = outages.TARGET_S + 2  # the first thirty seconds
    assert outages.back_after(produced, latency, 1_000.0) == (30.0, 0.0)
    latency[90] = np.inf  # in the 46th
    assert outages.back_after(produced, latency, 1_000.0) == (46.0, 0.0)
    latency[160] = outages.TARGET_S + 0.1  # in the 81st: only nineteen follow it
    assert outages.back_after(produced, latency, 1_000.0) == (46.0, 1.0)
    latency[120] = outages.TARGET_S + 0.1
    assert outages.back_after(produced, latency, 1_000.0) == (None, None)
    assert outages.back_after(np.array([]), np.array([]), 1_000.0) == (None, None)


def test_outages_by_hand():
    planned = outages.plan_load("steady", outages.MINUTES)
    assert [cell.arm for cell in planned] == ["in order", "live first", "in order at once"]
    hows = [outages.arrange_outage(cell) for cell in planned]
    assert [(how.order, how.down_s, how.offsets) for how in hows] == [
        ("in_order", 120.0, 2000), ("live_first", 120.0, 2000), ("in_order", 120.0, None)
    ]  # fmt: skip
    assert len({how.seed for how in hows}) == 1
    contract = Contract.model_validate(hows[1].contract(planned[1].name))
    assert contract.backpressure.recovery.order == "live_first" and contract.latency_target_s == outages.TARGET_S

    def of(*sessions):
        return outages.summarise(dict(zip(planned, sessions, strict=False)), "steady")

    made = of(away(200.0, wrong=1), away(30.0, 150.0), away(90.0))
    assert made["ratio"] == 0.15 and made["filled_s"]["live first"] == 150.0
    assert made["back_s"]["in order at once"] == 90.0
    assert (made["wrong"], made["windows"], made["n"]) == (1, 144, 1)
    never = of(away(None), away(30.0, 150.0), away(90.0))
    assert never["ratio"] is None and never["back_s"]["in order"] is None
    part = of(away(200.0), away(30.0, 150.0))
    assert part["ratio"] is None and part["wrong"] is None and part["n"] == 0


def broken(wrong=0):
    """What a session with all faults showed."""
    return session(p99_s=None, wrong=wrong, windows=48, unlike=0, faults=("a kill",))


def test_faults_by_hand():
    cell, sampled = faults.plan_load("corrected", faults.MINUTES)
    how = faults.arrange_faults(cell)
    assert faults.arrange_faults(sampled).sampled and not how.sampled
    contract = Contract.model_validate(how.contract(cell.name))
    assert contract.backpressure.recovery.order == "live_first" and how.range_s == 60.0
    assert faults.summarise({cell: broken(2)}, "corrected") == {
        "wrong": 2, "windows": 48, "faults": [("a kill",)], "n": 1, 
        "sampled": {"within": None, "windows": 0, "unlike": None, "n": 0},
    }  # fmt: skip
    assert faults.summarise({sampled: broken(2)}, "corrected")["sampled"] == {
        "within": pytest.approx(46 / 48), "windows": 48, "unlike": 0, "n": 1
    }  # fmt: skip
    assert faults.summarise({}, "corrected")["wrong"] is None
    assert describe_cell(cell, broken(2)) == "faults corrected all turn 1: 2 of 48 windows wrong"


def carried(wrong=0):
    """What a session of a workload under its faults showed."""
    report = {
        "latency_s": {"p50": 3.0, "p95": 6.0, "p99": 7.5}, "watermark_lag_s": {"p50": 24.0, "most": 31.0},
        "memory_mb": 3000, "recovery_s": 0.0, "live_recovery_s": None, "throughput_rps": {"mean": 30.1, "most": 60.0},
        "busy_core_s": 90.0, "moves_per_h": 30.0, "error_of_bound": {"p50": 0.2, "most": 0.9}, "executor_h": 0.1,
    }  # fmt: skip
    fault = [1.3, "worker kill", "worker-1", 0.0, 4711]
    return session(
        p99_s=None, wrong=wrong, windows=48, unlike=0, carried=[fault] * 12, missed=[fault[:4]], operation=report
    )


def test_a_workload_under_its_faults_by_hand():
    cell, sampled = workloads.plan_load("generated", workloads.MINUTES)
    how, other = workloads.arrange_workload(cell), workloads.arrange_workload(sampled)
    assert (how.seed, how.seconds, how.sampled) == (other.seed, 120.0, False) and other.sampled
    assert Contract(**how.contract(job_name(cell.name))).executors.min == workloads.LEAST
    found = workloads.summarise({cell: carried(2), sampled: carried(3)}, "generated")
    assert (found["wrong"], found["windows"], found["faults"], found["missed"], found["n"]) == (2, 48, 12, 1, 1)
    assert found["sampled"]["within"] == pytest.approx(45 / 48) and "wrong" not in found["sampled"]
    assert found["operation"]["latency_s"]["p99"] == 7.5
    assert workloads.summarise({}, "generated")["wrong"] is None
    line = describe_cell(cell, carried(2))
    assert "2 of 48 windows wrong, 12 faults carried out, 1 met nobody, latency p50 3 p95 6 p99 7.5 s" in line
    assert "live latency after" not in line and line.endswith("error ÷ bound p50 0.2 most 0.9; 0.1 executor-hours")


def test_figures_of_all_cells_fill_the_rows_of_the_table():
    def showed(cell):
        more = {"planned": [100.0, 1e4], "futures": 2} if cell.row == "deadline" else {}
        rates = [(0, 50.0)] if cell.arm == "ours" else []
        if cell.row == outages.ROW:
            return {**away(30.0, 90.0), "decisions": 3}
        if cell.row == faults.ROW:
            return {**broken(), "decisions": 3}
        if cell.row == workloads.ROW:
            return {**carried(), "decisions": 3}
        return session(
            900 if cell.arm in ("fixed:128", "fixed:256") else 400,
            rps=70.0,
            done_s=50.0,
            exact=True,
            rates=rates,
            decisions=3,
            **more,
        )

    kept = {cell: showed(cell) for name in rows.ROWS for cell in rows.ROWS[name].plan(rows.ROWS[name].minutes)}
    timed = {"p50_ms": 0.7, "decisions": 9}
    controller = {"largest": timed, "core": 1e-5, "evaluation": {**timed, "core": 1e-3}}
    figures = {**rows.summarise(kept), "controller": controller}
    found = {row.what: row for row in GOALS.fill_rows(json.loads(json.dumps(figures)))}
    assert [row.what for row in found.values() if row.measured is None] == []
    assert found["deadlines kept, of 20 drawn"].measured == 20
    assert found["decisions of all sessions that do not follow from their trace to the bit"].n == 3 * len(kept)
    assert "steady: live p99 1.000 x live alone (1.000 to 1.000)" in format_figures(figures)


def test_rows_that_were_measured_elsewhere_stay_as_they_are_until_they_are_measured_again():
    def kept(name, p99, commit):
        planned = rows.ROWS[name].plan(rows.ROWS[name].minutes)
        more = {"planned": [100.0, 1e4], "futures": 2} if name == "deadline" else {}
        found = {**session(p99, rps=70.0, done_s=50.0, exact=True, decisions=3, **more), "commit": commit}
        return dict.fromkeys(planned, found)

    first = json.loads(json.dumps(rows.summarise(kept("finish-steady", 400, "a") | kept("deadline", 400, "a"))))
    rest = kept("finish-taxi", 400, "b") | kept("finish-bursts", 400, "b")
    both = rows.summarise(rest, first)
    assert both == rows.summarise(rest | kept("finish-steady", 400, "a") | kept("deadline", 400, "a"))
    assert both["finish"]["all"]["split"]["ratio"] is not None and both["commits"] == ["a", "b"]
    assert both["trace"]["decisions"] == 3 * len(both["cells"])
    again = rows.summarise(kept("deadline", 500, "c") | kept("finish-steady", 500, "c"), both)
    assert again["commits"] == ["b", "c"] and len(again["cells"]) == len(both["cells"])


def test_a_cell_is_told_in_a_line():
    cell = MeasuredCell("finish", "taxi", "split:2", 1, 5.0)
    found = session(432, rps=81.6, done_s=203.4, exact=False, differing=1, decisions=8)
    assert describe_cell(cell, found) == (
        "finish taxi split:2 turn 2: live p99 4.32 s, replay 82 records/s, done after 203 s, "
        "NOT JUST THE RANGE WAS READ, 1 of 8 decisions do not replay"
    )


def test_a_cell_with_an_outage_is_told_in_a_line():
    cell = MeasuredCell("outage", "steady", "live first", 0, 2.0)
    assert describe_cell(cell, away(31.0, 140.0)) == (
        "outage steady live first turn 1: live back after 31 s, first batch after 20 s, "
        "late for 0 s after that, 0 of 48 windows wrong, all from before in the table after 140 s"
    )


def test_nothing_of_a_users_is_touched(tmp_path):
    own = measure.own_settings(load(var=tmp_path))
    assert own.var_dir == tmp_path / "bench" / "backfill" and own.contracts_dir == own.var_dir / "contracts"
    assert (own.kafka.event_partitions, own.spark.worker_cores, own.kafka.prefix) == (PARTITIONS, EXECUTORS, "")
    with pytest.raises(SettingsError, match="TIDECAST_SPARK__MASTER=spark://mine:7077"):
        measure.own_settings(load(var=tmp_path, spark={"master": "spark://mine:7077"}))
    with pytest.raises(SettingsError, match=r"KAFKA__BOOTSTRAP=mine:9092.*bench"):
        measure.own_settings(load(var=tmp_path, kafka={"bootstrap": "mine:9092"}))
    assert not list(Path(tmp_path).iterdir())
