"""A quota of cores over all queries of a job: in plans, in what running queries may have, and as a pool."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs.contract import read_contracts
from configs.errors import SettingsError
from configs.pool import read_pools
from configs.settings import ROOT, load
from configs.topology import load_topology
from models.placement.learned.queries import QuerySpace
from models.placement.plan.choose import PlanError, choose_placement
from models.placement.plan.measured import Measure
from models.placement.plan.moved import move_block
from models.placement.plan.shares import most_executors
from models.placement.rates import rates_of
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.scaled.contracts import write_contracts
from pipelines.placement.scaled.quota_pool import write_quota_pool
from tests.unit.placement.test_block_application import ADVERTS
from tests.unit.placement.test_block_application import TWO as PLACED
from tests.unit.placement.test_plan import CHAIN, TWO, topology

STATED = (ROOT / "configs" / "topologies" / "adverts.yaml").read_text()


def cores(job, placement):
    return sum(one.executors * job.clusters[one.cluster].executor_cores for one in placement.blocks)


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 12), st.sampled_from([1, 2]), st.floats(0.5, 4), st.floats(1.5, 8))
def test_no_plan_exceeds_it_and_what_is_refused_is_told_the_least_that_is_enough(quota, each, factor, target_s):
    clusters = {name: {**one, "executor_cores": each} for name, one in TWO.items()}
    job = topology(CHAIN, clusters, quota_cores=max(quota, each), target_s=target_s)
    free = job.model_copy(update={"quota_cores": None})
    try:
        plan = choose_placement(job, factor)
    except PlanError as error:
        assert f"quota_cores={max(quota, each)}: all queries together" in str(error)
        fewest = int(str(error).split("State quota_cores: ")[1].split()[0])
        assert choose_placement(job.model_copy(update={"quota_cores": fewest}), factor)
        with pytest.raises(PlanError):
            choose_placement(job.model_copy(update={"quota_cores": fewest - 1}), factor)
        return
    for one in (plan.placement, *(other for other, _ in plan.others)):
        assert cores(job, one) <= max(quota, each)
    if cores(job, choose_placement(free, factor).placement) <= max(quota, each):
        assert plan.placement == choose_placement(free, factor).placement


def test_what_a_network_may_propose_and_a_query_may_have_keeps_it():
    job = topology(CHAIN, TWO, quota_cores=5)
    blocks = (("parse",), ("join",), ("count",))
    space = QuerySpace(Measure(job, rates_of(job)), blocks)
    start = space.measure.given(blocks, ["east", "west", "west"], [1, 2, 1])
    assert space.measure.given(blocks, ["east", "west", "west"], [2, 3, 1]) is None
    counts = space.counts(start)
    most = space.farthest(counts).reshape(2, 3, 2).max(axis=(1, 2))
    assert most[0] == 1 and all(cores(job, space.placement(one)) <= 5 for one in space.every(10**6))
    assert [most_executors(job, start, number, "east") for number in range(3)] == [3, 3, 3]
    assert most_executors(job, start, 0, "east", lambda at: start.blocks[at].executors) == 2


def test_a_move_to_larger_executors_that_would_exceed_it_is_refused_by_name():
    wide = {**TWO, "west": {**TWO["west"], "executor_cores": 2}}
    job = topology(CHAIN, wide, quota_cores=5)
    blocks = (("parse", "join"), ("count",))
    start = Measure(job, rates_of(job)).given(blocks, ["east", "east"], [3, 1])
    assert move_block(job, start, "count", "west").blocks[1].cluster == "west"
    with pytest.raises(PlanError, match=r"quota_cores=5: 3 executors on west have 2 cores each, .* 7 then"):
        move_block(job, start, "join", "west")


def test_a_move_to_larger_executors_than_there_are_tasks_for_is_refused_by_the_partitions():
    wide = {**TWO, "west": {**TWO["west"], "cores": 20, "executor_cores": 3}}
    job = topology(CHAIN, wide, partitions=8)
    start = Measure(job, rates_of(job)).given((("parse", "join"), ("count",)), ["east", "east"], [3, 1])
    with pytest.raises(
        PlanError, match=r"partitions=8: 3 executors on west have 3 cores each, .* parse\+join has tasks"
    ):
        move_block(job, start, "join", "west")


def begun(tmp_path, quota="quota_cores: 5\n", placement=PLACED):
    file = tmp_path / "adverts.yaml"
    file.write_text(STATED + quota)
    folder, live = JobFolder(tmp_path / "job"), load(contracts=tmp_path / "contracts")
    folder.begin(file, placement)
    return live, folder


def test_a_quota_below_one_executor_is_refused_with_its_line(tmp_path):
    wide = STATED.replace("cores: 4,", "cores: 4, executor_cores: 2,")
    (tmp_path / "adverts.yaml").write_text(wide + "quota_cores: 1\n")
    line = STATED.count("\n") + 1
    with pytest.raises(SettingsError, match=rf"adverts.yaml, line {line}: quota_cores=1: one executor has 2 cores"):
        load_topology("adverts", tmp_path)


def test_contracts_leave_the_other_queries_an_executor_and_a_pool_keeps_the_quota(tmp_path):
    live, folder = begun(tmp_path)
    write_contracts(live, folder)
    file = live.pools_dir / "adverts.yaml"
    assert write_quota_pool(live, folder) == [str(file)] and write_quota_pool(live, folder) == []
    contracts = read_contracts(live.contracts_dir)[0]
    pools, wrong = read_pools(live.pools_dir, contracts)
    assert not wrong and pools["adverts"].cores == 5 and [*pools["adverts"].jobs] == ["adverts.parse", "adverts.join"]
    assert [one.executors.max for one in contracts.values()] == [4, 4]


def test_it_follows_the_topology_until_somebody_edits_it(tmp_path):
    live, folder = begun(tmp_path)
    write_contracts(live, folder)
    file = live.pools_dir / "adverts.yaml"
    write_quota_pool(live, folder)
    begun(tmp_path, "quota_cores: 6\n")
    assert write_quota_pool(live, folder) == [str(file)] and "cores: 6" in file.read_text()
    begun(tmp_path, "")
    assert "taken away" in write_quota_pool(live, folder)[0] and not file.exists()
    assert write_quota_pool(live, folder) == []
    begun(tmp_path)
    write_quota_pool(live, folder)
    file.write_text(file.read_text().replace("cores: 5", "cores: 7"))
    assert "edited, and counts as it is, with 7 cores" in write_quota_pool(live, folder)[0]
    begun(tmp_path, "")
    assert write_quota_pool(live, folder) == [] and "cores: 7" in file.read_text()


def test_an_edited_pool_without_one_of_the_queries_is_refused_by_name(tmp_path):
    live, folder = begun(tmp_path)
    write_contracts(live, folder)
    file = live.pools_dir / "adverts.yaml"
    live.pools_dir.mkdir()
    stated = (live.contracts_dir / "adverts.join.yaml").read_text()
    (live.contracts_dir / "rides.yaml").write_text(stated.replace("adverts.join", "rides"))
    for jobs, missing in (("{adverts.parse: {}}", "adverts.join"), ("{rides: {}}", "adverts.parse, adverts.join")):
        file.write_text(pool := f"name: adverts\ncores: 5\njobs: {jobs}\n")
        with pytest.raises(SettingsError, match=rf"adverts.yaml: {missing} not among .* nothing holds quota_cores=5"):
            write_quota_pool(live, folder)
        assert file.read_text() == pool
    file.unlink()
    assert write_quota_pool(live, folder) == [str(file)]


def test_contracts_that_need_more_and_queries_of_another_pool_are_refused_by_name(tmp_path):
    live, folder = begun(tmp_path)
    write_contracts(live, folder)
    join = live.contracts_dir / "adverts.join.yaml"
    text = join.read_text()
    join.write_text(text.replace("min: 1", "min: 5").replace("max: 4", "max: 5"))
    line = STATED.count("\n") + 1
    with pytest.raises(SettingsError, match=rf"adverts.yaml, line {line}: quota_cores=5: .* come to 6 cores"):
        write_quota_pool(live, folder)
    assert not live.pools_dir.exists()
    join.write_text(text)
    live.pools_dir.mkdir()
    mine = live.pools_dir / "mine.yaml"
    mine.write_text("name: mine\ncores: 4\njobs: {adverts.join: {}}\n")
    for _ in range(2):
        with pytest.raises(SettingsError, match=r"mine.yaml: adverts.join is in this pool"):
            write_quota_pool(live, folder)
        assert [*live.pools_dir.iterdir()] == [mine]
    mine.unlink()
    write_quota_pool(live, folder)
    mine.write_text("name: mine\ncores: 4\njobs: {adverts.join: {}}\n")
    with pytest.raises(SettingsError, match=r"adverts.yaml: adverts.join is in pool mine, too"):
        write_quota_pool(live, folder)


def test_a_job_without_a_quota_has_the_rooms_that_it_had():
    quota = ADVERTS.model_copy(update={"quota_cores": 4})
    assert [most_executors(one, PLACED, 1, "west") for one in (ADVERTS, quota)] == [4, 3]
