"""What is refused before a job is begun: a cluster that is away, a topic with too few partitions."""

import shutil
import socket
from contextlib import closing
from dataclasses import replace

import pytest

from configs.errors import SettingsError
from configs.settings import ROOT, load
from configs.topology import Topology, load_topology
from models.placement.plan.choose import PlanError, choose_placement
from models.placement.plan.measured import Block, Placement
from pipelines.jobs.launch import first_offsets_file, read_first_offsets
from pipelines.kafka.connection import BrokerError, TopicError
from pipelines.placement import running
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.reached import refuse_away, why_away

FILE = ROOT / "configs" / "topologies" / "adverts.yaml"
ADVERTS = load_topology("adverts", FILE.parent)
ALL = tuple(ADVERTS.operators)
ONE = Placement((Block(ALL, "west", 3, 1.57, 1.8),), 1.8, 1.8, True)
TWO = Placement((Block(ALL[:3], "east", 1, 1.0, 1.0), Block(ALL[3:], "west", 2, 1.0, 1.5)), 3.0, 2.5, True)
AWAY = "spark://127.0.0.1:1"
"""Nothing listens there."""


@pytest.fixture
def listening():
    """The address of what takes connections."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def stated(topology=ADVERTS, pins=(), **masters):
    clusters = {
        name: one.model_copy(update={"master": masters.get(name)}) for name, one in topology.clusters.items()
    }  # fmt: skip
    operators = {
        name: one.model_copy(update={"cluster": "west" if name in pins else None})
        for name, one in topology.operators.items()
    }
    return topology.model_copy(update={"clusters": clusters, "operators": operators})


def test_a_master_is_there_where_one_of_its_addresses_takes_a_connection(listening):
    assert why_away(f"spark://{listening}") == why_away(f"{AWAY},{listening}") == ""
    assert why_away("local[2]") == why_away("yarn") == why_away("") == ""
    assert "refused" in why_away(AWAY)
    for wrong in ("spark://west", "spark://west:port", "spark://127.0.0.1:99999999"):
        assert why_away(wrong)


def test_a_plan_that_uses_a_cluster_that_is_away_is_refused_with_the_plan_without_it(listening):
    refuse_away(stated(west=f"spark://{listening}"), ONE)
    refuse_away(stated(east=AWAY), ONE)  # the plan puts nothing there
    with pytest.raises(PlanError, match=r"cluster west \(spark://127\.0\.0\.1:1\) does not answer") as said:
        refuse_away(stated(west=AWAY), ONE)
    assert "A plan without it: 1 query on east, 3.00 an hour" in str(said.value)
    assert str(said.value).endswith("take it out of the file for that.")
    with pytest.raises(PlanError, match=r"1 query on west, 1\.80 an hour.*pin its operators elsewhere"):
        refuse_away(stated(east=AWAY), TWO)  # the broker's cluster cannot be taken out
    with pytest.raises(PlanError, match=r"no plan without it: operators\.join\.cluster says so"):
        refuse_away(stated(west=AWAY, pins=("join",)), ONE)
    with pytest.raises(PlanError, match=r"no plan without it: adverts: no set of queries has room.* 4 cores"):
        refuse_away(stated(west=AWAY), ONE, factor=5.0)


def test_also_where_queries_may_be_put_in_more_ways_than_are_looked_at_the_broker_s_cluster_is_planned_without():
    chain = {f"o{n}": {"of": [f"o{n - 1}" if n else "events"], "work_ms": 1, "unit": str(n)} for n in range(9)}
    job = Topology.model_validate({
        "name": "chain", "broker": "east", "sources": {"events": {"rps": 10.0}}, "operators": chain, "target_s": 60,
        "clusters": {
            "east": {"cores": 16, "price": 0.5, "round_trip_ms": {"west": 1}, "master": AWAY}, "west": {"cores": 16},
        },
    })  # fmt: skip
    with pytest.raises(
        PlanError, match=r"cluster east .* does not answer.*A plan without it: 9 queries on west, 9\.00"
    ):
        refuse_away(job, choose_placement(job).placement)


def test_of_a_job_that_was_begun_the_moves_are_told_that_do_without_the_cluster():
    with pytest.raises(PlanError, match=r"Without it: `tidecast job move adverts join east`\."):
        refuse_away(stated(west=AWAY), TWO, wanted=TWO)
    full = replace(TWO, blocks=(replace(TWO.blocks[0], executors=3), TWO.blocks[1]))
    with pytest.raises(PlanError, match=r"No other cluster may have, or has room for, the query of join\."):
        refuse_away(stated(west=AWAY), full, wanted=full)


def test_nothing_of_a_job_is_begun_where_its_cluster_is_away_or_a_source_has_too_few_partitions(tmp_path, monkeypatch):
    settings, made, there = load(var=tmp_path / "var"), [], {"events": 2}
    monkeypatch.setattr(running, "create_topic", lambda kafka, topic: made.append(topic))
    monkeypatch.setattr(running, "topic_id", lambda kafka, topic: topic)
    monkeypatch.setattr(
        running, "topic_offsets", lambda kafka, topic: dict.fromkeys(range(there.get(topic, 12)), (0, 0))
    )
    monkeypatch.setattr(running, "fix_first_offsets", lambda *of: None)
    file = tmp_path / "adverts.yaml"
    file.write_text(FILE.read_text().replace("price: 0.6", f"price: 0.6, master: '{AWAY}'"))
    with pytest.raises(PlanError, match="cluster west"):
        running.begin_job(settings, file)
    shutil.copy(FILE, file)
    with pytest.raises(
        SettingsError, match=r"the topic events has 2: .* State `partitions: 2` in.* With 2 there is a plan: "
    ):
        running.begin_job(settings, file)
    assert not made and not running.job_folder(settings, "adverts").began()
    there["events"] = 12
    assert running.begin_job(settings, file).began() and made == ["adverts.count"]

    other, said = load(var=tmp_path / "other"), []
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = f"spark://127.0.0.1:{server.getsockname()[1]}"
        file.write_text(FILE.read_text().replace("price: 0.6", f"price: 0.6, master: '{master}'"))
        running.begin_job(other, file)
    assert running.begin_job(other, file, said.append).began(), "of a job that was begun the others run meanwhile"
    assert "cluster west" in said[0] and "does not answer" in said[0]


def test_a_job_that_another_command_begins_meanwhile_is_not_begun_over_it(tmp_path, monkeypatch):
    settings, began = load(var=tmp_path), []
    folder = running.job_folder(settings, "adverts")

    def begin_first(kafka, topic):
        if not began:
            folder.begin(FILE, TWO)
            first_offsets_file(folder.path, "adverts").write_text('{"events": {"0": 7}}')
            began.append(folder.id)
        return dict.fromkeys(range(12), (0, 0))

    monkeypatch.setattr(running, "topic_id", lambda kafka, topic: topic)
    monkeypatch.setattr(running, "topic_offsets", begin_first)
    monkeypatch.setattr(running, "create_topic", lambda kafka, topic: None)
    monkeypatch.setattr(running, "fix_first_offsets", lambda *of: pytest.fail("its records would begin elsewhere"))
    found = running.begin_job(settings, FILE, placement=ONE)
    assert found.wanted() == TWO and [found.id] == began
    assert read_first_offsets(found.path, "adverts") == {"events": {0: 7}}


def test_a_topology_that_is_edited_while_it_is_planned_is_not_begun_as_another(tmp_path, monkeypatch):
    settings, file = load(var=tmp_path / "var"), tmp_path / "adverts.yaml"
    shutil.copy(FILE, file)

    def edited(kafka, topic):
        file.write_text(FILE.read_text().replace("target_s: 8", "target_s: 9"))
        return dict.fromkeys(range(12), (0, 0))

    monkeypatch.setattr(running, "topic_id", lambda kafka, topic: topic)
    monkeypatch.setattr(running, "topic_offsets", edited)
    monkeypatch.setattr(running, "create_topic", lambda kafka, topic: None)
    monkeypatch.setattr(running, "fix_first_offsets", lambda *of: None)
    folder = running.job_folder(settings, "adverts")
    with pytest.raises(SettingsError, match=r"adverts.yaml was edited while it was planned. Start again"):
        running.begin_job(settings, file)
    assert not folder.began()
    with pytest.raises(SettingsError, match="edited while"):
        running.begin_job(settings, file, placement=ONE, planned=ADVERTS)  # before it was called
    assert running.begin_job(settings, file).topology().target_s == 9 and not folder.has_changed(file)


def test_a_topic_with_records_is_written_to_only_where_the_job_was_begun_before(tmp_path, monkeypatch):
    settings, ids, ends = load(var=tmp_path, kafka={"prefix": "t."}), {"events": "a", "adverts.count": "b"}, {}

    def known(kafka, topic):
        if topic not in ids:
            raise TopicError(f"{topic} is not there")
        return ids[topic]

    def offsets(kafka, topic):
        known(kafka, topic)
        return dict.fromkeys(range(12), (3, ends.get(topic, 3)))

    monkeypatch.setattr(running, "topic_id", known)
    monkeypatch.setattr(running, "topic_offsets", offsets)
    monkeypatch.setattr(running, "create_topic", lambda kafka, topic: ids.setdefault(topic, "made"))
    monkeypatch.setattr(running, "fix_first_offsets", lambda *of: None)
    ends["adverts.count"] = 5
    with pytest.raises(SettingsError, match=r"the topic t\.adverts\.count, which is there .* 24 offsets: others"):
        running.begin_job(settings, FILE, placement=ONE)
    folder = running.job_folder(settings, "adverts")
    assert not folder.began()
    before = JobFolder(folder.path.with_name("adverts.damaged-1"))  # as a person is told to move it
    before.begin(FILE, ONE)
    (before.path / "adverts.parse.topics.json").write_text('{"events": "a", "adverts.count": "other"}')
    (before.path / "adverts.join.topics.json").write_text("")
    with pytest.raises(SettingsError, match=r"which is there"):
        running.begin_job(settings, FILE, placement=ONE)
    (before.path / "adverts.parse.topics.json").write_text('{"events": "a", "adverts.count": "b"}')
    assert running.begin_job(settings, FILE, placement=ONE).began()
    empty = load(var=tmp_path / "empty")
    ends.clear()
    assert running.begin_job(empty, FILE, placement=TWO).began() and ids["adverts.project"] == "made"
    del ids["events"]
    with pytest.raises(BrokerError, match=r"sources\.events is the topic 't\.events'.* 12 partitions") as said:
        running.begin_job(load(var=tmp_path / "none", kafka={"prefix": "t."}), FILE, placement=ONE)
    assert "tidecast up" not in str(said.value)
