"""`tidecast metrics` beside a real broker: a scrape has what the topics hold, and a webhook is told what is wrong."""

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import closing
from dataclasses import replace

import pytest
from kafka import KafkaAdminClient
from prometheus_client.parser import text_string_to_metric_families as parse

from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topics
from tests.fakes import waiting
from tidecast.connection.transport import connect
from tidecast.messages import Decision, Heartbeat, MetricSample

SPENT = {"promise": {"late_s": 1e9}}


@pytest.fixture
def told():
    """A webhook, and what it was told."""
    bodies = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/T0PSECRET", bodies
    server.shutdown()
    server.server_close()


def scraped(address):
    with urllib.request.urlopen(address, timeout=5) as answer:
        families = parse(answer.read().decode())
    return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}


def test_a_follower_exposes_what_the_topics_hold_and_tells_a_webhook(empty_topics, tmp_path, told):
    """Also where topics are missing, which is said with the remedy until they are made."""
    with closing(connect(KafkaAdminClient, empty_topics.bootstrap, empty_topics.security)) as admin:
        admin.delete_topics([empty_topics.topic(topic) for topic in ("pools", "contracts")])
    webhook, bodies = told
    contracts = tmp_path / "contracts"
    contracts.mkdir()
    (contracts / "orders.yaml").write_text(f"job: orders\nalerts: {{webhook: '{webhook}'}}\n")
    (contracts / "bad.yaml").write_text("job: bad\nexecutors: none\n")
    now = time.time()
    sample = MetricSample("orders", "interval", now, now, arrival_rps=41.0, lag_records=3, executors=2, mode="act")
    publisher, then = Publisher(empty_topics), now - 7200
    publisher.send("metrics", "orders", replace(sample, time=now - 200, wall_time=now - 200))
    publisher.send(
        "decisions", "orders", Decision("d", "orders", then, then, 1.0, "act", "mpc", 3, "r", ["up"], SPENT, {})
    )
    publisher.flush()
    environment = {
        **os.environ, "TIDECAST_VAR": str(tmp_path / "var"), "TIDECAST_CONTRACTS": str(contracts),
        "TIDECAST_KAFKA__BOOTSTRAP": empty_topics.bootstrap, "TIDECAST_KAFKA__PREFIX": empty_topics.prefix,
    }  # fmt: skip
    command = [sys.executable, "-c", START, "metrics", "--port", "0"]
    log = tmp_path / "stderr"
    with (
        log.open("w") as errors,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True) as run,
    ):
        try:
            address = run.stdout.readline().removeprefix("metrics: ").strip()
            job = ("job", "orders")
            wait_until(lambda: scraped(address).get(("tidecast_job_target_executors", job)) == 3, "decision")
            wait_until(lambda: scraped(address).get(("tidecast_job_executors", job)) == 2, "metrics")
            wait_until(lambda: ("tidecast_broker_up",) in scraped(address), "a round")
            wait_until(lambda: bodies, "a message")
            publisher.send("metrics", "orders", replace(sample, wall_time=time.time()))
            publisher.send("heartbeats", "orders", Heartbeat("orders", "autoscaler", now, time.time(), 1.0))
            publisher.close()
            wait_until(lambda: scraped(address)[("tidecast_job_metric_timestamp_seconds", job)] > now, "fresh metrics")
            found = scraped(address)
            assert found[("tidecast_job_contract_valid", ("job", "bad"))] == 0 and found[("tidecast_broker_up",)] == 1
            assert found[("tidecast_job_decision_timestamp_seconds", job)] == pytest.approx(then)
            said = log.read_text()
            assert "metrics: topic pools: " in said and "creates our topics" in said and "metrics: ingest: " in said
            assert "metrics: contract 'bad': bad.yaml, line 2: executors='none': " in said and "well again" not in said
            create_topics(empty_topics)
            for what in ("topic pools", "ingest"):
                wait_until(lambda what=what: f"metrics: {what}: well again\n" in log.read_text(), f"{what} well again")
        finally:
            run.send_signal(signal.SIGTERM)
    said = log.read_text()
    assert run.returncode == 0 and "T0PSECRET" not in said and "Traceback" not in said, said
    assert {alert["alert"] for alert in bodies[0]["alerts"]} == {"TidecastBudgetSpent"}


def wait_until(holds, what):
    waiting.wait_until(holds, what, every_s=0.2)


START = """
import pipelines.alerts.follower as follower
import pipelines.alerts.rounds as rounds
import pipelines.alerts.topics as topics
follower.FIRST_S = 2.0  # the minute in which a process that starts is told what stands
rounds.ROUND_S = topics.TOPIC_AGAIN_S = 1.0
from pipelines.cli.app import main
main()
"""
