"""What a block's application is given: its settings, its contract, and how many executors it may have."""

import math
import os
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from configs.contract import load_contract
from configs.errors import SettingsError
from configs.settings import ROOT, load
from configs.topology import load_topology
from models.placement.known_work import KnownWork
from models.placement.plan.applications import applications_of, batch_limits
from models.placement.plan.measured import Block, Measure, Placement
from models.placement.plan.shares import most_executors
from models.placement.rates import rates_of
from pipelines.jobs.restarts import same_topics
from pipelines.placement import block as block_application
from pipelines.placement.block import block_settings, run_block
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.scaled.contracts import contract_of, most_cores, starting_contract, write_contracts
from pipelines.placement.scaled.target_shares import TargetShares
from pipelines.placement.watched_block import BlockEpoch
from tidecast.spark.admission import AdmissionError

ADVERTS = load_topology("adverts", ROOT / "configs" / "topologies")
TWO = Placement((
    Block(("parse", "views", "project"), "east", 1, 0.6, 1.0), Block(("join", "count"), "west", 3, 1.0, 1.0),
), 3.0, 2.0, True)  # fmt: skip


def test_a_full_batch_keeps_a_block_s_executors_busy_for_five_triggers():
    first, second = applications_of(ADVERTS, TWO)
    job = block_settings(load(), ADVERTS).job
    busy = Measure(ADVERTS, rates_of(ADVERTS)).wiring(tuple(block.operators for block in TWO.blocks)).loads
    assert (job.trigger, job.state_partitions) == ("1 seconds", 12)
    assert batch_limits(ADVERTS, TWO, first, 1, {}) == {"events": math.ceil(5 * (600 / busy[0] + 12))}
    many = batch_limits(ADVERTS, TWO, second, 3, {"parse": KnownWork(0.001)})
    assert many == {"adverts.project": math.ceil(5 * (3 * 198 / busy[1] + 12))}
    quick = batch_limits(ADVERTS, TWO, first, 1, {"parse": KnownWork(0.001)})  # it is stated to do 691/s
    assert quick == {"events": math.ceil(5 * (1_000 + 12))}
    slow = ADVERTS.model_copy(update={"trigger_s": 0.5})
    assert block_settings(load(), slow).job.trigger == "0.5 seconds"


@pytest.mark.parametrize(
    ("rates", "shares"), [((600, 200), (0.75, 0.25)), ((0, 0), (0.5, 0.5)), ((600, 0), (1.0, 0.5))]
)
def test_the_sources_of_a_block_share_what_its_executors_can_work_on(rates, shares):
    one, source = Placement((Block(tuple(ADVERTS.operators), "east", 2, 1.0, 1.0),), 1.0, 1.0, True), "events"
    operators = {**ADVERTS.operators, "join": ADVERTS.operators["join"].model_copy(update={"of": ("project", "bids")})}
    sources = {
        name: ADVERTS.sources[source].model_copy(update={"rps": rps})
        for name, rps in zip((source, "bids"), rates, strict=True)
    }
    both = ADVERTS.model_copy(update={"operators": operators, "sources": sources})
    (block,) = applications_of(both, one)
    told = {name: own.model_copy(update={"rps": 1.0}) for name, own in sources.items()}
    known = both if any(rates) else both.model_copy(update={"sources": told})
    able_rps = Measure(known, rates_of(known)).service_rps((block.operators,), 0, 2)
    assert able_rps > 400  # also where it is stated that nothing comes
    limits = batch_limits(both, one, block, 2, {})
    assert limits == {
        name: math.ceil(5 * (able_rps * share + 12)) for name, share in zip((source, "bids"), shares, strict=True)
    }


class FakeAdmission:
    """The limits of a query that reads two topics."""

    def __init__(self, query):
        self._query = query

    def sources(self):
        return ["KafkaV2[Subscribe[t.events]]", "KafkaV2[Subscribe[t.events.more]]"]

    def admit_each(self, rows):
        if self._query is None:
            raise AdmissionError("no such field")
        self._query.update(rows)


def test_a_running_query_is_let_take_what_all_its_executors_can_work_on_of_each_topic(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(block_application, "Admission", FakeAdmission)
    monkeypatch.setattr(block_application, "_probe", lambda launch, epoch: None)
    epoch = BlockEpoch(1, applications_of(ADVERTS, TWO)[0], tmp_path)
    launch, query = SimpleNamespace(settings=load(kafka={"prefix": "t."})), {}
    attached = partial(block_application._all_there, launch=launch, epoch=epoch, attach=lambda: "agent")
    assert attached(query, limits={"events": 70, "events.more": 80}) == "agent"
    assert query == {"KafkaV2[Subscribe[t.events]]": 70, "KafkaV2[Subscribe[t.events.more]]": 80}
    assert attached(None, limits={"events": 70}) == "agent"
    assert "adverts.parse: its batches stay as small as at first. no such field" in capsys.readouterr().err


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """The folder of a job whose first query runs nothing: no Spark is reached; topics have ids."""
    ids = {"events": "a", "adverts.project": "b"}
    monkeypatch.setattr(same_topics, "topic_id", lambda kafka, topic: ids[topic])
    monkeypatch.setattr(block_application, "event_of_signals", lambda: None)
    monkeypatch.setenv("TIDECAST_KAFKA__BOOTSTRAP", "broker:9092")

    def reached(*_, **__):
        raise SettingsError("Spark was reached")

    monkeypatch.setattr(block_application, "cluster_session", reached)
    folder = JobFolder(tmp_path / "adverts")
    folder.begin(ROOT / "configs" / "topologies" / "adverts.yaml", TWO)
    folder.begin_epoch(applications_of(ADVERTS, TWO)[0])
    return folder, ids


@pytest.mark.parametrize("topic", ["events", "adverts.project"])
def test_a_query_goes_on_at_the_topics_alone_on_which_it_began(begun, capsys, topic):
    folder, ids = begun
    for _ in range(2):
        assert run_block([str(folder.path), "adverts.parse"]) == 1
        assert capsys.readouterr().err == "Spark was reached\n"
    ids[topic] = "c"
    assert run_block([str(folder.path), "adverts.parse"]) == 1
    said = capsys.readouterr().err
    assert f"adverts.parse: {topic} at broker:9092: not the topics on which {folder.path} began" in said
    assert f"end `tidecast job up adverts`, then:\n  mv {folder.path} {folder.path}.damaged-1\n" in said


def test_a_block_has_as_many_executors_as_its_placement_says(tmp_path):
    settings = load(contracts=tmp_path)
    contract, scaled = contract_of(settings, ADVERTS, applications_of(ADVERTS, TWO)[1], print)
    assert (contract.job, contract.executors.min, contract.executors.max) == ("adverts.join", 3, 3)
    assert contract.latency_target_s == ADVERTS.target_s and not scaled


def test_a_block_with_a_contract_is_scaled_within_it_and_begins_as_it_was_placed(tmp_path):
    settings, folder = load(contracts=tmp_path), JobFolder(tmp_path / "job")
    folder.begin(ROOT / "configs" / "topologies" / "adverts.yaml", TWO)
    first, second = applications_of(ADVERTS, TWO)
    assert [path.name for path in write_contracts(settings, folder)] == ["adverts.parse.yaml", "adverts.join.yaml"]
    contract, scaled = contract_of(settings, ADVERTS, second, print)
    assert scaled and (contract.executors.min, contract.executors.max) == (1, 4)
    assert contract.latency_target_s == pytest.approx(ADVERTS.target_s / 2) and contract.error_budget == 0.05
    bounds = [starting_contract(contract, placed, room).executors for placed, room in ((3, 4), (3, 2), (9, 9))]
    assert [(one.min, one.max) for one in bounds] == [(3, 4), (2, 2), (4, 4)]
    (tmp_path / "adverts.parse.yaml").write_text("job: adverts.parse\nexecutors: {min: 2, max: 2}\n")
    assert write_contracts(settings, folder) == []
    mine = contract_of(settings, ADVERTS, first, print)[0]
    assert (starting_contract(mine, 1, 4).executors.min, mine.executors.max) == (2, 2)


def test_the_target_is_shared_anew_where_queries_move_and_a_contract_that_was_edited_stays(tmp_path):
    settings, folder, said = load(contracts=tmp_path), JobFolder(tmp_path / "job"), []
    folder.begin(ROOT / "configs" / "topologies" / "adverts.yaml", TWO)
    shares = TargetShares(settings, folder, said.append)
    shares.step()  # none has a contract yet
    parse, join = write_contracts(settings, folder)
    slower = replace(TWO, blocks=(TWO.blocks[0], replace(TWO.blocks[1], latency_s=3 * TWO.blocks[0].latency_s)))
    folder.want(slower)
    os.utime(folder.path / "placement.json", (1, 1))
    shares.step()
    targets = [load_contract(file.stem, tmp_path).latency_target_s for file in (parse, join)]
    assert targets == [ADVERTS.target_s / 4, 3 * ADVERTS.target_s / 4]
    assert said == ["adverts.parse: 2 s of 8, after 4", "adverts.join: 6 s of 8, after 4"]
    assert "its share of 8 s" in parse.read_text() and load_contract("adverts.join", tmp_path).executors.max == 4
    join.write_bytes(join.read_bytes() + b"# mine \xff\n")
    folder.want(TWO)
    os.utime(folder.path / "placement.json", (2, 2))
    shares.step()
    shares.step()
    assert load_contract("adverts.parse", tmp_path).latency_target_s == ADVERTS.target_s / 2 and len(said) == 3
    assert join.read_bytes().endswith(b"# mine \xff\n")


def test_a_contract_that_is_wrong_is_said_and_nobody_scales_by_it(tmp_path):
    settings, said = load(contracts=tmp_path), []
    (tmp_path / "adverts.join.yaml").write_text("job: adverts.join\nlatency_target_s: -1\n")
    contract, scaled = contract_of(settings, ADVERTS, applications_of(ADVERTS, TWO)[1], said.append)
    assert not scaled and contract.executors.max == 3 and "latency_target_s" in said[0]


@pytest.mark.parametrize("target_s", [0.2, 8.0])
def test_written_contracts_can_be_read_whatever_is_promised(tmp_path, target_s):
    file = tmp_path / "adverts.yaml"
    text = (ROOT / "configs" / "topologies" / "adverts.yaml").read_text()
    file.write_text(text.replace("target_s: 8", f"target_s: {target_s}\nquantile: 0.99999"))
    folder, settings = JobFolder(tmp_path / "job"), load(contracts=tmp_path / "contracts")
    folder.begin(file, TWO)
    for made in write_contracts(settings, folder):
        assert load_contract(made.stem, made.parent).latency_target_s >= ADVERTS.overhead_s


def test_blocks_of_one_cluster_leave_each_other_an_executor():
    both = replace(TWO, blocks=tuple(replace(block, cluster="west") for block in TWO.blocks))
    assert [most_executors(ADVERTS, both, number, "west") for number in (0, 1)] == [3, 3]
    assert [most_executors(ADVERTS, TWO, number, cluster) for number, cluster in ((0, "east"), (1, "west"))] == [4, 4]
    few = ADVERTS.model_copy(update={"partitions": 2})
    assert [most_executors(few, TWO, number, cluster) for number, cluster in ((0, "east"), (1, "west"))] == [2, 2]
    assert most_executors(ADVERTS, TWO, 0, "west") == 3 and most_executors(ADVERTS, TWO, 0, "west", lambda at: 3) == 1
    heavy = ADVERTS.model_copy(update={"clusters": {
        name: one.model_copy(update={"memory_gb": 0.1}) for name, one in ADVERTS.clusters.items()
    }})  # fmt: skip
    assert most_executors(heavy, TWO, 1, "west") == 0


def test_a_contract_of_executors_of_another_size_than_the_cluster_s_is_said_and_nobody_scales_by_it(tmp_path):
    settings, said = load(contracts=tmp_path), []
    (tmp_path / "adverts.join.yaml").write_text("job: adverts.join\nexecutors: {max: 2, cores: 2}\n")
    second = applications_of(ADVERTS, TWO)[1]
    contract, scaled = contract_of(settings, ADVERTS, second, said.append)
    assert not scaled and (contract.executors.max, contract.executors.cores) == (3, 1)
    assert "executors.cores=2, but executor_cores=1 of west" in said[0]
    (tmp_path / "adverts.join.yaml").write_text("job: adverts.join\nexecutors: {max: 2, cores: 1}\n")
    assert contract_of(settings, ADVERTS, second, said.append)[1] and len(said) == 1


def test_no_contract_is_written_of_a_query_that_may_run_where_executors_have_other_cores(tmp_path):
    stated = (ROOT / "configs" / "topologies" / "adverts.yaml").read_text()
    wide = stated.replace("price: 0.6", "price: 0.6, executor_cores: 2")
    settings, folder = load(contracts=tmp_path / "contracts"), JobFolder(tmp_path / "job")
    file = tmp_path / "adverts.yaml"
    file.write_text(wide)
    folder.begin(file, TWO)
    with pytest.raises(SettingsError, match=r"adverts.parse may run where executors differ \(east: 1, west: 2 cores\)"):
        write_contracts(settings, folder)
    assert not settings.contracts_dir.exists()
    for name, cluster in (("events", "east"), ("project", "west")):
        wide = wide.replace(f"{{of: [{name}], ", f"{{of: [{name}], cluster: {cluster}, ")
    file.write_text(wide)
    folder.begin(file, TWO)
    assert len(write_contracts(settings, folder)) == 2
    assert load_contract("adverts.join", settings.contracts_dir).executors.cores == 2


def test_room_where_executors_are_of_another_size_is_none_for_a_contract(tmp_path):
    settings, west = load(contracts=tmp_path), ADVERTS.clusters["west"]
    wide = west.model_copy(update={"executor_cores": 2, "cores": 40})
    unlike = ADVERTS.model_copy(update={"clusters": {**ADVERTS.clusters, "west": wide}})
    (tmp_path / "adverts.parse.yaml").write_text("job: adverts.parse\nexecutors: {max: 5}\n")
    assert most_cores(settings, unlike, TWO, 0) == 4  # those of east, on which it is
