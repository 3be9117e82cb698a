"""The serving loop on a real socket: typed answers, whatever bytes come, and a swap under load."""

import json
import os
import resource
import socket
import struct
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.forecast.baselines.naive import Naive
from models.forecast.selection.catalogue import CATALOGUE
from pipelines.registry import Champion, RegistryError
from pipelines.serve.fast.core import CURSOR, Core, IncomingSample
from pipelines.serve.fast.loop import Loop
from pipelines.serve.fast.server import _distrusted_if_corrupt
from pipelines.serve.fast.swapping import swap_model
from pipelines.serve.fast.window_closer import WindowCloser
from pipelines.serve.models.loader import Loader
from pipelines.serve.models.model_set import pack_model
from pipelines.serve.models.ready import prepare_model
from pipelines.serve.net import wire
from pipelines.serve.net.client import Client, ClientError, RefusedError
from pipelines.serve.net.socket_server import SocketError
from pipelines.serve.step.deployments import deployment_at
from pipelines.serve.step.keys import forecast_key, quarantine_key, sample_key, state_key
from pipelines.serve.step.records import STATUS, ForecastValue, Status, decode_value
from pipelines.serve.step.windows import RecentWindows
from pipelines.store import Corrupt, Fenced, MustReopen, Store, StoreFull
from pipelines.store.disk.limits import VALUE_BYTES
from tests.fakes.forecasters import STEP, TASK, series
from tests.fakes.serving import BEGIN, NOW, contents, raw, sample
from tests.fakes.waiting import PATIENCE_S, wait_until
from tidecast.messages import Reject, decode

JOB = "orders"
KEY = forecast_key(JOB, STEP)


@cache
def champions():
    """In their order; not fitted by the workers that only collect this file."""
    return Naive(TASK), Naive(TASK, seasonal=False), CATALOGUE["ridge"](TASK, series(400))


class Shelf:
    """A registry of forecasters: version n is the n-th, round and round; "bad" is for another task."""

    def __init__(self):
        self.version, self.bad_loaded = None, False

    def champions(self):
        return {} if self.version is None else {JOB: Champion(self.version)}

    def model_name(self, job):
        return f"{job}-forecaster"

    def fetch(self, job, version):
        if version == "bad":
            self.bad_loaded = True
            return Naive(type(TASK)(STEP / 2, 3, (0.5,))), None
        return champions()[int(version) % len(champions())], None


@contextmanager
def served(folder, shelf=None):
    """A loop in a thread of its own; (socket, core, what its selector named in each round)."""
    ready, stop = threading.Event(), threading.Event()
    found, named = {}, deque(maxlen=1000)

    def run():
        with Store.open(folder) as store:
            core = found["core"] = Core(store, STEP, {JOB, "rides"}, epoch=7)
            loop = Loop(core, folder / "socket")
            select = loop._selector.select

            def noted(wait_s):
                named.append(len(events := select(wait_s)))
                return events

            loop._selector.select = noted
            if shelf is not None:
                loop.loader = Loader(core.windows, lambda: shelf, [JOB], 0.02, loop.wake)
                loop.loader.start()
            ready.set()
            while not stop.is_set():
                loop.run_once(0.02)
            if loop.loader is not None:
                loop.loader.close()
            loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_S)
    try:
        yield folder / "socket", found["core"], named
    finally:
        stop.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "the loop goes on"


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    with served(tmp_path_factory.mktemp("served") / "store") as found:
        yield found


def test_a_client_puts_and_reads_back(door):
    with Client(door[0], PATIENCE_S) as client:
        took = client.put(sample("rides", BEGIN, 50.0))
        assert took.verdict == "applied" and client.ping(b"abc") == b"abc"
        found = client.get("/sample/rides/all/3600")
        assert found.version == BEGIN and client.versions("/sample/rides/all/3600") == [(BEGIN, found.ts)]
        assert client.as_of("/sample/rides/all/3600", found.ts) == found
        ts, durable = client.frontier()
        assert ts >= found.ts and durable <= ts and client.get("/nothing") is None
        assert client.forecast("rides", STEP) is None and client.what_if("rides", 5.0).quantiles == []


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda c: c.put(sample("stranger", BEGIN, 5.0)), "unknown_job"),
        (lambda c: c.put(sample(JOB, BEGIN, 5.0, wall_time=9e9)), "message"),
        (lambda c: c.put(sample(JOB, BEGIN, -5.0)), "message"),
        (lambda c: c.as_of(KEY, 2**62), "not_stable"),
        (lambda c: c.get("no path"), "input"),
        (lambda c: c.what_if(JOB, float("inf")), "message"),
        (lambda c: c.ping(bytes(wire.MOST - 3)), "oversized"),
    ],
)
def test_what_cannot_be_done_is_refused_by_code_and_the_server_goes_on(door, call, code):
    before = contents(door[1].store)
    with Client(door[0], PATIENCE_S) as client:
        with pytest.raises((RefusedError, wire.WireError)) as refused:
            call(client)
        assert refused.value.code == code
        assert client.ping(b"still") == b"still"
    assert contents(door[1].store) == before


def test_puts_sent_at_once_are_answered_in_their_order(door):
    with Client(door[0], PATIENCE_S) as client:
        answers = client.put_all([raw(JOB, BEGIN + i, float(i)) if i % 7 else b"bad" for i in range(100)])
    assert [type(a).__name__ for a in answers] == ["PutResult" if i % 7 else "Refused" for i in range(100)]
    versions = [v for v, _ in door[1].store.list_versions("/sample/orders/all/3600")]
    assert versions == [BEGIN + i for i in range(100) if i % 7]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(st.binary(max_size=60), st.binary(max_size=40).map(lambda b: struct.pack("<I", len(b)) + b)),
        max_size=4,
    )
)
def test_no_bytes_end_the_server_or_touch_the_store(door, pieces):
    before = contents(door[1].store)
    noise = socket.socket(socket.AF_UNIX)
    noise.connect(str(door[0]))
    for piece in pieces:
        try:
            noise.sendall(piece)
        except OSError:
            break  # cut off after an oversized frame
    noise.close()
    with Client(door[0], PATIENCE_S) as client:
        assert client.ping(b"here") == b"here"
    assert contents(door[1].store) == before


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next_one(tmp_path):
    with socket.socket(socket.AF_UNIX) as slow:
        slow.bind(str(tmp_path / "slow"))
        slow.listen(1)
        with Client(tmp_path / "slow", 0.05) as client:
            with pytest.raises(ClientError, match="no answer"):
                client.ping(b"first")
            served, _ = slow.accept()
            with served, suppress(BrokenPipeError):
                served.sendall(wire.encode_frame(wire.Pong(b"first")))
            with pytest.raises(ClientError, match="Connect again"):
                client.ping(b"second")


def test_more_versions_than_one_answer_holds_are_asked_for_page_by_page(door, monkeypatch):
    monkeypatch.setattr(wire, "MOST_VERSIONS", 4)
    with Client(door[0], PATIENCE_S) as client:
        for many in (3, 4, 8, 9):
            key = f"/pages/{many}"
            for version in range(many):
                door[1].store.put(key, b"", version)
            assert [version for version, _ in client.versions(key)] == list(range(many))
            assert [version for version, _ in client.versions(key, 1, 5)] == list(range(many))[1:6]


def test_an_oversized_frame_is_refused_and_its_sender_cut_off(door):
    with socket.socket(socket.AF_UNIX) as rude:
        rude.connect(str(door[0]))
        rude.settimeout(PATIENCE_S)
        rude.sendall(struct.pack("<I", 1 << 30))
        answer = wire.read_answer(wire.take_frames(bytearray(rude.recv(4096)))[0])
        assert answer.code == "oversized" and rude.recv(10) == b""


def test_what_came_whole_before_an_oversized_frame_is_answered_first(door):
    with socket.socket(socket.AF_UNIX) as rude:
        rude.connect(str(door[0]))
        rude.settimeout(PATIENCE_S)
        rude.sendall(
            wire.encode_frame(wire.Ping(b"1")) + wire.encode_frame(wire.Ping(b"2")) + struct.pack("<I", 1 << 30)
        )
        got = bytearray()
        while data := rude.recv(4096):
            got += data
        first, second, last = (wire.read_answer(frame) for frame in wire.take_frames(got))
        assert (first.payload, second.payload, last.code) == (b"1", b"2", "oversized")


def test_one_who_is_cut_off_and_does_not_read_does_not_keep_the_loop_busy(door):
    with socket.socket(socket.AF_UNIX) as rude:
        rude.connect(str(door[0]))
        rude.sendall(wire.encode_frame(wire.Ping(bytes(900_000))) * 3 + struct.pack("<I", 1 << 30))
        rude.sendall(b"more")
        named = door[2]
        named.clear()
        wait_until(lambda: len(named) >= 20 and not any(list(named)[-20:]), "twenty rounds with nothing to do")
        rude.sendall(b"still more")
        named.clear()
        wait_until(lambda: len(named) >= 20, "twenty rounds")
        assert not any(named)


def test_only_this_user_may_connect_and_only_one_server_listens(door, tmp_path):
    assert os.stat(door[0]).st_mode & 0o777 == 0o600
    with (
        Store.open(tmp_path / "other") as store,
        pytest.raises(SocketError, match=r"answers there already.*serving\.store"),
    ):
        Loop(Core(store, STEP, {JOB}, 1), door[0])
    with pytest.raises(ClientError, match="no server"):
        Client(tmp_path / "none")


def test_too_long_a_path_of_the_socket_is_refused_with_what_shortens_it(tmp_path):
    path = tmp_path / ("s" * 108)
    told = r"at most 107 bytes: give a shorter TIDECAST_VAR, or serving\.store"
    with Store.open(tmp_path / "store") as store, pytest.raises(SocketError, match=told):
        Loop(Core(store, STEP, {JOB}, 1), path)


def test_a_champion_that_could_not_be_fetched_is_fetched_later(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.serve.models.loader.AGAIN_S", 0.05)
    shelf, failed, load = Shelf(), [], Shelf.fetch

    def away(self, job, version):
        if not failed:
            failed.append(version)
            raise RegistryError("the registry does not answer")
        return load(self, job, version)

    monkeypatch.setattr(Shelf, "fetch", away)
    with served(tmp_path / "store", shelf) as (_, core, _):
        shelf.version = "0"
        wait_until(lambda: core.counts["swaps"], "a swap")
        assert failed == ["0"] and core.counts["swaps"] == 1


def test_a_champion_that_the_store_had_no_room_for_is_swapped_in_later(tmp_path, monkeypatch):
    shelf, refused = Shelf(), []

    def full(core, ready):
        if not refused:
            refused.append(ready)
            raise StoreFull("the map is full")
        return swap_model(core, ready)

    monkeypatch.setattr("pipelines.serve.fast.loop.swap_model", full)
    monkeypatch.setattr("pipelines.serve.fast.loop.RETRY_S", 0.05)
    with served(tmp_path / "store", shelf) as (_, core, _):
        shelf.version = "0"
        wait_until(lambda: core.counts["swaps"], "a swap")
        assert refused and core.counts["swaps"] == 1


@pytest.mark.parametrize("most", [4, 512])
def test_more_clients_than_can_be_had_wait_and_those_there_are_served_on(tmp_path, monkeypatch, most):
    monkeypatch.setattr("pipelines.serve.net.socket_server.CLIENTS", most)
    with served(tmp_path / "store") as (path, *_), Client(path, PATIENCE_S) as first:
        assert first.ping(b"1") == b"1"
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        spare = len(os.listdir("/proc/self/fd")) + 8
        others = []
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (spare, before[1]))
            with suppress(OSError):
                for _ in range(20):
                    others.append(socket.socket(socket.AF_UNIX))
                    others[-1].settimeout(1)
                    others[-1].connect(str(path))
            assert first.ping(b"2") == b"2"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            for one in others:
                one.close()
        with Client(path, PATIENCE_S) as later:
            assert later.ping(b"3") == b"3" and first.ping(b"4") == b"4"


def test_swaps_under_load_miss_no_forecast_double_none_and_mix_none(tmp_path):
    shelf = Shelf()
    with served(tmp_path / "store", shelf) as (path, core, _), Client(path, PATIENCE_S) as client:
        client.put_all([raw(JOB, BEGIN + i, 100.0 + i % 24) for i in range(40)])
        shelf.version, at, seen = "0", BEGIN + 40, []
        swaps, deadline = 0, time.monotonic() + PATIENCE_S
        while swaps < 6 and time.monotonic() < deadline:
            took = client.put(sample(JOB, at, 100.0 + at % 24, wall_time=NOW))
            at += 1
            seen += took.forecasts
            newest = decode_value(ForecastValue, seen[-1].value).model_version if seen else None
            if newest == shelf.version:
                swaps += 1
                shelf.version = str(swaps) if swaps != 3 else "bad"
            elif shelf.version == "bad" and shelf.bad_loaded:
                shelf.version = "3"
            time.sleep(0.0005)  # the loader gets its turn, and the windows until it has come stay few
        deployments = core.job(JOB).deployments
        first = deployments[0].first_origin
        stored = [f.version for f in map(lambda v: client.get(KEY, v), range(first, at))]
    assert swaps == 6 and [g.number for g in deployments] == list(range(1, len(deployments) + 1))
    assert "bad" not in {g.model_version for g in deployments}
    assert stored == list(range(first, at))
    assert [f.version for f in seen] == list(range(seen[0].version, at))
    for found in seen:
        value, by = decode_value(ForecastValue, found.value), deployment_at(deployments, found.version)
        assert (value.deployment, value.model_version, value.digests) == (by.number, by.model_version, by.digests)
        assert json.loads(value.message)["version"] == by.model_version


class Waiting:
    """Records of the log that wait, as `LogFeed` shows them."""

    failure = None

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def peek(self, most):
        return [IncomingSample(one, ("metrics", 0, i), b"%d" % i) for i, one in enumerate(self.samples[:most])]

    def remove(self, count):
        del self.samples[:count]


@contextmanager
def refusing(error, monkeypatch):
    """Within, each commit is refused."""

    def refuse(*arguments):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("pipelines.store.writing.puts.commit_events", refuse)
        yield


@pytest.fixture
def loop(tmp_path):
    with Store.open(tmp_path / "store") as store:
        made = Loop(Core(store, STEP, {JOB, "rides"}, epoch=7), tmp_path / "store" / "socket")
        yield made
        made.close()


@pytest.mark.parametrize("error", [MustReopen("half a write"), Fenced("writer 2 is there"), Corrupt("a record")])
def test_what_no_trying_again_cures_ends_the_loop(loop, error, monkeypatch):
    with refusing(error, monkeypatch):
        with pytest.raises(type(error)):
            loop.run_once(0)  # which stores its status
        loop.log = Waiting([raw(JOB, BEGIN, 5.0)])
        with pytest.raises(type(error)):
            loop.process_log()


def test_a_client_of_a_store_that_must_be_opened_anew_is_told_before_the_end(loop, monkeypatch):
    with refusing(MustReopen("a write failed half-way"), monkeypatch):
        (answer,) = loop._process_puts([raw(JOB, BEGIN, 5.0)])
    assert (answer.code, answer.message) == ("store", "a write failed half-way")


def test_what_keeps_the_status_from_being_stored_is_said_once(loop, monkeypatch, capsys):
    monkeypatch.setattr("pipelines.serve.fast.loop.HOUSEKEEPING_S", 0.0)
    for message in ("the map is full", "the disk is full"):
        with refusing(StoreFull(message), monkeypatch):
            for _ in range(5):
                loop.run_once(0)
    loop.run_once(0)
    with refusing(StoreFull("the disk is full"), monkeypatch):
        loop.run_once(0)
    said = capsys.readouterr().out.splitlines()
    assert said == ["serving: the map is full", "serving: the disk is full", "serving: the disk is full"]


def test_the_status_tells_how_far_the_wall_clock_was_set_from_the_stores(loop, monkeypatch):
    monkeypatch.setattr("pipelines.serve.fast.loop.HOUSEKEEPING_S", 0.0)
    set_s, told = [0.0], []
    wall = SimpleNamespace(time_ns=lambda: time.time_ns() + round(set_s[0] * 1e9))
    monkeypatch.setattr("pipelines.store.writing.writer.time", wall)
    for moved_s in (0.0, 0.5, 3600.0, 3600.5, -3600.0):
        set_s[0] = moved_s
        loop.run_once(0)
        told.append(round(decode_value(Status, loop.core.store.get_meta(STATUS)).ahead_s))
    assert told == [0, 0, -3600, -3600, 3600]


def large(job, version):
    """A model whose weights the store never takes."""
    ready = prepare_model(RecentWindows(STEP), job, f"{job}-forecaster", version, pack_model(champions()[0]))
    members = {**ready.model_set.members, "weights": bytes(VALUE_BYTES + 1)}
    return ready._replace(model_set=replace(ready.model_set, members=members))


def test_a_model_that_the_store_never_takes_holds_up_no_other_swap(loop, capsys):
    small = prepare_model(RecentWindows(STEP), "rides", "rides-forecaster", "1", pack_model(champions()[0]))
    loop.loader = SimpleNamespace(ready=deque([large(JOB, "3"), small]), damage=None)
    loop.run_once(0)
    assert not loop.loader.ready and loop.core.counts["swaps"] == 1
    assert [d.model_version for d in loop.core.job("rides").deployments] == ["1"]
    assert not loop.core.job(JOB).deployments
    refused, champion = capsys.readouterr().out.splitlines()
    assert refused.startswith(f"serving {JOB}: version 3 is refused: ") and "67108864 are taken" in refused
    assert champion.startswith("serving rides: champion is version 1")


def test_a_sample_of_which_the_store_never_takes_what_comes_is_refused_alone(loop, monkeypatch, capsys):
    put_state = WindowCloser._put_state

    def put_large_state(closer, event, served, window_index):
        if served.job == JOB:
            event.put(state_key(JOB, STEP), bytes(VALUE_BYTES + 1), window_index)
        put_state(closer, event, served, window_index)

    monkeypatch.setattr(WindowCloser, "_put_state", put_large_state)
    loop.log = Waiting([raw(job, BEGIN + i, 5.0) for i in range(3) for job in (JOB, "rides")])
    loop.run_once(0)
    store, counts = loop.core.store, loop.core.counts
    assert not len(loop.log) and (counts["windows"], counts["refused input"]) == (3, 3)
    assert [v for v, _ in store.list_versions(sample_key("rides", STEP))] == [BEGIN, BEGIN + 1, BEGIN + 2]
    assert store.get(sample_key(JOB, STEP)) is None and store.get_meta(CURSOR) == b"5"
    kept = decode(Reject, store.get(quarantine_key("metrics")).value)
    assert "67108864 are taken" in kept.reason and kept.offset == 4
    (said,) = capsys.readouterr().out.splitlines()
    assert said.startswith("serving: a sample is refused: ")
    refused, taken = loop._process_puts([raw(JOB, BEGIN + 3, 5.0), raw("rides", BEGIN + 3, 5.0)])
    assert refused.code == "input" and taken.verdict == "applied"


def test_a_sample_of_which_the_store_holds_other_results_is_refused_alone(loop, capsys):
    store = loop.core.store
    store.put(state_key(JOB, STEP), b"other", BEGIN)  # as a file may have it that a host crash left
    loop.log = Waiting([raw(job, BEGIN + i, 5.0) for i in range(3) for job in (JOB, "rides")])
    loop.run_once(0)
    assert not len(loop.log) and store.get_meta(CURSOR) == b"5"
    assert (loop.core.counts["windows"], loop.core.counts["refused conflict"]) == (5, 1)
    kept = decode(Reject, store.get(quarantine_key("metrics")).value)
    assert "is stored with other bytes; the first ones stay" in kept.reason and kept.offset == 0
    assert capsys.readouterr().out.startswith("serving: a sample is refused: ")


def test_a_client_that_meets_damage_is_told_before_the_end(loop, monkeypatch):
    with refusing(Corrupt("the digest is not that of the bytes"), monkeypatch):
        (answer,) = loop._process_puts([raw(JOB, BEGIN, 5.0)])
    assert answer.code == "store"
    with pytest.raises(Corrupt):
        loop.run_once(0)


def test_a_damaged_record_ends_the_server_and_the_next_one_begins_the_store_anew(tmp_path, caplog):
    folder, key = tmp_path / "store", sample_key(JOB, STEP)
    with Store.open(folder) as store:
        core = Core(store, STEP, {JOB}, epoch=7)
        core.process([IncomingSample(raw(JOB, BEGIN + i, 1234.5 + i)) for i in range(9)], NOW)
        value = store.get(key, BEGIN + 3).value
    data = folder / "hot" / "data.mdb"
    whole = data.read_bytes()
    assert value in whole
    data.write_bytes(whole.replace(value, value[:-1] + bytes([value[-1] ^ 1])))
    with pytest.raises(Corrupt), Store.open(folder) as store, _distrusted_if_corrupt(store):
        loop = Loop(Core(store, STEP, {JOB}, epoch=8), folder / "socket")
        loop.log = Waiting([raw(JOB, BEGIN + 3, 1237.5)])  # once more
        try:
            loop.run_once(0)
        finally:
            loop.close()
    assert "begun anew" not in caplog.text
    with Store.open(folder) as store:
        assert store.get(key) is None and "begun anew" in caplog.text


def test_damage_that_the_loader_meets_ends_the_loop(loop):
    loop.loader = SimpleNamespace(ready=deque(), damage=Corrupt("the digest is not that of the bytes"))
    with pytest.raises(Corrupt):
        loop.run_once(0)
