"""A server of another deployment on the topics of a first one waits while that one is heard, and says what helps."""

import threading
import time
from contextlib import closing

import pytest

from configs.settings import load
from pipelines.deployment import deployment_name
from pipelines.kafka.claim import SERVING, Claim, last_claim
from pipelines.kafka.publisher import Publisher
from pipelines.serve.turn import await_turn
from tests.fakes.waiting import PATIENCE_S, wait_until
from tidecast.messages import Heartbeat, MetricSample

pytestmark = pytest.mark.integration
LISTEN_S, LONGER_S = 8.0, 10.0
"""Wall seconds that a busy machine does not keep a heartbeat back, and more than those."""


@pytest.fixture
def site(empty_topics, tmp_path):
    """Settings of two deployments with one prefix, and the publisher of their jobs' agents."""
    both = [load(var=str(tmp_path / name), kafka=empty_topics.model_dump()) for name in ("first", "second")]
    with closing(Publisher(empty_topics)) as publisher:
        yield *both, publisher


def claim(settings, publisher):
    Claim(settings.kafka, publisher, SERVING, deployment_name(settings.var_dir)).close()


def test_a_server_waits_while_another_deployments_is_heard_and_for_none_of_its_own(site, capsys):
    first, second, publisher = site
    await_turn(first, LISTEN_S)  # nobody has served
    claim(first, publisher)
    await_turn(first, LISTEN_S)
    assert capsys.readouterr().out == ""
    over, silent = threading.Event(), threading.Event()

    def speak():
        while not over.wait(0.2):
            now = time.time()
            if not silent.is_set():
                publisher.send("heartbeats", "orders", Heartbeat("orders", "serving", now, now, 1.0))
            publisher.send("metrics", "orders", MetricSample("orders", "interval", now - 1, now, arrival_rps=1.0))

    waits = threading.Thread(target=await_turn, args=(second, LISTEN_S), daemon=True)
    jobs = threading.Thread(target=speak, daemon=True)
    waits.start()
    said, has_served = [], f"the deployment {deployment_name(first.var_dir)} has served on the topics"
    try:
        wait_until(lambda: said.append(capsys.readouterr().out) or "TIDECAST_KAFKA__PREFIX" in said[-1], "the remedy")
        assert f"{has_served} {first.kafka.prefix}*" in said[-1]
        time.sleep(LONGER_S)
        assert waits.is_alive()  # no job runs: nothing is to be served, and nobody could be heard
        jobs.start()
        time.sleep(LONGER_S)
        assert waits.is_alive() and last_claim(second.kafka, SERVING) == deployment_name(first.var_dir)
        silent.set()
        waits.join(PATIENCE_S)
    finally:
        over.set()
        if jobs.is_alive():
            jobs.join()
    assert not waits.is_alive() and "taking over" in capsys.readouterr().out
