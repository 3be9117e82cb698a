"""`tidecast plan NAME --apply`: what is begun, moved or refused; what runs a job is recorded, and runs nothing."""

import json
import shutil
from contextlib import closing
from dataclasses import replace

import pytest

from configs.errors import SettingsError
from configs.settings import ROOT, load
from models.placement.plan.observed import ObservedBlock
from pipelines.cli.placement import plan as command
from pipelines.cli.placement.job import move_job_block
from pipelines.cli.placement.placed import UnplannedError
from pipelines.cli.placement.plan import plan
from pipelines.placement import replan
from pipelines.placement.running import job_folder
from pipelines.stack import state


@pytest.fixture
def began(monkeypatch, tmp_path):
    """What was run, in order: file and placement; the file of the adverts job is the test's own."""
    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path / "var"))
    monkeypatch.setenv("TIDECAST_TOPOLOGIES", str(tmp_path))
    shutil.copy(ROOT / "configs" / "topologies" / "adverts.yaml", tmp_path)
    runs = []
    monkeypatch.setattr(
        command, "run_job", lambda settings, file, placement, factor, topology: runs.append((file.name, placement))
    )
    monkeypatch.setattr(command, "with_broker", load)
    return runs


def begun_on(cluster, tmp_path, placement):
    """The job's folder, begun as planned, but all on one cluster."""
    folder = job_folder(load(), "adverts")
    blocks = tuple(replace(one, cluster=cluster) for one in placement.blocks)
    folder.begin(tmp_path / "adverts.yaml", replace(placement, blocks=blocks))
    return folder


def test_nothing_is_begun_without_being_asked_for(began):
    plan("adverts")
    assert began == []


def test_a_job_that_never_ran_is_begun_as_planned_for_the_load(began):
    plan("adverts")
    plan("adverts", apply=True)
    plan("adverts", load=1.5, apply=True)
    (name, first), (_, more) = began
    assert name == "adverts.yaml"
    assert sum(one.executors for one in more.blocks) > sum(one.executors for one in first.blocks)


def test_queries_of_a_job_that_was_begun_move_and_it_is_run_unless_it_runs(began, tmp_path, capsys):
    plan("adverts", apply=True)
    ((_, planned),) = began
    folder = begun_on("east", tmp_path, planned)
    with closing(state.lock(folder.path / "stack")):  # held by who runs it, also while none of its drivers lives
        plan("adverts", apply=True)
    assert folder.wanted() == planned and len(began) == 1
    assert "from 3 executors on east to 3 executors on west" in capsys.readouterr().out
    plan("adverts", apply=True)
    assert len(began) == 2 and "it stays as it is" in capsys.readouterr().out


def test_a_job_of_another_file_is_left_alone_and_one_of_other_queries_is_planned_with_these(began, tmp_path, capsys):
    plan("adverts", apply=True)
    ((_, planned),) = began
    (block,) = planned.blocks
    cut = tuple(replace(block, operators=part) for part in (block.operators[:2], block.operators[2:]))
    folder = begun_on("east", tmp_path, replace(planned, blocks=cut))
    capsys.readouterr()
    plan("adverts")
    looked = capsys.readouterr().out
    plan("adverts", apply=True)
    after = folder.wanted()
    assert [(one.operators, one.cluster) for one in after.blocks] == [(one.operators, "west") for one in cut]
    said = capsys.readouterr().out
    assert said.startswith(looked) and "parse+views: west, 2 executors" in looked.replace(" + ", "+")
    assert "parse+views from 3 executors on east to 2 executors on west" in said and len(began) == 2
    assert "1.80 an hour, 1.8 s: better, but which operators are one query is fixed while the job runs" in said
    file = tmp_path / "adverts.yaml"
    file.write_text(file.read_text().replace("target_s: 8", "target_s: 9"))
    with pytest.raises(UnplannedError, match="has changed since this job was begun"):
        plan("adverts", apply=True)
    assert folder.wanted() == after and len(began) == 2


def test_a_plan_says_that_a_job_goes_on_by_an_older_file(began, tmp_path, capsys):
    said = "adverts.yaml has changed since the job adverts was begun, which goes on as it was."
    plan("adverts", apply=True)
    ((_, planned),) = began
    begun_on("east", tmp_path, planned)
    plan("adverts")
    assert said not in capsys.readouterr().out
    file = tmp_path / "adverts.yaml"
    file.write_text(file.read_text().replace("rps: 600", "rps: 900"))
    plan("adverts")
    told = capsys.readouterr().out
    assert said in told and "west, 4 executors" in told  # what the file says now


@pytest.fixture
def measured(began, tmp_path, monkeypatch):
    """The job, begun on the dearer cluster, and what was measured of its query, which works off what has waited."""
    with pytest.raises(SettingsError, match="no job was begun here"):
        plan("adverts", measured=True)
    plan("adverts", apply=True)
    folder = begun_on("east", tmp_path, began.pop()[1])
    full = {"come_rps": 900.0, "whole_s": 0.003, "full": True}
    seen = [ObservedBlock(folder.wanted().blocks[0], 600.0, 1_000.0, 3.0, 9.0, 99, **full)]
    monkeypatch.setattr(replan, "observe_job", lambda *_: (seen, 9.0))
    monkeypatch.setattr(replan, "observe_record_bytes", lambda *_: {})
    return folder, seen


def test_a_job_is_planned_by_what_was_measured_of_it(began, measured, tmp_path, capsys):
    folder, _ = measured
    before, page, told = folder.wanted(), tmp_path / "plan.html", tmp_path / "plan.json"
    capsys.readouterr()
    plan("adverts", measured=True, page=page, as_json=told)
    said = capsys.readouterr().out
    assert "west, 4 executors (2.70" in said and "for the load of the 10 minutes before." in said
    assert json.loads(told.read_text())["load"] == 1.5 and "As it runs now" in page.read_text()
    assert folder.wanted() == before and not began
    file = tmp_path / "adverts.yaml"
    file.write_text(file.read_text().replace("target_s: 8", "target_s: 9"))
    plan("adverts", measured=True, apply=True)  # as it was begun
    said = capsys.readouterr().out
    assert "adverts at 1.5 times the stated rates: parse+views+project+join+count from 3 executors on east to 4" in said
    assert [(one.cluster, one.executors) for one in folder.wanted().blocks] == [("west", 4)] and len(began) == 1
    assert folder.work()["parse"].record_s == pytest.approx(0.003)
    with pytest.raises(SettingsError, match="leave --load away"):
        plan("adverts", measured=True, load=1.5)


def test_of_a_job_of_which_nothing_was_measured_nothing_is_moved(began, measured, capsys):
    folder, seen = measured
    before = folder.wanted()
    seen[0] = seen[0]._replace(rps=None, come_rps=None)
    plan("adverts", measured=True)
    assert "Nothing was measured in the last 10 minutes: planned for the stated rates." in capsys.readouterr().out
    with pytest.raises(UnplannedError, match="nothing was measured of it, so nothing is moved"):
        plan("adverts", measured=True, apply=True)
    assert folder.wanted() == before and not began


def test_queries_are_not_moved_to_a_cluster_that_is_away(began, tmp_path):
    plan("adverts", apply=True)
    file = tmp_path / "adverts.yaml"
    file.write_text(file.read_text().replace("price: 0.6", "price: 0.6, master: 'spark://127.0.0.1:1'"))
    folder = begun_on("east", tmp_path, began[0][1])
    before = folder.wanted()
    away = r"cluster west \(spark://127.0.0.1:1\) does not.*The job stays as it is"
    with closing(state.lock(folder.path / "stack")), pytest.raises(UnplannedError, match=away):
        plan("adverts", apply=True)
    assert folder.wanted() == before and len(began) == 1


def test_a_query_is_not_ended_for_a_cluster_that_is_away(began, tmp_path):
    plan("adverts", apply=True)
    file = tmp_path / "adverts.yaml"
    file.write_text(file.read_text().replace("price: 0.6", "price: 0.6, master: 'spark://127.0.0.1:1'"))
    folder = begun_on("east", tmp_path, began[0][1])
    before = folder.wanted()
    with pytest.raises(UnplannedError, match=r"cluster west \(spark://127.0.0.1:1\) does not answer.*where it is"):
        move_job_block("adverts", "count", "west")
    with pytest.raises(UnplannedError, match="no such cluster"):
        move_job_block("adverts", "count", "north")
    assert folder.wanted() == before


def test_a_scaled_query_is_not_moved_to_where_executors_are_of_another_size_than_its_contract_s(
    began, tmp_path, monkeypatch
):
    plan("adverts", apply=True)
    file, contract = tmp_path / "adverts.yaml", tmp_path / "adverts.parse.yaml"
    monkeypatch.setenv("TIDECAST_CONTRACTS", str(tmp_path))
    file.write_text(file.read_text().replace("west: {cores: 4", "west: {executor_cores: 2, cores: 16"))
    folder = begun_on("east", tmp_path, began[0][1])
    before = folder.wanted()
    contract.write_text("job: adverts.parse\nexecutors: {max: 3, cores: 1}\n")
    with pytest.raises(SettingsError, match=r"executor_cores=2: .*adverts.parse.yaml has executors.cores=1\."):
        move_job_block("adverts", "count", "west")
    assert folder.wanted() == before
    contract.write_text("job: adverts.parse\nexecutors: {max: 3, cores: 2}\n")  # not scaled now, and scaled there
    move_job_block("adverts", "count", "west")
    assert [block.cluster for block in folder.wanted().blocks] == ["west"]


def test_a_plan_by_which_a_query_would_be_scaled_no_more_is_not_applied(began, tmp_path, monkeypatch):
    plan("adverts", apply=True)
    file, contract = tmp_path / "adverts.yaml", tmp_path / "adverts.parse.yaml"
    monkeypatch.setenv("TIDECAST_CONTRACTS", str(tmp_path))
    file.write_text(file.read_text().replace("price: 0.6", "price: 0.4, executor_cores: 2"))
    folder = begun_on("east", tmp_path, began[0][1])
    contract.write_text("job: adverts.parse\nexecutors: {max: 3, cores: 1}\n")
    before = folder.wanted()
    with pytest.raises(SettingsError, match=r"adverts\.parse would not be scaled on west, where executor_cores=2: "):
        plan("adverts", apply=True)
    assert folder.wanted() == before and len(began) == 1
    contract.unlink()
    plan("adverts", apply=True)
    assert [block.cluster for block in folder.wanted().blocks] == ["west"] and len(began) == 2


def test_the_demonstration_applies_nothing_else(began):
    with pytest.raises(SettingsError, match="--demo"):
        plan(demo=True, apply=True)
