"""A job's blocks: where they run, what happens when one ends, and when it is wanted elsewhere."""

import os
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from configs.errors import SettingsError
from configs.settings import ROOT, load
from configs.topology import load_topology
from models.placement.plan.applications import applications_of
from models.placement.plan.choose import PlanError
from models.placement.plan.measured import Block, Placement
from models.placement.plan.moved import move_block, place_block
from pipelines.placement import job_folder, running
from pipelines.placement import supervisor as supervising
from pipelines.placement.begun import note_tasks
from pipelines.placement.clusters import JobClusters
from pipelines.placement.job_folder import JobFileError, JobFolder, checkpoint_of
from pipelines.placement.observed import observe_trips
from pipelines.placement.running import JobRunsError
from pipelines.placement.supervisor import Supervisor
from pipelines.placement.watched_block import STEADY_S
from pipelines.stack import kept_log, state
from pipelines.stack.began import began_s
from pipelines.stack.state import StackState
from tests.fakes.clock import clock_with

FILE = ROOT / "configs" / "topologies" / "adverts.yaml"
FIRST, SECOND = "adverts.parse", "adverts.join"
TWO = Placement((
    Block(("parse", "views", "project"), "east", 1, 1.0, 1.0), Block(("join", "count"), "east", 2, 1.0, 1.0),
), 3.0, 2.0, True)  # fmt: skip


class FakeProcess:
    def __init__(self, pid):
        self.pid, self.alive = pid, True

    def running(self):
        return self.alive

    def wait(self):
        return 1

    def last_lines(self):
        return "no more was heard of it"


class FakeHome:
    """Runs nothing; what is spawned begins unless its cluster is away, and writes its state."""

    def __init__(self):
        self.processes, self.spawned, self.away, self.slow = {}, [], set(), set()
        self.beside = []

    def spawn(self, name, argv, env=None):
        epoch = JobFolder(type(ROOT)(argv[-2])).newest(argv[-1])
        cluster = env["TIDECAST_SPARK__MASTER"].removeprefix("spark://")
        self.spawned.append((name, cluster, epoch.number))
        self.beside.append({other for other, one in self.processes.items() if one.alive and other != name})
        self.processes[name] = FakeProcess(len(self.spawned))
        if cluster not in self.away:
            state = checkpoint_of(epoch)
            state.mkdir(exist_ok=True)
            with (state / "ran").open("a") as file:
                file.write(f"{cluster} ")
            if name not in self.slow:
                epoch.note_work(self.processes[name].pid)
        return self.processes[name]

    def end(self, name, grace_s=8.0):
        self.processes[name].alive = False
        return 0


class Job:
    """The adverts job in two blocks on east."""

    def __init__(self, path):
        self.folder, self.home, self.said, self.now = JobFolder(path), FakeHome(), [], 0.0
        self.folder.begin(FILE, TWO)
        masters = {name: f"spark://{name}" for name in ("east", "west")}
        self.supervisor = Supervisor(self.folder, self.home, masters, self.said.append)

    def sleep(self, seconds):
        self.now += seconds

    def wants(self, operator, cluster):
        self.folder.want(move_block(self.folder.topology(), self.folder.wanted(), operator, cluster))

    def looks(self, times=3):
        """Some looks, a second apart."""
        for _ in range(times):
            self.supervisor.look()
            self.now += 1

    def batch(self, name, number, done=True):
        """A batch that a query has planned, and done."""
        for log in ("offsets", "commits")[: 1 + done]:
            file = checkpoint_of(self.folder.newest(name)) / log / str(number)
            file.parent.mkdir(exist_ok=True)
            file.touch()

    def state(self, name):
        return (checkpoint_of(self.folder.newest(name)) / "ran").read_text().split()


@pytest.fixture
def job(tmp_path, monkeypatch):
    made = Job(tmp_path / "adverts")
    monkeypatch.setattr(supervising, "time", clock_with(monotonic=lambda: made.now, sleep=made.sleep))
    return made


def test_blocks_begin_upstream_first_and_a_look_changes_nothing_then(job):
    job.supervisor.start()
    job.looks()
    assert job.home.spawned == [(FIRST, "east", 1), (SECOND, "east", 1)]


def test_a_block_that_is_wanted_elsewhere_goes_there_with_its_state(job):
    job.supervisor.start()
    job.wants("count", "west")
    job.looks()
    assert job.home.spawned[2:] == [(SECOND, "west", 2)] and job.state(SECOND) == ["east", "west"]
    assert "goes from east to west" in job.said[-2] and "runs on west, epoch 2" in job.said[-1]
    job.wants("join", "east")
    job.looks()
    assert job.home.spawned[3:] == [(SECOND, "east", 3)] and job.state(SECOND) == ["east", "west", "east"]


def test_a_block_begins_anew_with_other_executors_unless_the_autoscaler_decides_these(job):
    job.supervisor.start()
    job.folder.newest(SECOND).note_scaled(True)
    first, second = TWO.blocks
    job.folder.want(replace(TWO, blocks=(replace(first, executors=2), replace(second, executors=1))))
    job.looks(6)
    assert job.home.spawned[2:] == [(FIRST, "east", 2)] and job.supervisor.settled()
    job.home.processes[SECOND].alive = False
    job.looks()
    assert job.home.spawned[3:] == [(SECOND, "east", 1)] and job.supervisor.settled()
    job.wants("count", "west")
    job.looks(6)
    assert job.home.spawned[4:] == [(SECOND, "west", 2)]


def test_a_block_that_does_not_begin_elsewhere_goes_back_to_where_it_was(job):
    job.supervisor.start()
    job.home.away.add("west")
    job.wants("count", "west")
    job.looks(95)
    assert [block.cluster for block in job.folder.wanted().blocks] == ["east", "east"]
    assert any("does not begin on west, and goes back to east" in line for line in job.said)
    assert job.home.spawned[2:] == [(SECOND, "west", 2), (SECOND, "east", 3)]
    assert job.state(SECOND) == ["east", "east"] and job.home.processes[SECOND].running()


def test_a_first_batch_at_which_executors_are_is_waited_for_and_keeps_no_other_query_waiting(job):
    job.home.slow.add(FIRST)

    def works_on(seconds):
        note_tasks(job.folder.newest(FIRST))
        job.sleep(seconds)

    supervising.time.sleep = works_on
    job.supervisor.start()
    assert [name for name, _, _ in job.home.spawned] == [FIRST, SECOND]
    assert f"{FIRST}: is at its first batch on east, epoch 1" in job.said[0] and not job.supervisor.settled()
    process = job.home.processes[FIRST]
    for _ in range(400):  # as long as a batch may take that an outage has left, or that was planned for more executors
        works_on(1)
        job.supervisor.look()
    assert process.running() and len(job.home.spawned) == 2
    job.folder.newest(FIRST).note_work(process.pid)
    job.looks(1)
    assert f"{FIRST}: runs on east, epoch 1" in job.said[-1] and job.supervisor.settled()


def test_one_whose_executors_have_gone_from_its_first_batch_goes_back_all_the_same(job):
    job.supervisor.start()
    job.home.slow.add(SECOND)
    job.wants("count", "west")
    job.looks(2)
    for _ in range(100):
        note_tasks(job.folder.newest(SECOND))
        job.looks(1)
    assert job.home.spawned[2:] == [(SECOND, "west", 2)]
    job.home.slow.clear()
    job.looks(95)
    assert job.home.spawned[3:] == [(SECOND, "east", 3)] and job.home.processes[SECOND].running()
    assert any("for the last 91 s no executor was at work" in line for line in job.said)


def test_one_that_worked_and_has_no_executors_is_told_once_and_again_once_it_has(job):
    job.supervisor.start()
    note, told = job.folder.newest(FIRST).folder / "without", len(job.said)
    note.touch()
    job.looks()
    assert len(job.said) == told  # executors may come and go
    os.utime(note, (1.0, 1.0))
    job.looks()
    (line,) = job.said[told:]
    assert line.startswith(f"{FIRST}: on east it has had no executor for 3 minutes, and does nothing.")
    note.unlink()
    job.looks()
    assert job.said[told + 1 :] == [f"{FIRST}: on east it has executors again"]


def test_one_that_had_nothing_to_read_elsewhere_and_fails_at_its_first_batch_goes_back(job):
    job.supervisor.start()
    job.batch(SECOND, 0)
    job.wants("count", "west")
    job.looks(2)
    assert job.supervisor.settled()
    job.batch(SECOND, 1, done=False)
    job.home.processes[SECOND].alive = False
    job.looks(3)
    assert job.home.spawned[2:] == [(SECOND, "west", 2), (SECOND, "east", 3)] and job.supervisor.settled()
    assert any("and goes back to east. It had nothing to read there, and ended at its" in line for line in job.said)
    job.home.processes[SECOND].alive = False  # also where it worked: it stays there
    job.looks(5)
    assert job.home.spawned[4:] == [(SECOND, "east", 3)] and job.supervisor.settled()


@pytest.mark.parametrize(("done", "ended_at"), [(1, 2), (1, None), (None, None)])
def test_one_that_has_done_a_batch_elsewhere_or_ends_while_idle_is_started_again_there(job, done, ended_at):
    job.supervisor.start()
    job.batch(SECOND, 0)
    job.wants("count", "west")
    job.looks(2)
    for number in [number for number in (done, ended_at) if number is not None]:
        job.batch(SECOND, number, done=number == done)
    job.home.processes[SECOND].alive = False
    job.looks(3)
    assert job.home.spawned[2:] == [(SECOND, "west", 2)] * 2 and job.supervisor.settled()


def test_one_that_has_done_no_batch_anywhere_is_tried_again_where_it_is(job):
    job.supervisor.start()
    job.wants("count", "west")
    job.looks(2)
    job.batch(SECOND, 0, done=False)
    job.home.processes[SECOND].alive = False
    job.looks(3)
    assert job.home.spawned[2:] == [(SECOND, "west", 2)] * 2 and job.supervisor.settled()


def test_one_that_is_wanted_on_a_cluster_that_the_job_does_not_have_goes_back_and_the_others_run_on(job):
    job.supervisor.start()
    first, second = job.folder.wanted().blocks
    job.folder.want(replace(TWO, blocks=(first, replace(second, cluster="north"))))
    job.looks(5)
    assert job.home.spawned[2:] == [(SECOND, "east", 3)] and job.home.processes[FIRST].running()
    (line,) = (line for line in job.said if "goes back" in line)
    assert "does not begin on north, and goes back to east. The job has no cluster 'north'; it has east, west." in line


def test_one_that_is_wanted_elsewhere_while_the_job_begins_goes_there_at_once(job):
    first, second = TWO.blocks
    job.folder.want(replace(TWO, blocks=(first, replace(second, cluster="west"))))
    job.home.away.add("west")

    def moved(seconds):
        job.sleep(seconds)
        if SECOND in job.home.processes:
            job.folder.want(TWO)

    supervising.time.sleep = moved
    job.supervisor.start()
    assert job.home.spawned == [(FIRST, "east", 1), (SECOND, "west", 1), (SECOND, "east", 2)]
    assert job.now < 5 and not any("does not begin" in line for line in job.said)


def test_one_that_is_wanted_elsewhere_while_the_one_before_it_begins_begins_there(job):
    job.home.slow.add(FIRST)

    def moved(seconds):
        job.sleep(seconds)
        job.wants("count", "west")
        job.folder.newest(FIRST).note_work(job.home.processes[FIRST].pid)

    supervising.time.sleep = moved
    job.supervisor.start()
    assert job.home.spawned == [(FIRST, "east", 1), (SECOND, "west", 1)]


def test_a_job_begins_also_where_one_is_to_make_room_that_waits_for_another_to_leave(job):
    first, second = (replace(one, executors=4) for one in TWO.blocks)
    job.folder.want(replace(TWO, blocks=(first, replace(second, cluster="west"))))
    job.home.slow.add(SECOND)

    def exchanged(seconds):
        job.sleep(seconds)
        assert job.now < 100, "the start does not end"
        if SECOND in job.home.processes:
            job.folder.want(replace(TWO, blocks=(replace(first, cluster="west"), second)))

    supervising.time.sleep = exchanged
    job.supervisor.start()
    job.home.slow.clear()
    job.looks(9)
    assert job.supervisor.settled()
    assert job.home.spawned[2:] == [(SECOND, "east", 2), (FIRST, "west", 2)]


def test_one_that_is_given_up_goes_to_where_it_is_wanted_by_now(job):
    job.supervisor.start()
    job.home.away.add("west")
    job.wants("count", "west")
    job.looks(5)
    ends, first, second = job.home.end, *TWO.blocks

    def ends_while_a_plan_is_applied(name, grace_s=8.0):
        job.folder.want(replace(TWO, blocks=(first, replace(second, executors=3))))
        return ends(name, grace_s)

    job.home.end = ends_while_a_plan_is_applied
    job.looks(95)
    assert job.folder.wanted().blocks[1].executors == 3 and job.folder.newest(SECOND).block.executors == 3
    assert job.home.spawned[2:] == [(SECOND, "west", 2), (SECOND, "east", 3)] and job.supervisor.settled()


def test_one_that_is_wanted_at_a_third_place_meanwhile_knows_its_way_home(job):
    job.supervisor.start()
    job.home.away |= {"west", "north"}
    job.wants("count", "west")
    job.looks(30)
    wanted = job.folder.wanted()
    job.supervisor._masters["north"] = "spark://north"
    first, second = wanted.blocks
    job.folder.want(replace(wanted, blocks=(first, replace(second, cluster="north"))))
    job.looks(95)
    assert [where for _, where, _ in job.home.spawned[2:]] == ["west", "north", "east"]
    assert job.home.processes[SECOND].running()


def test_two_that_exchange_full_clusters_make_room_for_each_other(job):
    first, second = TWO.blocks
    job.folder.want(replace(TWO, blocks=(replace(first, executors=4), replace(second, cluster="west", executors=4))))
    job.supervisor.start()
    job.folder.want(replace(TWO, blocks=(
        replace(first, cluster="west", executors=4), replace(second, cluster="east", executors=4),
    )))  # fmt: skip
    job.looks(6)
    assert job.home.spawned[2:] == [(SECOND, "east", 2), (FIRST, "west", 2)]
    assert job.home.beside[2:] == [set(), {SECOND}] and all(one.alive for one in job.home.processes.values())
    assert sum("has ended on east, where another query is to come first" in line for line in job.said) == 1
    assert job.supervisor.settled() and job.state(FIRST) == ["east", "west"]


def test_two_make_room_for_each_other_also_where_one_is_to_move_that_does_not_run(job):
    views, parts = "adverts.views", (("parse",), ("views", "project"), ("join", "count"))
    first, second, third = (
        replace(TWO.blocks[0], operators=names, cluster=cluster, executors=executors)
        for names, cluster, executors in zip(parts, ("east", "west", "east"), (1, 4, 4), strict=True)
    )
    job.folder.want(replace(TWO, blocks=(first, second, third)))
    job.supervisor.start()
    assert job.supervisor.settled()
    job.home.processes[FIRST].alive = False
    job.folder.want(replace(TWO, blocks=(
        replace(first, cluster="west"), replace(second, cluster="east"), replace(third, cluster="west"),
    )))  # fmt: skip
    job.looks(9)
    assert job.supervisor.settled() and all(one.alive for one in job.home.processes.values())
    assert (views, "east", 2) in job.home.spawned and (SECOND, "west", 2) in job.home.spawned


def test_one_waits_for_another_that_is_to_leave_a_full_cluster(job):
    first, second = TWO.blocks
    job.folder.want(replace(TWO, blocks=(replace(first, executors=1), replace(second, cluster="west", executors=4))))
    job.supervisor.start()
    job.folder.want(replace(TWO, blocks=(
        replace(first, cluster="west", executors=1), replace(second, cluster="east", executors=3),
    )))  # fmt: skip
    job.looks(6)
    assert job.home.spawned[2:] == [(SECOND, "east", 2), (FIRST, "west", 2)]
    assert job.home.beside[2:] == [{FIRST}, {SECOND}]  # there was room for an executor: nobody had to end


def test_one_waits_for_another_that_gives_executors_up_on_a_full_cluster(job):
    first, second = TWO.blocks
    full = replace(second, cluster="west", executors=4)
    job.folder.want(replace(TWO, blocks=(first, full)))
    job.supervisor.start()
    job.folder.want(replace(TWO, blocks=(replace(first, cluster="west"), replace(full, executors=2))))
    job.looks(6)
    assert job.home.spawned[2:] == [(SECOND, "west", 2), (FIRST, "west", 2)]
    assert job.home.beside[2:] == [{FIRST}, {SECOND}] and job.supervisor.settled()
    job.home.processes[SECOND].alive = False
    job.folder.newest(SECOND).note_scaled(True)
    job.folder.want(replace(TWO, blocks=(replace(first, cluster="east"), replace(full, executors=1))))
    job.looks(6)
    assert job.home.spawned[4:] == [(FIRST, "east", 3), (SECOND, "west", 2)]  # as the autoscaler has it


def test_where_it_is_wanted_stays_known_while_that_cannot_be_read(job, monkeypatch):
    job.supervisor.start()
    job.home.processes[FIRST].alive = False

    def unreadable(*_):
        raise OSError("too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(JobFolder, "wanted", unreadable)
        job.looks(2)
    assert job.home.spawned[2:] == [(FIRST, "east", 1)]


def test_a_job_that_was_begun_goes_on_whatever_its_file_has_become(tmp_path):
    settings, said = load(var=tmp_path), []
    folder = running.job_folder(settings, "adverts")
    folder.begin(FILE, TWO)
    file = tmp_path / "adverts.yaml"
    file.write_text("name: [of nobody")
    assert running.begin_job(settings, file, said.append).path == folder.path
    file.unlink()
    assert running.begin_job(settings, file, said.append).wanted() == TWO
    assert len(said) == 2 and all("goes on as it was" in line for line in said)


@pytest.fixture
def begun(tmp_path):
    """Settings and folder of a job that was begun."""
    settings = load(var=tmp_path)
    folder = running.job_folder(settings, "adverts")
    folder.begin(FILE, TWO)
    return settings, folder


@pytest.mark.parametrize("stack", ["clusters/east", "stack"])
def test_a_job_that_runs_is_not_run_twice_and_its_process_is_named(begun, monkeypatch, stack):
    settings, folder = begun
    if stack == "stack":
        monkeypatch.setattr(running, "started_clusters", lambda *_: nullcontext(JobClusters({}, {})))
    held = state.lock(folder.path / stack)
    with pytest.raises(JobRunsError, match=rf"^adverts runs already \(process {os.getpid()}\).*`kill {os.getpid()}`"):
        running.run_blocks(settings, folder)
    held.close()


def test_what_a_job_that_was_killed_has_started_is_waited_for(begun):
    settings, folder = begun
    east = folder.path / "clusters" / "east"
    east.mkdir(parents=True)
    me = os.getpid(), began_s(os.getpid())
    state.write(east, StackState("id", 0.0, False, {"spark-master": me}, {}, {}))
    with pytest.raises(
        JobRunsError, match=r"^adverts: its queries still run. Try again ten seconds after .* was killed"
    ):
        running.run_blocks(settings, folder)


def test_logs_of_blocks_are_bounded_while_they_run(begun, monkeypatch, tmp_path):
    log, looks = tmp_path / f"{FIRST}.log", iter(range(3))
    log.write_text("much")
    home = SimpleNamespace(processes={FIRST: SimpleNamespace(log=log)})
    watched = SimpleNamespace(start=lambda: None, look=lambda: next(looks))
    for name, made in (
        ("started_clusters", nullcontext(JobClusters({}, {}))), ("Stack", nullcontext(home)), ("Supervisor", watched),
        ("ReopenedHelper", SimpleNamespace(step=lambda: None, close=lambda: None)),
    ):  # fmt: skip
        monkeypatch.setattr(running, name, lambda *_, made=made: made)
    monkeypatch.setattr(running, "LOOK_S", 0.0)
    monkeypatch.setattr(kept_log, "LOG_BYTES", 4)
    with pytest.raises(StopIteration):  # after three looks
        running.run_blocks(*begun)
    assert log.read_text() == "" and (tmp_path / f"{FIRST}.old.log").read_text() == "much"


def test_queries_of_a_cluster_with_another_master_begin_anew_there_and_those_elsewhere_run_on(job):
    job.wants("count", "west")
    job.supervisor.start()
    job.looks(1)
    first = job.home.processes[FIRST]
    job.supervisor.end_on("west")
    job.looks(2)
    assert job.home.spawned[2:] == [(SECOND, "west", 1)] and job.state(SECOND) == ["west", "west"]
    assert first.running() and "begins anew on west, which has another master" in job.said[-2]
    assert job.supervisor.settled()


@pytest.mark.parametrize("begins", [False, True])
def test_one_that_has_done_no_batch_yet_stays_on_its_cluster_when_that_has_another_master(job, begins):
    job.supervisor.start()
    job.batch(SECOND, 0)
    if begins:
        job.home.slow.add(SECOND)
    job.wants("count", "west")
    job.looks(2)
    assert job.supervisor.starting() == begins
    job.batch(SECOND, 1, done=False)
    job.home.slow.clear()
    job.supervisor.end_on("west")
    job.looks(3)
    assert job.home.spawned[2:] == [(SECOND, "west", 2)] * 2 and job.supervisor.settled()
    assert job.supervisor._blocks[SECOND].failed == 0


def test_who_cannot_be_told_ends_nothing():
    def full(line):
        raise OSError("no space left on device")

    running._at_will(full)("adverts.parse: runs")


def test_other_blocks_are_looked_after_while_one_does_not_begin(job):
    job.supervisor.start()
    job.home.away.add("west")
    job.wants("count", "west")
    job.looks(5)
    job.home.processes[FIRST].alive = False
    job.looks(2)
    assert job.home.spawned[3:] == [(FIRST, "east", 1)]


def test_a_full_disk_stops_a_move_and_not_the_block(job, monkeypatch):
    job.supervisor.start()
    job.wants("count", "west")

    def full(*_):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(job_folder.shutil, "copytree", full)
        patch.setattr(JobFolder, "want", full)
        job.looks(1)
        assert not list((job.folder.path / "blocks" / SECOND).glob("*.coming"))
        assert "no space left" in job.said[-1] and "tried again in 2 s" in job.said[-1]
    job.looks(4)
    assert job.home.spawned[2:] == [(SECOND, "west", 2)] and job.state(SECOND) == ["east", "west"]


def test_a_driver_that_cannot_be_ended_keeps_its_block_where_it_is(job, monkeypatch):
    job.supervisor.start()
    job.wants("count", "west")

    def hangs(name, grace_s=8.0):
        raise subprocess.TimeoutExpired(name, 10)

    with monkeypatch.context() as patch:
        patch.setattr(job.home, "end", hangs)
        job.looks(3)
    assert len(job.home.spawned) == 2 and job.folder.newest(SECOND).number == 1


def test_what_has_ended_is_started_again_ever_more_rarely_while_it_fails(job):
    job.supervisor.start()
    job.home.processes[FIRST].alive = False
    job.looks(2)
    assert job.home.spawned[2:] == [(FIRST, "east", 1)] and "runs on east" in job.said[-1]
    job.now += STEADY_S
    job.looks(1)
    spawn = job.home.spawn

    def ends_at_once(name, argv, env=None):
        process = spawn(name, argv, env)
        process.alive = name != FIRST
        return process

    job.home.away.add("east")
    job.home.spawn, job.home.processes[FIRST].alive, begin = ends_at_once, False, job.now
    tries = []
    for job.now in range(int(begin), int(begin) + 40):
        before = len(job.home.spawned)
        job.supervisor.look()
        tries += [job.now - int(begin)] * (len(job.home.spawned) - before)
    assert tries == [0, 5, 14, 31]  # at once as it had worked; a look later it has ended, and is waited for 4, 8, 16 s
    job.home.away.clear()
    job.home.spawn, job.now = spawn, begin + 100
    job.looks(2)
    assert job.home.processes[FIRST].running() and job.state(FIRST) == ["east", "east", "east"]


def test_a_query_that_ends_again_and_again_says_why_and_is_started_ever_more_rarely(job):
    job.supervisor.start()
    spawn, since, begun = job.home.spawn, job.now, []

    def works_and_ends(name, argv, env=None):
        process = spawn(name, argv, env)
        process.alive = name != FIRST
        begun.append(job.now - since)
        return process

    job.home.spawn, job.home.processes[FIRST].alive = works_and_ends, False
    job.looks(130)
    assert begun == [0, 4, 10, 20, 38, 72]  # two looks tell that it works and that it has ended; then 2, 4, 8, 16, 32 s
    told = [line for line in job.said if "ended with status 1 on east" in line]
    assert len(told) == 7 and all("no more was heard of it" in line for line in told)
    assert "started again in 0 s" in told[0] and "started again in 60 s" in told[-1]
    job.home.spawn = spawn
    job.looks(30)
    assert job.supervisor.settled()
    job.now += STEADY_S
    job.looks(1)
    job.home.processes[FIRST].alive = False
    job.looks(1)
    assert job.home.processes[FIRST].running() and "started again in 0 s" in job.said[-1]  # that was long ago


def test_whatever_its_number_of_failures_it_is_tried_again(job):
    job.supervisor.start()
    job.home.away.add("east")
    job.home.processes[FIRST].alive = False
    job.supervisor._blocks[FIRST].failed = 5000
    job.looks(200)
    assert "tried again in 60 s" in job.said[-1]


def test_a_supervisor_that_is_started_again_goes_on_with_the_newest_epochs(job):
    job.supervisor.start()
    job.wants("count", "west")
    job.looks()
    again = Supervisor(job.folder, FakeHome(), {name: f"spark://{name}" for name in ("east", "west")}, job.said.append)
    job.wants("count", "east")  # while nobody ran
    again.start()
    assert again._home.spawned == [(FIRST, "east", 1), (SECOND, "east", 3)]


def test_one_that_was_killed_after_a_move_to_a_cluster_that_is_away_goes_back_all_the_same(job):
    job.supervisor.start()
    job.wants("count", "west")
    job.folder.begin_epoch(applications_of(job.folder.topology(), job.folder.wanted())[1])
    home = FakeHome()
    home.away.add("west")
    again = Supervisor(job.folder, home, {name: f"spark://{name}" for name in ("east", "west")}, job.said.append)
    again.start()
    for _ in range(3):
        again.look()
        job.now += 1
    assert home.spawned == [(FIRST, "east", 1), (SECOND, "west", 2), (SECOND, "east", 3)]


def test_an_epoch_that_was_not_made_to_its_end_is_none(job):
    first, second = applications_of(job.folder.topology(), TWO)
    made = job.folder.begin_epoch(first)
    checkpoint_of(made).mkdir()
    (made.folder.parent / "2.coming").mkdir()  # whoever made it was killed
    assert job.folder.newest(FIRST) == made and job.folder.newest(SECOND) is None
    after = job.folder.begin_epoch(first)
    assert after.number == 2 and checkpoint_of(after).is_dir() and job.folder.newest(FIRST) == after
    assert second.name == SECOND


def test_a_moved_state_names_the_schemas_that_went_with_it_and_an_epoch_without_a_block_is_none(job):
    """As Spark notes those of `transformWithState`, by absolute path; it makes a folder anew that such a path names."""
    first, _ = applications_of(job.folder.topology(), TWO)
    epoch = job.folder.begin_epoch(first)
    noted = checkpoint_of(epoch) / "state" / "0" / "_metadata" / "v2" / "0"
    noted.parent.mkdir(parents=True)
    text = 'v2\n{{"stateSchemaFilePaths":["file:{}/state/0/_stateSchema/default/0_a"]}}'
    noted.write_text(text.format(checkpoint_of(epoch)))
    noted.with_name(".0.crc").write_text("of the text before")
    for number in range(2, 7):
        state = checkpoint_of(epoch := job.folder.begin_epoch(first))
        noted = state / "state" / "0" / "_metadata" / "v2" / "0"
        assert epoch.number == number and noted.read_text() == text.format(state)
        assert not noted.with_name(".0.crc").exists()
    noted.write_text(text.format(checkpoint_of(epoch)).replace("/6/", "/1/"))  # of a release that only copied
    (epoch.folder.with_name("2") / "parse.checkpoint").mkdir(parents=True)
    third = job.folder.before(job.folder.before(job.folder.before(epoch)))
    assert third.number == 3 and job.folder.before(third) is None and job.folder.newest(FIRST) == epoch
    third.note_round_trip(0.004)
    assert observe_trips(job.folder) == {"east": 4.0}
    state = checkpoint_of(job.folder.begin_epoch(first))
    assert (state / "state" / "0" / "_metadata" / "v2" / "0").read_text() == text.format(state)
    assert sorted(one.name for one in epoch.folder.parent.iterdir()) == ["4", "5", "6", "7"]


def test_a_moved_state_names_its_schemas_where_they_are_also_through_a_link(tmp_path):
    """A launch names the folder to Spark that the link leads to; before there was one, that of its name."""
    real, var = tmp_path / "disk", tmp_path / "var"
    real.mkdir()
    var.symlink_to(real)
    folder = JobFolder(var / "adverts")
    folder.begin(FILE, TWO)
    first, _ = applications_of(folder.topology(), TWO)
    epoch = folder.begin_epoch(first)
    noted = checkpoint_of(epoch) / "state" / "0" / "_metadata" / "v2" / "0"
    noted.parent.mkdir(parents=True)
    for was in (var, real):
        noted.write_text(f"file:{was / checkpoint_of(epoch).relative_to(var)}/state/0/_stateSchema/default/0_a")
        state = checkpoint_of(epoch := folder.begin_epoch(first))
        noted = state / "state" / "0" / "_metadata" / "v2" / "0"
        assert noted.read_text() == f"file:{state.resolve()}/state/0/_stateSchema/default/0_a"


@pytest.mark.parametrize(
    "text", ["", '{"name": "adverts.join', "[]", '{"name": "adverts.join", "operators": ["join"]}']
)
def test_a_damaged_block_is_named_and_written_anew_and_the_others_run(job, text):
    job.supervisor.start()
    file = job.folder.newest(SECOND).folder / "block.json"
    whole = file.read_text()
    file.write_text(text)
    with pytest.raises(
        JobFileError, match=r"adverts.join/1/block.json.* is damaged .*`tidecast job up adverts` writes"
    ):
        job.folder.newest(SECOND)
    again = Supervisor(job.folder, FakeHome(), {name: f"spark://{name}" for name in ("east", "west")}, job.said.append)
    again.start()
    assert again._home.spawned == [(FIRST, "east", 1), (SECOND, "east", 1)] and again.settled()
    assert file.read_text() == whole and job.state(SECOND) == ["east", "east"]
    assert sum(f"{file}" in line for line in job.said) == 1


def test_a_block_that_is_damaged_while_it_runs_is_written_anew_for_its_driver(job):
    job.supervisor.start()
    (job.folder.newest(SECOND).folder / "block.json").write_text("")
    job.wants("count", "west")
    job.looks()
    assert job.home.spawned[2:] == [(SECOND, "west", 2)] and job.state(SECOND) == ["east", "west"]
    (job.folder.newest(SECOND).folder / "block.json").write_text("")
    job.home.processes[SECOND].alive = False
    job.looks()
    assert job.home.spawned[3:] == [(SECOND, "west", 2)] and job.folder.newest(SECOND).block.cluster == "west"
    assert observe_trips(job.folder) == {}  # of the epoch before nothing is known any more


def test_a_block_that_may_not_be_read_is_said_once_and_the_others_run(job):
    file = job.folder.path / "blocks" / SECOND / "1" / "block.json"
    file.mkdir(parents=True)  # what is no file cannot be read by any user
    job.supervisor.start()
    job.looks(5)
    assert job.home.spawned == [(FIRST, "east", 1)]
    assert sum(f"{file}" in line for line in job.said) == 1
    file.rmdir()
    file.parent.rmdir()
    job.looks(2)
    assert job.home.spawned[1:] == [(SECOND, "east", 1)]


def test_a_note_that_is_cut_off_says_at_least_that_the_query_worked(job):
    job.supervisor.start()
    (job.folder.newest(FIRST).folder / "works").write_text("12\x00")
    assert job.folder.newest(FIRST).worked_by() == 0
    job.looks()
    assert job.supervisor.settled()


def test_where_the_queries_are_wanted_is_named_where_it_is_damaged(job):
    (job.folder.path / "placement.json").write_text('{"blocks": [{"operators": []}]}')
    with pytest.raises(JobFileError, match=r"placement.json, .* is damaged .*restore FILE --only jobs/adverts`"):
        job.supervisor.start()


def test_a_job_keeps_the_topology_that_it_was_begun_with(job, tmp_path):
    changed = tmp_path / FILE.name
    changed.write_text(FILE.read_text() + "\n")
    assert job.folder.has_changed(changed) and not job.folder.has_changed(FILE)
    assert job.folder.topology().name == "adverts" and job.folder.wanted() == TWO
    with pytest.raises(SettingsError, match="no job was begun here"):
        JobFolder(tmp_path / "nowhere").topology()


@pytest.mark.parametrize(("operator", "cluster", "what"), [
    ("window", "west", "no such operator"), ("count", "north", "no such cluster"), ("join", "small", "has no room"),
    ("parse", "west", "may not run on west"),
])  # fmt: skip
def test_a_move_that_cannot_be_is_refused(job, operator, cluster, what):
    topology = job.folder.topology()
    pinned = topology.operators["parse"].model_copy(update={"cluster": "east"})
    small = topology.clusters["west"].model_copy(update={"cores": 1, "round_trip_ms": {"east": 1.0, "west": 1.0}})
    changed = topology.model_copy(update={
        "operators": {**topology.operators, "parse": pinned}, "clusters": {**topology.clusters, "small": small},
    })  # fmt: skip
    with pytest.raises(PlanError, match=what):
        move_block(changed, TWO, operator, cluster)


def test_where_a_query_is_put_without_room_it_has_the_figures_of_that_place():
    topology = load_topology("adverts", FILE.parent)
    full = place_block(topology, TWO, ("join", "count"), "west", 9)  # which has four cores
    assert full.price == pytest.approx(1.0 + 9 * 0.6) and full.blocks[1].executors == 9
    less = place_block(topology, TWO, ("join", "count"), "west", 4)
    assert full.blocks[1].load == less.blocks[1].load != TWO.blocks[1].load
    assert full.latency_s < less.latency_s and full.blocks[1].latency_s < less.blocks[1].latency_s
    gone = place_block(topology, TWO, ("join", "count"), "north", 1)
    assert (gone.price, gone.blocks[1].cluster) == (TWO.price, "north")
