"""What is said of a deployment that came back, which rows are measured, and what neighbours are told."""

import ast
import json
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict
from importlib import import_module
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from configs.sections import Kafka
from configs.settings import ROOT, load
from pipelines.bench.site import containers, deployment, measure
from pipelines.bench.site.deployment import COUNTED, LEARN, MOVED, SEEN, list_lost, list_miscounted
from pipelines.bench.site.hadoop_configuration import write_configuration
from pipelines.bench.site.neighbours import read_metrics_table
from pipelines.bench.site.rings import WAVE, FaultyScreen, write_wave
from pipelines.bench.site.servers import SiteError
from pipelines.cli.app import app
from pipelines.figures.goals import goals_of
from pipelines.jobs.replay import plan_replay
from pipelines.lake.tables import Origin
from pipelines.traces.trace import load_trace

BEFORE = {
    "ends": {"metrics": 5, "decisions": 3}, "champion": "2", "batch": 7, "dags": {"ingest_metrics": 1},
    "lake": {"metrics": {"version": 3, "rows": 40}}, "runs": ["a", "b"],
}  # fmt: skip


def test_what_is_there_and_what_went_on_is_not_lost():
    assert list_lost(BEFORE, BEFORE) == []
    more = {"metrics": {"version": 4, "rows": 50}, "outcomes": {"version": 0, "rows": 1}}
    later = {"ends": {"metrics": 9, "decisions": 3}, "batch": 12, "lake": more, "runs": ["c", "b", "a"]}
    assert list_lost(BEFORE, {**BEFORE, **later}) == []


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({"ends": {"metrics": 4, "decisions": 3}}, "metrics: 4 records, 5 before"),
        ({"ends": {"metrics": 5}}, "decisions: 0 records, 3 before"),
        ({"champion": None}, "champion: None, 2 before"),
        ({"batch": 0}, "the autoscaler's batch: 0, 7 before"),
        ({"dags": {}}, "runs of ingest_metrics: 0, 1 before"),
        ({"lake": {"metrics": {"version": 3, "rows": 39}}}, "the lake's metrics: 39 rows, 40 before"),
        ({"lake": {"metrics": {"version": 2, "rows": 40}}}, "the lake's metrics: version 2, 3 before"),
        ({"runs": ["b"]}, "MLflow's run a"),
    ],
)
def test_what_is_less_than_before_is_lost(after, said):
    assert list_lost(BEFORE, {**BEFORE, **after}) == [said]


def test_a_table_that_is_gone_has_lost_its_rows_and_its_versions():
    said = ["the lake's metrics: 0 rows, 40 before", "the lake's metrics: version None, 3 before"]
    assert list_lost(BEFORE, {**BEFORE, "lake": {}}) == said


def test_what_composes_the_containers_is_asked_for_before_an_image_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(containers, "TOOLS", ())
    monkeypatch.setattr(containers, "COMPOSE", tmp_path / "podman-compose")
    with pytest.raises(SiteError, match=r"podman-compose not found\. pip install -r requirements-site\.txt"):
        containers.prepare(tmp_path)


@pytest.mark.parametrize("code", [COUNTED, LEARN, MOVED, SEEN])
def test_what_runs_in_a_container_imports_what_is_there(code):
    for line in ast.parse(code).body:
        if isinstance(line, ast.ImportFrom) and line.module.startswith(("configs", "pipelines", "tidecast")):
            assert all(hasattr(import_module(line.module), one.name) for one in line.names), line.module


def test_records_that_a_job_has_not_counted_once_are_told():
    counts = {"produced": 9, "counted": 9, "lost": 0, "duplicated": 0, "late_dropped": 0}
    assert list_miscounted(counts) == []
    said = ["2 of 9 records not counted", "1 of 9 records counted twice"]
    assert list_miscounted({**counts, "counted": 8, "lost": 2, "duplicated": 1}) == said


def test_dags_are_switched_on_by_the_line_of_the_page_which_waits_for_them():
    """Also those of which two are on already, as after a training: what a command has changed tells nothing of them."""
    ran = []
    made = SimpleNamespace(run=lambda service, *command: ran.append((service, command)))
    deployment._switch_on(made)
    deployment._switch_on(made)
    ((service, command),) = set(ran)
    page = (ROOT / "docs" / "deploy.md").read_text()
    assert f"docker compose -f docker/compose.yaml exec {service} {' '.join(command)}\n" in page


def test_where_a_dag_is_missing_the_dag_processors_last_lines_are_told():
    def run(service, *command):
        raise subprocess.CalledProcessError(2, command)

    made = SimpleNamespace(run=run, last_lines=lambda service: f"{service}: maintain_lake.py, 1 error")
    with pytest.raises(SiteError, match=r"processor:\nairflow-dag-processor: maintain_lake\.py, 1 error"):
        deployment._switch_on(made)


def test_rows_are_kept_one_by_one_beside_those_of_an_earlier_call(tmp_path, monkeypatch):
    saved = []

    def failing(settings, folder):
        raise RuntimeError("no podman")

    def row(settings, folder):
        assert folder.is_dir() and list(folder.iterdir()) == [] and settings.var_dir == tmp_path / "bench"
        return {"counted": 3}

    monkeypatch.setattr(measure, "ROWS", {"yarn": row, "compose": failing})
    monkeypatch.setattr(measure, "find_commit", lambda: "abc")
    (tmp_path / "bench" / "site" / "yarn" / "old").mkdir(parents=True)
    with pytest.raises(RuntimeError, match="no podman"):
        measure.measure_site(load(var=tmp_path), ["yarn", "compose"], {"services": {"counted": 1}}, saved.append)
    assert saved[0]["yarn"].pop("seconds") >= 0
    assert saved == [{"services": {"counted": 1}, "yarn": {"counted": 3, "commit": "abc"}}]


def test_what_the_whole_of_the_tests_took_comes_with_the_rows(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(measure, "ROWS", {"yarn": lambda settings, folder: {}})
    measure.keep_tests(load(var=tmp_path), 1530.0, tests=80, passed=79)
    measure.measure_site(load(var=tmp_path), ["yarn"], {"tests": {"minutes": 9.0}}, saved.append)
    rows = {row.what: row for row in goals_of("tidecast bench site").fill_rows(saved[0], "tests")}
    minutes, missed = rows.values()
    assert (minutes.measured, minutes.holds, minutes.n) == (25.5, False, 80)
    assert (missed.measured, missed.holds) == (1, False)


def test_an_unknown_row_is_named():
    done = CliRunner().invoke(app, ["bench", "site", "--rows", "kubernetes"])
    assert "kubernetes" in str(done.exception) and "yarn, queue, services, compose, backup, upgrade" in str(
        done.exception
    )


def test_the_load_of_a_short_ring_rises_and_falls_within_ninety_seconds(tmp_path):
    replay = load().replay.model_copy(update=WAVE | {"trace": str(write_wave(tmp_path / "wave.csv"))})
    plan = plan_replay(load_trace(replay), replay)
    assert plan.seconds <= 90 and len(plan) > 1600
    quiet, high, then = (((plan.send_at >= begin) & (plan.send_at < end)).sum() / (end - begin)
                         for begin, end in ((0, 5), (10, 50), (56, 90)))  # fmt: skip
    assert 7 < quiet < 13 and 27 < high < 33 and 7 < then < 13


def test_what_fails_on_the_way_is_told_at_the_end():
    seen = []

    def fails():
        raise OSError("no such process")

    screen = FaultyScreen([(0.0, fails), (0.0, lambda: seen.append(1)), (60.0, fails)])
    with screen.stage("live: an hour"):
        pass
    screen._timers[0].join(10)
    screen._timers[1].join(10)
    screen.give_up()
    assert screen.failed == ["OSError: no such process"] and seen == [1]


def test_rows_that_a_commit_names_are_looked_for_in_the_files(tmp_path):
    """Two ingests of three and two rows; the file of the second holds one."""
    log = tmp_path / "elsewhere" / "metrics" / "_delta_log"
    log.mkdir(parents=True)
    schema = json.dumps({"fields": [{"name": "wall_time", "type": "double"}]})
    begin = [{"protocol": {"minReaderVersion": 1}}, {"metaData": {"partitionColumns": [], "schemaString": schema}}]
    for version, (said, rows) in enumerate([(3, 3), (2, 1)]):
        pq.write_table(pa.table({"wall_time": [float(row) for row in range(rows)]}), log.parent / f"{version}.parquet")
        origin = Origin("metrics", "id", f"2014-10-22T0{version}", {0: 0}, {0: said}, 0.0, said, 0)
        info = {"commitInfo": {"userMetadata": json.dumps({"origin": asdict(origin)})}}
        actions = [info, *(begin if version == 0 else []), {"add": {"path": f"{version}.parquet"}}]
        (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)))
    seen = read_metrics_table(load(var=tmp_path, lake={"address": str(log.parents[1])}))
    assert seen == {"lake_commits": 2, "lake_rows": 4, "lake_unread": 1, "lake_local": False}


def test_hadoop_and_spark_are_told_of_the_loopback_alone(tmp_path):
    write_configuration(tmp_path, tmp_path / "data", [20001, 20002, 20003, 20004, 20005, 20006, 20007])
    core = ElementTree.parse(tmp_path / "core-site.xml").getroot()
    assert core.findtext(".//property[name='fs.defaultFS']/value") == "hdfs://127.0.0.1:20001"
    for file in tmp_path.glob("*-site.xml"):
        for one in ElementTree.parse(file).getroot():
            if one.findtext("name").endswith(("address", "bind-host", "hostname")):
                assert one.findtext("value").startswith(("127.0.0.1", "localhost")), one.findtext("name")
    spark = dict(line.split(" ", 1) for line in (tmp_path / "spark-defaults.conf").read_text().splitlines())
    assert spark["spark.yarn.stagingDir"] == "hdfs://127.0.0.1:20001/staging"


def test_a_users_section_is_one_of_the_settings(tmp_path):
    from pipelines.bench.site.brokers import Brokers

    section = Kafka(**Brokers(tmp_path).section())
    assert section.replication == 3 and len(section.bootstrap.split(",")) == 3
    assert section.security["sasl_mechanism"] == "SCRAM-SHA-512"
