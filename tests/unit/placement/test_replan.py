"""A running job planned anew: what would change, by hand; and what is wanted then."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from configs.settings import ROOT
from configs.settings import load as load_settings
from configs.topology import load_topology
from models.placement.known_work import KnownWork
from models.placement.plan.applications import applications_of, batch_limits
from models.placement.plan.as_measured import measured_factor
from models.placement.plan.measured import Block, Placement
from models.placement.plan.observed import ObservedBlock
from pipelines.placement import observed, replan
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.observed import PlannedLoad
from pipelines.placement.page.plan_page import compare, plan_pages
from pipelines.stack import state
from tests.fakes.clock import clock_with

FILE = ROOT / "configs" / "topologies" / "adverts.yaml"
ADVERTS = load_topology("adverts", FILE.parent)
ALL = tuple(ADVERTS.operators)
ONE = Placement((Block(ALL, "west", 3, 1.57, 1.8),), 1.8, 1.8, True)


def test_what_a_plan_would_change_of_a_running_job():
    said, ask = compare(ADVERTS, None, ONE, 1.0)
    assert said.endswith("1 query, 1.80 an hour, 1.8 s; it does not run") and not ask
    assert compare(ADVERTS, ONE, ONE, 1.5) == ("adverts at 1.5 times the stated rates: it stays as it is", False)
    for factor, times in ((98.7, "99"), (120.0, "120"), (1_234.0, "1,234")):
        assert compare(ADVERTS, ONE, ONE, factor)[0] == f"adverts at {times} times the stated rates: it stays as it is"
    (block,) = ONE.blocks
    moved = replace(ONE, blocks=(replace(block, cluster="east", executors=4),), price=4.0)
    said, ask = compare(ADVERTS, ONE, moved, 2.3)
    assert "from 3 executors on west to 4 executors on east (4.00 an hour after 1.80, 1.8 s)" in said and ask


def test_the_load_is_what_comes_to_the_queries_that_read_sources_or_else_what_they_read():
    (block,) = ONE.blocks
    first, second = ObservedBlock(block, 600, 900.0, 1, 1, 9), ObservedBlock(block, 198, 10.0, 1, 1, 9)
    assert measured_factor([first, second], ["events"], [["events"], ["project"]]) == 1.5
    unread = ObservedBlock(block, 600, None, None, None, 0)
    assert measured_factor([unread, second], ["events"], [["events"], ["project"]]) == 1.0
    full = first._replace(come_rps=1_200.0)
    assert measured_factor([full, second], ["events"], [["events"], ["project"]]) == 2.0
    hangs = unread._replace(come_rps=1_800.0)
    assert measured_factor([hangs, second], ["events"], [["events"], ["project"]]) == 3.0


@pytest.fixture
def running(tmp_path, monkeypatch):
    """The adverts job, begun on the dearer cluster, with a load that was measured."""
    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
    folder, load = JobFolder(tmp_path / "jobs" / "adverts"), {"rps": 600.0}
    folder.begin(FILE, Placement((Block(ALL, "east", 3, 1.57, 1.8),), 3.0, 1.8, True))

    def observed_now(settings, folder, last_s):
        first, *others = folder.wanted().blocks
        unmeasured = [ObservedBlock(one, 198.0, None, None, None, 0) for one in others]
        return [ObservedBlock(first, 600.0, load["rps"], 1.0, 1.0, 9), *unmeasured], 1.0

    monkeypatch.setattr(replan, "observe_job", observed_now)
    monkeypatch.setattr(replan, "observe_record_bytes", lambda settings, folder: {})
    return folder, load


def test_a_job_on_the_dearer_cluster_is_moved_to_the_cheaper_one(running):
    folder, _ = running
    planned = replan.plan({"topology": "adverts", "load": None})
    assert planned["ask"] and planned["load"] == 1.0 and "on west" in planned["sentence"]
    (page,) = plan_pages(load_settings())
    assert str(page) == planned["page"] and "what runs together" in page.read_text()
    assert folder.wanted().blocks[0].cluster == "east"  # a plan changes nothing
    replan.apply({"topology": "adverts"}, json.loads(json.dumps(planned)))  # as Airflow hands it on
    assert folder.wanted().blocks[0].cluster == "west" and not replan.plan({"topology": "adverts"})["ask"]
    wanted = folder.wanted()  # the task's worker may die before it is known to have ended
    assert replan.apply({"topology": "adverts"}, planned) == planned["sentence"] and folder.wanted() == wanted


def test_a_job_none_of_whose_rates_is_stated_is_planned_at_the_measured_ones(running):
    folder, _ = running
    (folder.path / FILE.name).write_text(FILE.read_text().replace("rps: 600", "rps: 0"))
    planned = replan.plan({"topology": "adverts"})
    assert planned["sentence"].startswith("adverts at the measured rates, as none is stated: ")
    assert planned["load"] is None and planned["known"] and planned["placement"]["blocks"][0]["executors"] > 0


def test_a_plan_that_is_applied_leaves_the_work_by_which_batches_are_limited(running, monkeypatch, capsys):
    folder, _ = running
    told = ObservedBlock(folder.wanted().blocks[0], 600.0, 600.0, 0.6, 1.0, 9, 0.001)
    monkeypatch.setattr(replan, "observe_job", lambda *_: ([told], 1.0))
    planned = replan.plan({"topology": "adverts"})
    assert "from 3 executors on east to 1 executor on west" in planned["sentence"]
    older = {name: value for name, value in planned.items() if name != "work"}  # as an older release has asked
    replan.apply({"topology": "adverts"}, older)
    assert folder.work() == {}
    replan.apply({"topology": "adverts"}, json.loads(json.dumps(planned)))
    (block,) = applications_of(ADVERTS, folder.wanted())
    limits = batch_limits(ADVERTS, folder.wanted(), block, 1, folder.work())
    assert limits == pytest.approx({"events": 5 * (1_000 + 12)}, abs=1)  # by the stated work 1,983
    planned = replan.plan({"topology": "adverts", "load": 1.5})  # for stated work: what was found is known further
    replan.apply({"topology": "adverts", "load": 1.5}, json.loads(json.dumps(planned)))
    assert folder.wanted().blocks[0].executors == 4
    kept = pytest.approx((0.001, (1 - 0.0130725) / 2.588))  # beside what it reads and writes, of 2.588 ms
    assert folder.work()["parse"] == kept
    assert "work.json" not in capsys.readouterr().err
    (folder.path / "work.json").write_text("{")
    assert folder.work() == {} and "work.json cannot be read (JSONDecodeError(" in capsys.readouterr().err


def test_stated_work_counts_as_stated_on_a_later_day_when_more_records_pass_a_filter(running, monkeypatch):
    folder, _ = running
    for passed, bound_s, change, work_s in (
        (198.0, 0.0029, "from 3 executors on east to 3 executors on west", 0.0026010725),
        (540.0, 0.0051, "from 3 executors on west to 4 executors on west", 0.004654925),  # 3 would be 93 % busy
    ):
        sent = {"events": 600.0, "parse": 600.0, **dict.fromkeys(("views", "project", "join"), passed)}
        counted = {**sent, "count": passed / 20}
        alike = ObservedBlock(folder.wanted().blocks[0], 600.0, 600.0, 1.7, 1.0, 60, None, counted, whole_s=bound_s)
        monkeypatch.setattr(replan, "observe_job", lambda *_, alike=alike: ([alike], 1.0))
        planned = replan.plan({"topology": "adverts"})
        assert change in planned["sentence"] and "its work is as in the plan before" in planned["sentence"]
        replan.apply({"topology": "adverts"}, json.loads(json.dumps(planned)))
        assert folder.work()["parse"] == pytest.approx((work_s, 1.0))
        (block,) = applications_of(ADVERTS, folder.wanted())
        limits = batch_limits(ADVERTS, folder.wanted(), block, 1, folder.work())
        assert limits == pytest.approx({"events": 5 * (1 / work_s + 12)}, abs=1)


def test_work_that_an_older_release_has_kept_is_read_and_kept_beside_what_is_planned(running):
    folder, _ = running
    (folder.path / "work.json").write_text('{"parse": 0.0026, "join": 0.001}')
    assert folder.work() == {"parse": KnownWork(0.0026), "join": KnownWork(0.001)}
    folder.change(lambda wanted: wanted, {"join": KnownWork(0.003, 1.5)})
    assert folder.work() == {"parse": KnownWork(0.0026), "join": KnownWork(0.003, 1.5)}


def test_a_job_is_planned_with_the_queries_that_run_and_that_others_would_be_better_is_told_beside(running):
    folder, load = running
    cut = (Block(ALL[:3], "east", 2, 0.87, 1.8), Block(ALL[3:], "east", 1, 0.7, 1.9))
    folder.want(Placement(cut, 3.0, 3.7, True))
    planned = replan.plan({"topology": "adverts"})
    moves = "project from 2 executors on east to 2 executors on west; join+count from 1 executor on east to 1 executor"
    assert planned["ask"] and f"{moves} on west (1.80 an hour after 3.00, " in planned["sentence"]
    better = "Other queries would be better (1 query on west, 1.80 an hour, 1.8 s), but which operators are one query"
    page = Path(planned["page"]).read_text()
    assert better in planned["sentence"] and better in page and "better, but which operators are one query" in page
    replan.apply({"topology": "adverts"}, json.loads(json.dumps(planned)))
    assert [(one.operators, one.cluster, one.executors) for one in folder.wanted().blocks] == [
        (ALL[:3], "west", 2), (ALL[3:], "west", 1),
    ]  # fmt: skip
    assert not replan.plan({"topology": "adverts"})["ask"]
    load["rps"] = 1_200.0  # twice as much: one executor more for each, which only both clusters have room for
    more = replan.plan({"topology": "adverts"})
    assert more["ask"] and sum(one["executors"] for one in more["placement"]["blocks"]) == 5


def test_a_job_whose_queries_have_no_room_is_told_that_others_would_have(running):
    _, load = running
    load["rps"] = 1_200.0
    none = r"its queries, which are fixed while it runs, have no room.*Begun anew.* with other queries \(2 queries on "
    with pytest.raises(replan.ReplanError, match=none):
        replan.plan({"topology": "adverts"})


def test_who_approves_sees_the_job_as_it_runs_beside_the_plan_and_what_was_measured(running):
    _, load = running
    load["rps"] = 587.3
    page = Path(replan.plan({"topology": "adverts"})["page"]).read_text()
    now, planned = page.index("As it runs now"), page.index("As it is planned")
    assert now < page.index("587.3") < planned  # beside 600, which is planned
    assert "3.00 an hour. Latency along the slowest path was measured as 1.0 s; 1.8 s was predicted" in page
    given = Path(replan.plan({"topology": "adverts", "load": 1.5})["page"]).read_text()
    assert "As it runs now" in given and "slowest path was not measured" in given


def test_page_and_question_say_when_and_for_which_load_a_plan_was_made(running, monkeypatch):
    _, load = running
    monkeypatch.setattr(observed, "time", clock_with(time=lambda: 1_796_018_412.0))
    for given, rps, when in (
        (None, 600.0, "Planned on 30 November 2026 at 06:00:12 UTC, for the load of the 10 minutes before."),
        (1.5, 600.0, "Planned on 30 November 2026 at 06:00:12 UTC."),
        (None, None, "Planned on 30 November 2026 at 06:00:12 UTC. Nothing was measured"),
    ):
        load["rps"] = rps
        planned = replan.plan({"topology": "adverts", "load": given})
        assert when in f"{planned['sentence']}."
        assert when.split(". Nothing")[0] in Path(planned["page"]).read_text()


def test_a_plan_that_others_have_overtaken_is_not_applied(running):
    folder, _ = running
    planned = replan.plan({"topology": "adverts"})
    (block,) = folder.wanted().blocks
    folder.want(replace(folder.wanted(), blocks=(replace(block, executors=2),)))
    with pytest.raises(replan.ReplanError, match="wanted elsewhere since"):
        replan.apply({"topology": "adverts"}, planned)


@pytest.mark.usefixtures("running")
def test_a_plan_says_that_the_topology_has_changed_since_the_job_was_begun(tmp_path, monkeypatch):
    planned = replan.plan({"topology": "adverts"})
    assert "changed" not in planned["sentence"] and "has changed" not in Path(planned["page"]).read_text()
    monkeypatch.setenv("TIDECAST_TOPOLOGIES", str(tmp_path))
    for text in (FILE.read_text().replace("rps: 600", "rps: 700"), None):
        if text is not None:
            (tmp_path / "adverts.yaml").write_text(text)
        else:
            (tmp_path / "adverts.yaml").unlink()
        planned = replan.plan({"topology": "adverts"})
        assert ". adverts.yaml has changed since this job was begun" in planned["sentence"] and planned["ask"]
        assert "adverts.yaml has changed since this job was begun" in Path(planned["page"]).read_text()
    assert replan.plan({"topology": "adverts", "load": 1.0})["sentence"].count("has changed") == 1


def test_nobody_is_asked_for_other_executors_of_a_query_that_the_autoscaler_scales(running):
    folder, load = running
    folder.want(Placement((Block(ALL, "west", 3, 1.57, 1.8),), 1.8, 1.8, True))
    load["rps"] = 900.0
    planned = replan.plan({"topology": "adverts"})
    assert planned["ask"] and "from 3 executors on west to 4 executors on " in planned["sentence"]
    folder.begin_epoch(applications_of(ADVERTS, folder.wanted())[0]).note_scaled(True)
    planned = replan.plan({"topology": "adverts"})
    assert not planned["ask"] and ". Scaled queries keep" in planned["sentence"]
    page = Path(planned["page"]).read_text()
    assert replan.SCALED in page and "4 cores of executors" not in page and "3 cores of executors" in page
    assert planned["placement"]["price"] == 1.8 and planned["placement"]["blocks"][0]["executors"] == 3
    (block,) = folder.wanted().blocks
    four = replace(folder.wanted(), blocks=(replace(block, executors=4),), price=2.4)
    before = folder.wanted()
    said = replan.want_plan(load_settings(), folder, PlannedLoad(ADVERTS, 1.0, 1.0), four)
    assert "it stays as it is. Scaled" in said and folder.wanted() == before


def test_a_query_that_is_moved_while_a_plan_is_applied_stays_where_it_is_wanted_then(running, monkeypatch):
    folder, _ = running
    was = folder.wanted()
    two, west = (replace(was, blocks=(replace(was.blocks[0], **to),)) for to in ({"executors": 2}, {"cluster": "west"}))
    monkeypatch.setattr(replan, "refuse_away", lambda *of: folder.want(two))  # by whoever moves it meanwhile
    with pytest.raises(replan.ReplanError, match=r"adverts: its queries are wanted elsewhere since.*Plan it again"):
        replan.want_plan(load_settings(), folder, PlannedLoad(ADVERTS, 1.0, 1.0), west)
    assert folder.wanted() == two


def test_one_that_is_scaled_and_moves_has_the_executors_of_the_plan(running):
    folder, _ = running
    folder.want(Placement((Block(ALL, "east", 2, 1.57, 1.8),), 2.0, 1.8, True))
    folder.begin_epoch(applications_of(ADVERTS, folder.wanted())[0]).note_scaled(True)
    planned = replan.plan({"topology": "adverts"})
    assert planned["ask"] and "from 2 executors on east to 3 executors on west" in planned["sentence"]
    assert replan.SCALED not in planned["sentence"]


def test_where_nothing_was_measured_a_plan_says_so_and_nobody_is_asked(running):
    folder, load = running
    said = "Nothing was measured in the last 10 minutes: planned for the stated rates"
    assert said not in replan.plan({"topology": "adverts"})["sentence"]
    load["rps"] = None
    planned = replan.plan({"topology": "adverts"})
    assert not planned["ask"] and not planned["known"] and "on west" in planned["sentence"]
    for where in (planned["sentence"], page := Path(planned["page"]).read_text()):
        assert said in where and "No `tidecast job up adverts` runs on this computer" in where
    assert "nothing of it is measured" in page and "was measured to have" not in page
    with closing(state.lock(folder.path / "stack")):  # held by who runs it, also while none of its drivers lives
        assert replan.plan({"topology": "adverts"})["sentence"].endswith(said)
    assert replan.plan({"topology": "adverts", "load": 1.0})["ask"]  # a person has stated the load


def test_a_job_whose_query_hangs_is_planned_for_what_comes_and_somebody_is_asked(running, monkeypatch):
    folder, _ = running
    hangs = ObservedBlock(folder.wanted().blocks[0], 600.0, None, None, None, 1, come_rps=900.0)
    monkeypatch.setattr(replan, "observe_job", lambda *_: ([hangs], None))
    planned = replan.plan({"topology": "adverts"})
    assert planned["ask"] and planned["known"] and planned["load"] == 1.5
    assert "from 3 executors on east to 4 executors on west" in planned["sentence"]
    page = Path(planned["page"]).read_text()
    assert "Nothing was measured" not in planned["sentence"] and "900.0" in page and "path was not measured" in page
    said = f"{'+'.join(ALL)} did no two batches though records came: planned for what comes; its work is as in"
    assert said in planned["sentence"] and said in page
    rests = hangs._replace(come_rps=None)
    for seen in (rests, rests._replace(rps=600.0, cores=1.0, latency_s=1.0, batches=9)):
        monkeypatch.setattr(replan, "observe_job", lambda *_, seen=seen: ([seen], None))
        assert "no two batches" not in replan.plan({"topology": "adverts"})["sentence"]


def test_where_batches_do_not_tell_what_a_record_takes_a_plan_says_that_it_has_the_stated_work(running, monkeypatch):
    folder, _ = running
    said = "had batches too few, or too alike, to tell what a record takes: its work is as in the plan before, or as"
    planned = replan.plan({"topology": "adverts"})
    assert f"{'+'.join(ALL)} {said}" in planned["sentence"] and said in Path(planned["page"]).read_text()
    assert said not in replan.plan({"topology": "adverts", "load": 1.5})["sentence"]
    told = ObservedBlock(folder.wanted().blocks[0], 600.0, 600.0, 1.6, 1.0, 9, 0.0026)
    monkeypatch.setattr(replan, "observe_job", lambda *_: ([told], 1.0))
    assert said not in replan.plan({"topology": "adverts"})["sentence"]
    for full, what in (
        (False, f"{said} stated; at most 3.00 ms of a core, its share of what every batch takes included"),
        (True, "too alike, to tell what a record takes, and full: planned with 3.00 ms of a core, its share"),
    ):
        alike = told._replace(record_s=None, whole_s=0.003, full=full)
        monkeypatch.setattr(replan, "observe_job", lambda *_, alike=alike: ([alike], 1.0))
        assert what in replan.plan({"topology": "adverts"})["sentence"]


def test_where_there_is_no_room_for_what_waits_too_it_is_planned_for_what_comes(running, monkeypatch):
    (folder, _), looks = running, []
    waits = {"come_rps": 1_200.0, "arrival_rps": 900.0, "whole_s": 0.003, "full": True}  # worked off at 1,000/s
    behind = ObservedBlock(folder.wanted().blocks[0], 600.0, 1_000.0, 3.0, 9.0, 9, **waits)
    monkeypatch.setattr(replan, "observe_job", lambda *_: looks.append("once") or ([behind], 9.0))
    planned = replan.plan({"topology": "adverts"})
    said = "There is no room to work off what waits, too: planned for what comes alone"
    assert said in planned["sentence"] and said in Path(planned["page"]).read_text()
    assert planned["ask"] and planned["load"] == 1.5 and not planned["backlog"] and looks == ["once"]
    assert "from 3 executors on east to 4 executors on west" in planned["sentence"]
    monkeypatch.setattr(replan, "observe_job", lambda *_: ([behind._replace(come_rps=930.0)], 9.0))
    planned = replan.plan({"topology": "adverts"})
    assert planned["load"] == 1.55 and planned["backlog"] and said not in planned["sentence"]
    monkeypatch.setattr(replan, "observe_job", lambda *_: ([behind._replace(arrival_rps=1_200.0)], 9.0))
    with pytest.raises(replan.ReplanError, match="have no room"):
        replan.plan({"topology": "adverts"})


@pytest.mark.usefixtures("running")
def test_what_is_approved_is_not_applied_where_a_cluster_is_away_by_then(tmp_path):
    planned = replan.plan({"topology": "adverts"})
    folder = JobFolder(tmp_path / "jobs" / "adverts")
    kept = folder.path / "adverts.yaml"
    kept.write_text(FILE.read_text().replace("price: 0.6", "price: 0.6, master: 'spark://127.0.0.1:1'"))
    before = folder.wanted()
    with pytest.raises(replan.ReplanError, match=r"cluster west \(spark://127.0.0.1:1\) does not answer"):
        replan.apply({"topology": "adverts"}, planned)
    assert folder.wanted() == before


@pytest.mark.usefixtures("running")
def test_what_is_approved_is_not_applied_where_a_query_would_be_scaled_no_more(tmp_path, monkeypatch):
    planned = replan.plan({"topology": "adverts"})
    folder = JobFolder(tmp_path / "jobs" / "adverts")
    (folder.path / "adverts.yaml").write_text(FILE.read_text().replace("price: 0.6", "price: 0.6, executor_cores: 2"))
    monkeypatch.setenv("TIDECAST_CONTRACTS", str(tmp_path))
    (tmp_path / "adverts.parse.yaml").write_text("job: adverts.parse\nexecutors: {max: 3}\n")
    before = folder.wanted()
    with pytest.raises(replan.ReplanError, match=r"adverts\.parse would not be scaled on west, where executor_cores=2"):
        replan.apply({"topology": "adverts"}, planned)
    assert folder.wanted() == before


def test_a_load_for_which_there_is_no_room_is_told(running):
    _, load = running
    load["rps"] = 60_000.0
    with pytest.raises(replan.ReplanError, match="no set of queries has room"):
        replan.plan({"topology": "adverts"})


def test_a_job_that_was_never_begun_is_planned_for_the_stated_rates(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
    planned = replan.plan({"topology": "adverts", "load": None})
    assert not planned["ask"] and planned["was"] is None and planned["load"] == 1.0
    assert asdict(ONE)["blocks"][0]["cluster"] == planned["placement"]["blocks"][0]["cluster"]


def test_of_two_changes_at_once_neither_is_lost(tmp_path):
    folder, reached, goes_on = JobFolder(tmp_path / "job"), Event(), Event()
    blocks = tuple(Block((name,), "east", 1, 1.0, 1.0) for name in ("first", "second"))
    (tmp_path / "two.yaml").write_text("")
    folder.begin(tmp_path / "two.yaml", Placement(blocks, 2.0, 1.0, True))

    def to(at, cluster, now):
        reached.set()
        assert goes_on.wait(30)
        moved = replace(now.blocks[at], cluster=cluster)
        return replace(now, blocks=(*now.blocks[:at], moved, *now.blocks[at + 1 :]))

    with ThreadPoolExecutor(2) as both:
        first = both.submit(folder.change, partial(to, 0, "west"))
        assert reached.wait(30)
        second = both.submit(folder.change, partial(to, 1, "north"))
        goes_on.set()
        first.result(30)
        second.result(30)
    assert [block.cluster for block in folder.wanted().blocks] == ["west", "north"]
