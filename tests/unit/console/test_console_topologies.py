"""The page of topologies: where each query is wanted and was started, and what is measured and advised of it."""

import os

import pytest
from starlette.responses import JSONResponse

from configs.settings import ROOT, load
from models.placement.plan.applications import applications_of
from models.placement.plan.choose import choose_placement
from pipelines.bench.team.console.records import NOW, batch, interval
from pipelines.console.read.fold import ReadModel, fold
from pipelines.console.topologies import read_topologies, topology_rows
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.watched_block import OffloadNote

NAME = "adverts"


@pytest.fixture
def settings(tmp_path):
    found = load(var=str(tmp_path / "var"), topologies=str(tmp_path / "topologies"))
    found.topologies_dir.mkdir(parents=True)
    text = (ROOT / "configs" / "topologies" / f"{NAME}.yaml").read_text()
    (found.topologies_dir / f"{NAME}.yaml").write_text(text)
    return found


@pytest.fixture
def begun(settings):
    from configs.topology import load_topology

    file = settings.topologies_dir / f"{NAME}.yaml"
    folder, topology = JobFolder(settings.var_dir / "jobs" / NAME), load_topology(NAME, settings.topologies_dir)
    folder.begin(file, choose_placement(topology).placement)
    return folder


def test_one_that_was_never_begun_has_clusters_and_operators_alone(settings):
    (found,) = read_topologies(settings)
    assert (found["name"], found["problem"], found["begun"], found["queries"]) == (NAME, "", False, [])
    assert found["operators"] and found["clusters"]
    assert not (settings.var_dir / "jobs").exists(), "looking makes nothing"


def test_one_that_was_begun_has_its_plan_and_where_its_queries_are(settings, begun):
    first = applications_of(begun.topology(), begun.wanted())[0]
    begun.begin_epoch(first)
    begun.begin_epoch(first._replace(cluster="elsewhere"))
    begun.note_offloaded(first.name, OffloadNote("home", first.cluster, NOW))
    (found,) = read_topologies(settings)
    assert found["plan"]["since"] == begun.wanted_since_s() and found["plan"]["price"] == begun.wanted().price
    query = next(one for one in found["queries"] if one["name"] == first.name)
    assert (query["cluster"], query["at"], query["moves"]) == (first.cluster, "elsewhere", 1)
    assert query["offloaded"] == {"home": "home", "away": first.cluster, "since_s": NOW, "left": False}
    assert all(one["at"] is None for one in found["queries"] if one["name"] != first.name)
    for moved_back in (
        OffloadNote("home", first.cluster, NOW, left=True),
        OffloadNote(first.cluster, "elsewhere", NOW),
    ):
        begun.note_offloaded(first.name, moved_back)  # who off-loads may not have looked since
        (found,) = read_topologies(settings)
        assert all(one["offloaded"] is None for one in found["queries"])


def test_a_query_is_shown_as_its_job_is_measured_with_what_was_advised(settings, begun):
    name = applications_of(begun.topology(), begun.wanted())[0].name
    model = fold(ReadModel(), [interval(name, NOW, executors=3), batch(name, NOW, 4.5)], NOW)
    advice = {NAME: {"at": NOW - 60, "told": "move it", "asks": True}}
    (row,) = topology_rows(model, read_topologies(settings), advice, NOW + 1)
    query = next(one for one in row["queries"] if one["name"] == name)
    assert (query["known"], query["there"], query["latency_s"], row["advice"]["told"]) == (True, 3, 4.5, "move it")
    assert all(not one["known"] and one["there"] is None for one in row["queries"] if one["name"] != name)


def test_a_wrong_file_or_folder_is_said_and_leaves_the_others(settings, begun):
    (settings.topologies_dir / "broken.yaml").write_text("name: broken\n")
    (begun.path / "placement.json").write_text("{}")
    found = {one["name"]: one["problem"] for one in read_topologies(settings)}
    assert "broken.yaml" in found["broken"] and found[NAME] != ""
    rows = topology_rows(ReadModel(), read_topologies(settings), {}, NOW)
    assert len(rows) == 2


def test_a_file_whose_name_is_no_text_is_told_in_an_answer_that_can_be_sent(settings):
    (settings.topologies_dir / os.fsdecode(b"\xff.yaml")).write_text("sources: {}\n")
    first, second = topology_rows(ReadModel(), read_topologies(settings), {}, NOW)
    assert first["name"] == "\\udcff" and first["problem"] and second["name"] == NAME
    assert JSONResponse([first, second]).status_code == 200
