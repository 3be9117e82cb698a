"""The fast server as a process on a real broker: killed, robbed of its store, and fenced by its successor."""

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request

import psutil
import pytest

from configs.sections import Kafka
from pipelines.kafka.broker import read_records, topic_offsets
from pipelines.kafka.claim import SERVING, Claim
from pipelines.kafka.publisher import Publisher
from pipelines.serve.fast.core import Core, IncomingSample
from pipelines.serve.fast.swapping import swap_model
from pipelines.serve.models.model_set import pack_model
from pipelines.serve.models.ready import prepare_model
from pipelines.serve.net.client import Client, ClientError, RefusedError
from pipelines.serve.step.keys import forecast_key
from pipelines.serve.step.records import ForecastValue, decode_value
from pipelines.store import Store
from tests.fakes.fast_child import JOB, MADE, STEP
from tests.fakes.serving import BEGIN
from tests.fakes.waiting import PATIENCE_S, wait_until
from tidecast.messages import Forecast, MetricSample, decode, encode

pytestmark = pytest.mark.integration
KEY = forecast_key(JOB, STEP)


class Parent:
    """A process that has imported everything, from which servers are forked."""

    def __init__(self, folder):
        self.log, self._said, self._forks = folder / "log", folder / "said", 0
        command = [sys.executable, "-m", "tests.fakes.fast_child"]
        with self.log.open("w") as log, self._said.open("w") as said:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=log, text=True)

    def fork(self, env):
        """The process id of a server with these variables."""
        self._process.stdin.write(json.dumps(env) + "\n")
        self._process.stdin.flush()
        self._forks += 1
        (pid,) = wait_until(lambda: self._forked()[self._forks - 1 :], "a fork", every_s=0.02)
        return pid

    def _forked(self):
        assert self._process.poll() is None, self.log.read_text()
        return [int(line) for line in self._said.read_text().splitlines() if line.isdigit()]

    def end(self):
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    found = Parent(tmp_path_factory.mktemp("servers"))
    yield found
    found.end()


class Server:
    """One process at a time over one folder."""

    def __init__(self, parent, var, kafka, **env):
        self.parent, self.var, self.pid = parent, var, None
        self.env = {"TIDECAST_VAR": str(var), "TIDECAST_TRAINING__STEP_S": str(STEP), **env}
        self.env |= {"TIDECAST_KAFKA__BOOTSTRAP": kafka.bootstrap or "", "TIDECAST_KAFKA__PREFIX": kafka.prefix}

    @property
    def folder(self):
        return self.var / "fast"

    def start(self):
        """A connection to a server that has begun."""
        self.pid = self.parent.fork(self.env)
        return wait_until(self._client, "a server that answers", every_s=0.02)

    def _client(self):
        assert self.lives(), self.parent.log.read_text()
        try:
            client = Client(self.folder / "socket", PATIENCE_S)
            client.ping()
            return client
        except ClientError:
            return None

    def lives(self):
        return psutil.pid_exists(self.pid)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.wait_for_end()

    def stop(self):
        if self.pid is not None and self.lives():
            os.kill(self.pid, signal.SIGTERM)
            self.wait_for_end()

    def wait_for_end(self):
        wait_until(lambda: not self.lives(), "the end of the server")


def window(i):
    fields = {"time_scale": 720.0, "span_s": STEP, "arrival_rps": 100.0 + i % 24 + i / 100, "lag_records": 3}
    return MetricSample(JOB, "interval", (BEGIN + i) * STEP, 1_760_000_000.0 + i, **fields)


def undisturbed(folder, first, windows, epoch):
    """What a run says that nothing befell: forecasts from window `first` on."""
    with Store.open(folder) as store:
        core = Core(store, STEP, {JOB}, epoch)
        for i in range(windows):
            if BEGIN + i == first + 1:
                swap_model(core, prepare_model(core.windows, JOB, f"{JOB}-forecaster", "1", pack_model(MADE)))
            core.process([IncomingSample(encode(window(i)))])
        return {r.version: decode_value(ForecastValue, r.value).message for r in store.history(KEY)}


def told(folder, path):
    """What the HTTP endpoint of the server that runs now says."""
    wait_until((folder / "http").exists, "the HTTP endpoint")
    token, where = (folder / "token").read_text(), (folder / "http").read_text()
    request = urllib.request.Request(where + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def has(client, i):
    wait_until(
        lambda: (found := client.get(KEY)) is not None and found.version >= BEGIN + i, f"window {i}", every_s=0.005
    )


def have_been_sent(kafka, count):
    wait_until(lambda: topic_offsets(kafka, "forecasts")[0][1] >= count, f"{count} forecasts", every_s=0.1)


def test_killed_and_robbed_of_its_store_every_forecast_is_sent_with_the_same_bytes(empty_topics, parent, tmp_path):
    kafka, server = empty_topics, Server(parent, tmp_path / "var", empty_topics)
    publisher = Publisher(kafka)

    def publish(first, last):
        for i in range(first, last):
            publisher.send("metrics", JOB, window(i))
        publisher.flush()

    killed, there = threading.Event(), []

    def publish_until_killed():
        for i in range(40, 140, 10):
            publish(i, i + 10)
            there.append(i + 10)
            if killed.wait(0.5):
                return

    sender = threading.Thread(target=publish_until_killed, daemon=True)
    try:
        publish(0, 40)
        client = server.start()
        has(client, 39)
        first = client.versions(KEY)[0][0]
        sender.start()
        has(client, 60)  # the first one of ten
        server.kill()
        killed.set()
        sender.join()
        assert there[-1] < 140, "it was killed once it had nothing left to do"
        publish(there[-1], 200)
        client = server.start()
        has(client, 199)
        have_been_sent(kafka, BEGIN + 200 - first)
        before = [client.get(KEY, v).value for v, _ in client.versions(KEY)]
        server.kill()
        hot = server.folder / "hot" / "data.mdb"
        hot.write_bytes(bytes(8192) + hot.read_bytes()[8192:])
        again = server.start()
        has(again, 199)
        assert [again.get(KEY, v).value for v, _ in again.versions(KEY)] == before
        assert len(list(server.folder.glob("hot.damaged-*"))) == 1
        publish(200, 230)
        has(again, 229)
        assert told(server.folder, f"/jobs/{JOB}/forecast")["version"] == BEGIN + 229
        have_been_sent(kafka, BEGIN + 230 - first)
        claim = Claim(kafka, publisher, SERVING)
        server.wait_for_end()
        assert claim.epoch > decode(Forecast, list(read_records(kafka, "forecasts"))[-1].value).epoch
        claim.close()
    finally:
        killed.set()
        server.stop()
        publisher.close()
    check_sent(kafka, first, tmp_path / "whole")


def check_sent(kafka, first, folder):
    """Every origin once or more, always with the bytes that an undisturbed run has, in order."""
    sent: dict[int, set[bytes]] = {}
    order = []
    for record in read_records(kafka, "forecasts"):
        assert record.headers["key"].decode() == KEY and record.key == JOB and int(record.headers["ts"]) > 0
        version = int(record.headers["version"])
        sent.setdefault(version, set()).add(record.value)
        order.append(version)
    assert list(dict.fromkeys(order)) == list(range(first, BEGIN + 230))
    epoch = decode(Forecast, next(iter(sent[first]))).epoch
    assert sent == {version: {body} for version, body in undisturbed(folder, first, 230, epoch).items()}


def test_a_job_is_followed_and_shown_once_it_has_a_contract(parent, tmp_path):
    contracts = tmp_path / "contracts"
    contracts.mkdir()
    poll = {"TIDECAST_CONTRACTS": str(contracts), "TIDECAST_SERVING__ALIAS_POLL_S": "0.05"}
    server = Server(parent, tmp_path / "var", Kafka(), **poll)
    try:
        client = server.start()
        with pytest.raises(RefusedError, match="has no contract"):
            client.put(window(0))
        (contracts / f"{JOB}.yaml").write_text(f"job: {JOB}\n")
        wait_until(lambda: accepted(client, 0), "the contract")
        path = f"/jobs/{JOB}/forecast"
        for i in range(1, 40):
            client.put(window(i))
        wait_until(lambda: client.get(KEY), "the champion of the new job")
        assert told(server.folder, path)["model_version"] == "1"
    finally:
        server.stop()


def accepted(client, i):
    try:
        client.put(window(i))
    except RefusedError:
        return False
    return True
