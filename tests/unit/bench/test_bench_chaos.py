"""What is done to which part, what a refusal names, how a session is judged, and which sessions are still to be run."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from configs.settings import load
from models.policy.core.budget import Account, Promise
from pipelines.bench.chaos import attack, damage, disks, measure, shifted_clock, signs
from pipelines.bench.chaos.attack import named_command
from pipelines.bench.chaos.cells import CELLS, CORRUPTED, FAULTS, FURTHER, PARTS, TABLE
from pipelines.bench.chaos.judged import judge_account
from pipelines.bench.site.servers import SiteError
from pipelines.cli.app import app
from pipelines.spark.checkpoint.repair import remedy_of
from tests.fakes.clock import clock_with
from tests.fakes.waiting import wait_until

PROMISE = Promise(target_s=2.0, budget=0.05, window_days=7)
SOUND = {
    "produced": 9, "counted": 9, "lost": 0, "duplicated": 0, "account": "kept", "command": None, "back_s": 1.5,
    "failed": [], "left": [],
}  # fmt: skip


def batches(*latencies):
    return [
        {"kind": "batch", "wall_time": 100.0 + 2 * number, "latency_max_s": one, "time_scale": 1.0}
        for number, one in enumerate(latencies)
    ]


def decision(metrics):
    """One that was made with these, half a second after the newest."""
    account = Account()
    for one in metrics:
        account = account.add_batch(PROMISE, one["wall_time"], one["latency_max_s"], one["time_scale"])
    newest = metrics[-1]["wall_time"]
    promise = {"seconds": account.seconds, "late_s": account.late_s}
    return {"wall_time": newest + 0.5, "inputs": {"promise": promise, "metric_wall_time": newest}}


def test_every_fault_is_done_to_every_part():
    assert len(TABLE) == len(PARTS) * len(FAULTS) == 24
    assert {*TABLE} < {*CELLS} and all(CELLS[cell.name] is cell for cell in FURTHER)
    assert set(CORRUPTED) == set(PARTS)


def test_an_account_is_that_of_all_metrics_of_those_since_the_fault_or_wrong():
    metrics = batches(1, 1.5, 6, 8, 9, 9, 1, 3, 1)
    last = decision(metrics)
    assert last["inputs"]["promise"]["late_s"] > 0
    assert judge_account(PROMISE, metrics, last, began_s=107.0) == "kept"
    assert judge_account(PROMISE, metrics, decision(metrics[:6]), began_s=107.0) == "kept"
    assert judge_account(PROMISE, metrics, decision(metrics[:4]), began_s=107.0) == "silent"
    interval = {"kind": "interval", "wall_time": 107.0, "latency_max_s": None, "time_scale": 1.0}
    assert judge_account(PROMISE, [interval, *metrics], last, began_s=107.0) == "kept"
    assert judge_account(PROMISE, metrics, decision(metrics[3:]), began_s=105.5) == "anew"
    assert judge_account(PROMISE, metrics, decision(metrics[3:]), began_s=107.0) == "wrong"  # it forgot too much


def test_an_old_account_is_not_taken_for_one_of_all_that_was_known():
    metrics = batches(*[1] * 20)
    early = decision(metrics[:8])["inputs"]["promise"]
    late = decision(metrics)
    assert judge_account(PROMISE, metrics, late, began_s=105.0) == "kept"
    late["inputs"]["promise"] = early
    assert judge_account(PROMISE, metrics, late, began_s=138.0) == "wrong"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("query failed: x\nstarts after: mv /a/auto /a/auto.damaged\nEach job", "mv /a/auto /a/auto.damaged"),
        (
            "Its checkpoint keeps it from going on: a\n  tidecast job repair /a\nor mv /a /b\n"
            "Its checkpoint keeps it from going on: c\n  tidecast job repair /c --keyed-sink\nor mv /c /d",
            "tidecast job repair /c --keyed-sink",
        ),
        ("nothing of that kind", None),
        ("mv it away", None),
    ],
)  # fmt: skip
def test_a_refusal_names_its_command(text, command):
    assert named_command(text) == command


def test_what_a_damaged_checkpoint_is_refused_with_is_understood(tmp_path):
    for name in ("offsets/0", "commits/0", "offsets/1", "commits/1", "metadata"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("v1")
    (tmp_path / "commits" / ".1.crc").write_text("none")
    assert named_command(remedy_of(tmp_path)) == f"tidecast job repair {tmp_path}"


def test_damage_changes_bytes_and_no_length(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(10_000))
    damage.spoil_middle(file)
    found = file.read_bytes()
    assert len(found) == 10_000 and found[:4968] == bytes(4968) and found[5032:] == bytes(4968)
    assert found[4968:5032] != bytes(64)
    file.write_bytes(b"x")
    damage.spoil_middle(file)
    assert len(file.read_bytes()) == 1
    file.write_bytes(bytes(20_000))
    damage.spoil_store(file)
    assert file.read_bytes()[:8192] == bytes(8192) and file.read_bytes()[8192:] != bytes(11_808)


@pytest.mark.parametrize(
    ("change", "passed"),
    [
        ({}, True),
        ({"account": "anew", "command": "mv a b"}, True),
        ({"account": "anew"}, False),
        ({"account": "wrong"}, False),
        ({"counted": 8, "lost": 1}, False),
        ({"duplicated": 1, "lost": 0}, False),
        ({"back_s": None}, False),
        ({"failed": ["SiteError: no executor"]}, False),
        ({"left": ["17 java"]}, False),
        ({"produced": 0, "counted": 0}, False),
        ({"account": "silent"}, False),
    ],
)
def test_a_session_passes_only_where_all_is_right(change, passed):
    assert measure.has_passed({**SOUND, **change}) is passed


def test_a_session_that_was_not_counted_has_failed():
    uncounted = {
        name: value for name, value in SOUND.items() if name not in ("produced", "counted", "lost", "duplicated")
    }
    assert not measure.has_passed({**uncounted, "failed": ["DemoError: the load generator failed"]})


def test_sessions_are_run_in_turns_and_none_twice(tmp_path, monkeypatch):
    ran, saved = [], []

    def run_cell(prepared, folder, cell):
        ran.append(cell.name)
        if cell.part == "executor":
            raise OSError("no site")
        return {**SOUND, "back_s": 2.5 if cell.part == "broker" else None}

    monkeypatch.setattr(measure, "run_cell", run_cell)
    monkeypatch.setattr(measure, "prepare", lambda settings, folder: settings)
    earlier = {"kept": {"broker-kill": [SOUND]}}
    names = ["broker-kill", "driver-kill", "executor-kill"]
    found = measure.measure_chaos(load(var=tmp_path), names, 2, earlier, saved.append)
    assert ran == ["driver-kill", "executor-kill", "broker-kill", "driver-kill", "executor-kill"]
    assert len(saved) == 3
    assert (found["ran"], found["passed"], found["cells"], found["sessions"]) == (2, 1, 24, 4)
    assert found["slowest_s"] == {"broker": 2.5} and found["refused"] == 0
    assert measure.measure_chaos(load(var=tmp_path), ["broker-kill"], 1, found, saved.append) == found


class Site:
    """A site of which the executors are known, and when batches were told."""

    def __init__(self, executors, batches):
        self.turns, self.batches = iter(executors), batches
        self.pids = set()

    def executors(self):
        self.pids = next(self.turns, self.pids)
        return self.pids


def test_batches_count_once_an_executor_that_was_ended_has_been_replaced(monkeypatch):
    now = SimpleNamespace(s=100.0)
    site = Site([{1, 2}, {2}, {2}, {2, 3}, {2, 3}], batches=[100.5, 101.5, 103.0])

    def seen(world, part, since_s):
        return next((at for at in world.batches if since_s < at <= now.s), None)

    monkeypatch.setattr(signs, "seen_at", seen)

    def sleep(seconds):
        now.s += 2 * seconds

    monkeypatch.setattr(signs, "time", clock_with(time=lambda: now.s, monotonic=lambda: now.s, sleep=sleep))
    before = site.executors()
    assert signs.wait_until_seen(site, "executor", 100.0, 60.0, lambda: True, before) == 1.5
    now.s = 100.0
    assert signs.wait_until_seen(Site([], [100.5]), "driver", 100.0, 60.0, lambda: True) == 0.5
    assert signs.wait_until_seen(Site([{1}], [100.5]), "executor", 100.0, 9.0, lambda: True, {1}) is None


class Struck:
    """A site with a driver that lives through a fault or does not, and notes of what is done to it."""

    def __init__(self, lives, notes):
        self.lives, self.notes = lives, notes
        self.disk = "/disk"
        self.clock = SimpleNamespace(shift=lambda by_s: notes.append(f"clock {by_s}"))
        self.brokers = SimpleNamespace(
            way=SimpleNamespace(cut=lambda: notes.append("cut"), heal=lambda: notes.append("heal"))
        )

    def supervised(self, part):
        return SimpleNamespace(running=lambda: self.lives)

    def bring_back(self, part):
        self.notes.append(f"{part} again")
        self.lives = True


@pytest.mark.parametrize("lives", [True, False])
@pytest.mark.parametrize(("cell", "done"), [
    ("driver-cut", ["cut", "heal"]), ("driver-full", ["fill /disk", "free /disk"]),
    ("autoscaler-clock", ["clock -3600", "clock 0"]),
])  # fmt: skip
def test_who_lives_through_a_fault_is_not_started_again(monkeypatch, cell, done, lives):
    notes = []
    monkeypatch.setattr(attack, "time", clock_with(sleep=notes.append))
    monkeypatch.setattr(attack, "fill_disk", lambda folder: notes.append(f"fill {folder}"))
    monkeypatch.setattr(attack, "free_disk", lambda folder: notes.append(f"free {folder}"))
    monkeypatch.setattr(attack, "wait_until_seen", lambda *_: 2.5)
    found = attack.attack(Struck(lives, notes), CELLS[cell])
    assert notes == [done[0], attack.PAUSE_S, done[1]] + ([] if lives else [f"{CELLS[cell].part} again"])
    assert (found.back_s, found.command) == (2.5, None)


def test_a_disk_is_filled_until_nothing_fits_and_freed(tmp_path):
    (tmp_path / "filler").symlink_to("/dev/full")
    disks.fill_disk(tmp_path)
    disks.free_disk(tmp_path)
    assert not [*tmp_path.iterdir()]
    with pytest.raises(FileNotFoundError):
        disks.fill_disk(tmp_path / "nowhere")


@pytest.mark.skipif(not [*Path("/usr/lib").glob(shifted_clock.PACKAGE)], reason="libfaketime is not installed")
def test_a_clock_is_set_back_under_a_process_that_runs_and_its_steady_clock_goes_on(tmp_path):
    clock = shifted_clock.ShiftedClock(tmp_path / "clock")
    script = "import time\nwhile input() != 'end': time.sleep(0.01), print(time.time(), time.monotonic(), flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", script], env={**os.environ, **clock.environment}, stdin=-1, stdout=-1, text=True
    ) as process:  # fmt: skip

        def look():
            process.stdin.write("look\n")
            process.stdin.flush()
            return [float(word) for word in process.stdout.readline().split()]

        wall, steady = look()
        clock.shift(-3600)
        wait_until(lambda: look()[0] < wall - 3000, "the clock that is set back", every_s=0.1)
        assert look()[1] > steady
        clock.shift(0)
        wait_until(lambda: look()[0] > wall, "the clock that is right again", every_s=0.1)
        process.communicate("end\n")


@pytest.mark.skipif(not [*Path("/usr/lib").glob(shifted_clock.PACKAGE)], reason="libfaketime is not installed")
def test_a_clock_of_all_is_that_of_whatever_is_started_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "own")
    before = dict(os.environ)
    clock = shifted_clock.ShiftedClock(tmp_path / "clock")
    clock.shift(-3600)
    told = [sys.executable, "-c", "import time; print(time.time())"]
    with clock.of_all():
        assert time.time() - float(subprocess.run(told, capture_output=True, check=True).stdout) > 3000
        assert os.environ["PYTHONPATH"].endswith(":own")
    assert dict(os.environ) == before
    assert time.time() - float(subprocess.run(told, capture_output=True, check=True).stdout) < 3000


def test_a_site_is_seen_at_work_once_job_autoscaler_and_server_are(monkeypatch):
    at, seen_at = {"driver": 3.0, "autoscaler": None, "serving": 2.0}, signs.seen_at
    monkeypatch.setattr(signs, "seen_at", lambda world, part, since_s: at[part])
    assert seen_at(None, "site", 1.0) is None
    at["autoscaler"] = 5.0
    assert seen_at(None, "site", 1.0) == 5.0


def test_cells_of_clocks_name_the_package_that_they_need(tmp_path, monkeypatch):
    monkeypatch.setattr(shifted_clock, "LIBRARIES", f"{tmp_path}")
    with pytest.raises(SiteError, match="package libfaketime"):
        shifted_clock.ShiftedClock(tmp_path / "clock")


def test_an_unknown_cell_is_named():
    done = CliRunner().invoke(app, ["bench", "chaos", "--cells", "broker-drown"])
    assert "broker-drown" in str(done.exception) and "scheduler-corrupt" in str(done.exception)
