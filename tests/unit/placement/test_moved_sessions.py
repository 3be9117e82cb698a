"""Moves in which something is killed: what is, in which phase, and what the sessions come to."""

import sys
import threading
import time

import numpy as np
import pytest

from configs.topology import load_topology
from models.placement.elastic.offload import STAY_S, Offload, decide_offload, offload_choice
from models.placement.plan.applications import applications_of
from models.placement.plan.choose import choose_placement
from models.placement.plan.measured import greatest_factor
from models.placement.plan.moved import move_block
from models.placement.plan.shares import most_executors
from models.policy.core.capacity import speed_table
from pipelines.bench.placement.moved import faults, offloaded
from pipelines.bench.placement.moved.faults import FAULTS, MovingQuery, stacks_of
from pipelines.bench.placement.moved.session import FILE, MOVED, draw
from pipelines.bench.placement.moved.summary import UNDISTURBED, longest_gap_s, not_once, summarise_moves
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.tried import TrialError
from pipelines.stack import state
from pipelines.stack.processes import spawn
from pipelines.stack.state import StackState

NAME = "words_moved.split"


class Job:
    """The job in the second phase of its life: real processes that sleep, and the folders that tell of them."""

    def __init__(self, path):
        self.path, self.folder, self.started = path, JobFolder(path / "job"), []
        topology = load_topology(FILE.stem, FILE.parent)
        self.folder.begin(FILE, choose_placement(topology).placement)
        self.up, self.old = self.sleeper("up"), self.sleeper("driver")
        self.begins(self.old)
        self.cluster = self.sleeper("master")
        self.tells("clusters/east", {"master": self.cluster})
        self.processes, self.respawned = {"broker": self.sleeper("broker")}, []
        self.move = MovingQuery(self.folder, NAME, 1, "west", "east", self.up, self)

    def respawn(self, name):
        """The stack's part: which of its processes were started again, once they had ended."""
        self.processes[name].wait(10)
        self.respawned.append(name)

    def sleeper(self, name, *more):
        argv = [sys.executable, "-c", "import time; time.sleep(60)", *more] if more else ["sleep", "60"]
        self.started.append(spawn(name, argv, {}, self.path / f"{name}.log"))
        return self.started[-1]

    def tells(self, where, processes):
        folder = self.folder.path / where
        folder.mkdir(parents=True, exist_ok=True)
        known = {name: (one.pid, one.created) for name, one in processes.items()}
        state.write(folder, StackState("x", 0.0, False, known, {}, {}))

    def begins(self, driver, works=True):
        """An epoch, run by a driver."""
        (block,) = (
            one for one in applications_of(self.folder.topology(), self.folder.wanted()) if MOVED in one.operators
        )
        epoch = self.folder.begin_epoch(block)
        self.tells("stack", {NAME: driver})
        if works:
            epoch.note_work(driver.pid)

    def end(self):
        for one in self.started:
            one.kill()


@pytest.fixture
def job(tmp_path, monkeypatch):
    for name, seconds in (("ENDS_S", 0.05), ("BEGINS_S", 0.05), ("AWAY_S", 0.05), ("PATIENCE_S", 5.0)):
        monkeypatch.setattr(faults, name, seconds)
    made = Job(tmp_path)
    yield made
    made.end()


def soon(act, after_s=0.2):
    def run():
        time.sleep(after_s)
        act()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def living(job):
    return {one.name for one in job.started if one.running()} - {"broker"}


def test_the_driver_that_ends_is_killed(job):
    FAULTS["ending"](job.move)
    assert living(job) == {"up", "master"}


def test_who_moves_it_is_killed_while_the_state_is_copied(job):
    coming = soon((job.folder.newest(NAME).folder.parent / "2.coming").mkdir)
    FAULTS["copying"](job.move)
    coming.join()
    assert living(job) == {"driver", "master"}


def test_a_copy_that_was_over_is_no_copy(job):
    (job.folder.newest(NAME).folder.parent / "2.coming").mkdir()
    job.folder.begin_epoch(job.folder.newest(NAME).block)
    (job.folder.newest(NAME).folder.parent / "2.coming").mkdir()
    with pytest.raises(TrialError, match="too late, its state was copied"):
        FAULTS["copying"](job.move)


def test_the_driver_that_begins_is_killed_unless_it_works(job):
    begins = soon(lambda: job.begins(job.sleeper("second"), works=False))
    FAULTS["beginning"](job.move)
    begins.join()
    assert living(job) == {"up", "driver", "master"}
    begins = soon(lambda: job.begins(job.sleeper("third")))
    with pytest.raises(TrialError, match="worked already"):
        FAULTS["beginning"](job.move)
    begins.join()


def test_the_driver_that_works_is_killed(job):
    begins = soon(lambda: job.begins(job.sleeper("second")))
    assert FAULTS["working"](job.move) == 1
    begins.join()
    assert living(job) == {"up", "driver", "master"}


def test_an_executor_of_the_cluster_to_which_it_went_is_killed(job):
    begins = soon(lambda: job.begins(job.sleeper("second")))
    with pytest.raises(TrialError, match="no executor was there"):
        FAULTS["executor"](job.move)
    begins.join()
    executor = job.sleeper("executor", faults.EXECUTOR)
    job.tells("clusters/east", {"master": job.cluster, "worker": executor})
    begins = soon(lambda: job.begins(job.sleeper("third")))
    assert FAULTS["executor"](job.move) == 1
    begins.join()
    executor.wait(10)
    assert living(job) == {"up", "driver", "second", "third", "master"}


def test_one_that_comes_back_is_wanted_at_home_once_it_worked_elsewhere(job):
    job.folder.want(move_block(job.folder.topology(), job.folder.wanted(), MOVED, "east"))
    begins = soon(lambda: job.begins(job.sleeper("second")))
    assert FAULTS["back"](job.move) == 2
    begins.join()
    assert [one.cluster for one in job.folder.wanted().blocks] == ["west", "west"]


def test_the_cluster_to_which_it_goes_is_killed_when_it_begins_there(job):
    begins = soon(lambda: job.begins(job.sleeper("second"), works=False))
    assert FAULTS["cluster"](job.move) == 2
    begins.join()
    assert living(job) == {"up", "driver", "second"}


def test_the_broker_is_killed_when_it_begins_elsewhere_and_started_again(job):
    begins = soon(lambda: job.begins(job.sleeper("second"), works=False))
    assert FAULTS["broker"](job.move) == 1
    begins.join()
    assert job.respawned == ["broker"] and living(job) == {"up", "driver", "second", "master"}


def test_a_phase_that_never_comes_is_told_with_the_last_lines_of_the_job(job, monkeypatch):
    monkeypatch.setattr(faults, "PATIENCE_S", 0.1)
    with pytest.raises(TrialError, match=r"its driver was waited for in vain(.|\n)*up\.log"):
        FAULTS["working"](job.move)


def test_the_services_of_a_job_are_those_of_its_drivers_and_of_each_cluster(job):
    assert [one.relative_to(job.folder.path).as_posix() for one in stacks_of(job.folder)] == ["stack", "clusters/east"]


def test_the_plan_moves_a_loaded_query_of_its_own_and_there_is_room_for_it():
    topology = load_topology(FILE.stem, FILE.parent)
    placement = choose_placement(topology).placement
    counts = placement.blocks[1]
    assert [one.operators for one in placement.blocks] == [("parse",), ("split", "count")]
    assert counts.cluster == "west" and counts.executors == 2 and 0.7 <= 1 / greatest_factor(topology, placement) < 0.9
    assert move_block(topology, placement, MOVED, "east").blocks[1].cluster == "east"


def test_words_of_lines_are_rare():
    words = draw(3, 12.0, np.random.default_rng(0)).line.split()
    assert len(words) == len({*words}) == 70


def test_the_longest_time_without_a_result_begins_with_the_move():
    assert longest_gap_s([1.0, 30.0, 9.0, 14.0, 33.0], since_s=10.0) == 16.0
    assert longest_gap_s([30.0], since_s=10.0) == 20.0
    assert longest_gap_s([1.0], since_s=10.0) == 0.0


def test_records_are_through_once_each():
    assert not_once([1, 2, 3], [3, 1, 2]) == 0
    assert not_once([1, 2, 3], [3, 3, 4]) == 4


def test_sessions_are_added_up_the_undisturbed_one_told_apart():
    one = {"wrong": 0, "windows": 10, "between": 1, "keys": 7, "load": 0.75, "gap_s": 20.0, "done_s": 5.0}
    found = summarise_moves({UNDISTURBED: one, "ending": {**one, "wrong": 2, "keys": 5, "gap_s": 30.0}}, missing=4)
    assert found == {
        "n": 2, "missing": 4, "wrong": 2, "windows": 20, "between": 2, "keys": 5, "load": 0.75,
        "gap_s": {"undisturbed": 20.0, "killed": 30.0}, "done_s": {"undisturbed": 5.0, "killed": 5.0},
    }  # fmt: skip
    assert summarise_moves({}, missing=6)["keys"] is None


def test_the_undisturbed_session_is_one_of_the_faults():
    assert UNDISTURBED in FAULTS


def test_in_the_session_of_an_off_load_the_rule_goes_with_many_lines_and_comes_back_with_few():
    topology = load_topology(offloaded.FILE.stem, offloaded.FILE.parent)
    placement = choose_placement(topology).placement
    blocks = applications_of(topology, placement)
    assert [(one.cluster, one.executors) for one in blocks] == [("west", 1), ("west", 1)]
    (number,) = (at for at, one in enumerate(blocks) if offloaded.SCALED in one.operators)
    rooms = [most_executors(topology, placement, number, one) for one in ("west", "east")]
    assert rooms == [2, 3]
    speeds = speed_table(rooms[1], 1, topology.partitions)
    assert speeds[3] > speeds[2], "the third executor would find no task, so none is decided"
    rps = topology.sources["lines"].rps
    a_line_s = topology.operators["split"].selectivity * topology.operators["count"].work_ms / 1000
    assert offloaded.TIMES * rps * a_line_s > speeds[2] and rps * a_line_s < speeds[1]

    def later(before, now_s, rps, needed, overhead_s):
        told = {"per_record_s": a_line_s, "arrival_rps": rps, "overhead_s": overhead_s}
        for _ in range(3):
            before = decide_offload(now_s, before, offload_choice(topology, rooms, "west", "east", needed, told))
        return before

    for overhead_s in (1.0, topology.overhead_s, 5.0):  # what the autoscaler may have learned
        assert not later(Offload(), 0.0, rps, 1, overhead_s).there
        gone = later(Offload(), 0.0, offloaded.TIMES * rps, 3, overhead_s)
        assert gone.there
        assert later(gone, STAY_S / 2 - 1, rps, 1, overhead_s).there
        assert not later(gone, offloaded.BACK_S, rps, 1, overhead_s).there
