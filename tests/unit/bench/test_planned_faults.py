"""A plan of faults: what is due when, by hand; and its carrier on processes of the test's own."""

import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress

import psutil
import pytest

from models.workload.faults import KINDS, Fault
from models.workload.generator import draw_workload
from pipelines.bench.backfill import workloads
from pipelines.bench.planned_faults import carrier as carrier_module
from pipelines.bench.planned_faults.carrier import FaultCarrier, carrying
from pipelines.bench.planned_faults.due import (
    CAPPED_BYTES_S,
    LOST,
    MOST_RESENT,
    RESENT_S,
    STILL,
    TURN_S,
    FaultsHeld,
    begun_between,
    ends_s,
    resent_after_s,
    standing_at,
)
from pipelines.bench.site.way import LENGTH, Way
from pipelines.stack.ports import HOST
from tests.fakes.clock import clock_with

PLAN = (
    Fault(1.0, "worker kill", "worker-1", 0.0),
    Fault(2.0, "slow node", "worker-0", 4.0),
    Fault(3.0, "bandwidth cap", "worker-0", 2.0),
    Fault(4.0, "packet loss", "worker-2", 3.0),
)


def test_what_a_plan_asks_for_by_hand():
    assert standing_at(PLAN, 0.5) == standing_at(PLAN, 7.0) == FaultsHeld()
    assert standing_at(PLAN, 2.0) == FaultsHeld(frozenset({"worker-0"}))
    assert standing_at(PLAN, 2.0 + STILL * TURN_S) == FaultsHeld()  # in its turn the worker goes on
    assert standing_at(PLAN, 2.01 + TURN_S).still == {"worker-0"}
    assert standing_at(PLAN, 4.0)[1:] == (CAPPED_BYTES_S, LOST)
    assert standing_at(PLAN, 5.0)[1:] == (float("inf"), LOST)
    assert begun_between(PLAN, 0.0, 1.0) == [PLAN[0]] and begun_between(PLAN, 1.0, 1.9) == []
    assert [one.kind for one in begun_between(PLAN, 1.0, 4.0)] == ["slow node", "bandwidth cap", "packet loss"]
    assert ends_s(PLAN) == 7.0 and ends_s(()) == 0.0


def test_a_lost_packet_is_a_stall_of_doubling_timeouts():
    assert resent_after_s(0.1, [0.1]) == 0.0
    assert resent_after_s(0.1, [0.09, 0.5]) == RESENT_S
    assert resent_after_s(0.1, [0.0, 0.0, 0.9]) == pytest.approx(3 * RESENT_S)
    assert resent_after_s(1.0, [0.5] * 99) == pytest.approx((2**MOST_RESENT - 1) * RESENT_S)


def test_the_row_draws_faults_of_each_kind():
    for cell in workloads.plan_load(workloads.GENERATED, workloads.MINUTES):
        how = workloads.arrange_workload(cell)
        drawn = draw_workload(how.shape(), how.seed)
        assert {one.kind for one in drawn.faults} == {*KINDS}
        assert (drawn.records.mult < 0).any() and (drawn.records.t_i > drawn.records.t_e).any()
        assert int((drawn.records.t_i - drawn.records.t_e).max()) < workloads.DELAY_MS


class FreeWay:
    """A way that notes how it is hindered."""

    def __init__(self):
        self.seen = []

    def hinder(self, bytes_s, lost):
        self.seen.append((bytes_s, lost))


@pytest.fixture
def workers():
    """Three processes that do nothing, the oldest first."""
    started = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) for _ in range(3)]
    yield started
    for one in started:
        one.kill()
        one.wait(10)


def living(started):
    return lambda: [psutil.Process(one.pid) for one in started if one.poll() is None]


def until(told, patience_s=20.0):
    deadline = time.monotonic() + patience_s
    while not told():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_worker_is_killed_another_stands_still_and_goes_on(workers, monkeypatch):
    cap, now = Fault(0.3, "bandwidth cap", "worker-0", 0.5), [0.0]
    plan = (Fault(0.1, "worker kill", "worker-4", 0.0), Fault(0.2, "slow node", "worker-0", 1.0), cap)
    way, slow = FreeWay(), psutil.Process(workers[0].pid)
    monkeypatch.setattr(carrier_module, "time", clock_with(time=lambda: now[0]))
    carrier = FaultCarrier(plan, 0.0, living(workers), way)
    for now[0], seen in ((0.1, lambda: workers[1].poll()), (0.2, lambda: slow.status() == psutil.STATUS_STOPPED)):
        until(seen)
    now[0] = 0.3
    until(lambda: way.seen)
    now[0] = 2.0
    until(lambda: carrier.finished)
    assert workers[1].wait(10) == -signal.SIGKILL and workers[0].poll() is None and workers[2].poll() is None
    assert slow.status() != psutil.STATUS_STOPPED and carrier.failure is None
    assert [(fault.kind, pid) for fault, pid in carrier.done] == [
        ("worker kill", workers[1].pid), ("slow node", workers[0].pid), ("bandwidth cap", None)
    ]  # fmt: skip
    assert way.seen[0] == (CAPPED_BYTES_S, 0.0) and way.seen[-1] == (float("inf"), 0.0) and carrier.missed == []


def test_a_stopped_worker_goes_on_when_the_session_fails_and_one_who_is_not_there_is_missed(workers):
    plan, slow, way = (Fault(0.0001, "slow node", "worker-2", 1e6),), psutil.Process(workers[2].pid), FreeWay()
    with suppress(RuntimeError), carrying(plan, time.time(), living(workers), way):
        until(lambda: slow.status() == psutil.STATUS_STOPPED)
        raise RuntimeError
    assert slow.status() != psutil.STATUS_STOPPED and way.seen[-1] == (float("inf"), 0.0)
    carrier = FaultCarrier([Fault(0.0001, "worker kill", "worker-0", 0.0)], time.time(), list, way)
    until(lambda: carrier.finished)
    assert carrier.done == [] and [one.kind for one in carrier.missed] == ["worker kill"]

    def broken():
        raise OSError("no list of processes")

    failed = FaultCarrier([Fault(0.0001, "worker kill", "worker-0", 0.0)], time.time(), broken, way)
    until(lambda: failed.finished)
    assert "no list" in str(failed.failure)


def message(body):
    return len(body).to_bytes(LENGTH, "big") + body


@pytest.fixture
def broker():
    """A server that answers each message with where it is, as a Kafka broker without encryption does."""
    with socket.create_server((HOST, 0)) as server:
        own = HOST.encode() + server.getsockname()[1].to_bytes(4, "big")

        def serve():
            with suppress(OSError):
                while True:
                    client, _ = server.accept()
                    threading.Thread(target=answer, args=[client], daemon=True).start()

        def answer(client):
            with client, suppress(OSError):
                said = client.makefile("rb")
                while head := said.read(LENGTH):
                    client.sendall(message(said.read(int.from_bytes(head, "big")) + own))

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def test_a_broker_behind_a_way_states_the_ways_address(broker):
    with closing(Way([broker], of_broker=True)) as way, socket.create_connection((HOST, way.ports[0]), 10) as client:
        heard = client.makefile("rb")
        way.hinder(1e9, 0.0)
        for said in (b"one", b"another"):
            client.sendall(message(said))
            expected = message(said + HOST.encode() + way.ports[0].to_bytes(4, "big"))
            assert heard.read(len(expected)) == expected


def test_a_narrow_way_lets_through_no_more_than_its_bytes_a_second_and_a_wide_one_does_again(broker):
    with closing(Way([broker], of_broker=True)) as way, socket.create_connection((HOST, way.ports[0]), 10) as client:
        way.hinder(1.0, 0.0)  # a message of 100 bytes takes 100 s
        client.sendall(message(b"x" * 96))
        client.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.recv(1)
        way.hinder(float("inf"), 0.0)
        with socket.create_connection((HOST, way.ports[0]), 10) as other:
            other.sendall(message(b"free"))
            assert other.recv(100).startswith((8 + len(HOST)).to_bytes(LENGTH, "big") + b"free")
