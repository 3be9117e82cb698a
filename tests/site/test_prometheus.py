"""Debian's Prometheus: it reads rules and configuration, scrapes an endpoint, and finds what webhooks are told of."""

import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from dataclasses import replace

import pytest
import yaml

from configs.settings import ROOT
from models.alerts.metric import Sample
from models.alerts.samples import samples_of
from models.alerts.standing import holding
from models.alerts.table import BY_NAME
from pipelines.alerts.exposition import Exposition, open_endpoint
from pipelines.bench.team.alerts.made_up_job import BEGAN, JOB, MadeUpJob
from pipelines.bench.team.alerts.troubles import TROUBLES
from tests.fakes.waiting import wait_until

HOME = ROOT / "docker" / "prometheus"
RULES = [rule for group in yaml.safe_load((HOME / "rules.yaml").read_text())["groups"] for rule in group["rules"]]
SINCE, LAST_S = BEGAN + 600, {"ingest": 11_400, "no_room": 900, "late": 2300}
"""When a trouble begins, and seconds until it shows; 900 unless said here."""


def test_promtool_takes_configuration_and_rules_and_every_case_is_as_it_should_be():
    for command in (["check", "config", "prometheus.yaml"], ["test", "rules", "rules_test.yaml"]):
        subprocess.run(["promtool", *command], cwd=HOME, check=True, timeout=300)


class Prometheus:
    """A Prometheus that scrapes one endpoint every second, and the endpoint."""

    def __init__(self, folder):
        self.exposition = Exposition()
        port, self._close = open_endpoint(self.exposition, "127.0.0.1", 0)
        for name in ("rules.yaml", "prometheus.yaml"):
            shutil.copy(HOME / name, folder)
        config = yaml.safe_load((folder / "prometheus.yaml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["scrape_configs"][0]["static_configs"] = [{"targets": [f"127.0.0.1:{port}"]}]
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self._process = subprocess.Popen(
            ["prometheus", "--config.file=prometheus.yaml", "--storage.tsdb.path=data", "--log.level=warn",
             f"--web.listen-address={self.address}"], cwd=folder,
        )  # fmt: skip

    def query(self, expression):
        asked = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"http://{self.address}/api/v1/query?{asked}", timeout=10) as answer:
            return json.load(answer)["data"]["result"]

    def show(self, samples, at):
        """Expose samples of a moment as if it were now, and wait until they are scraped."""
        passed = time.time() - at
        self.exposition.samples = {
            name: [_later(one, passed) for one in of] if "_timestamp_" in name else of for name, of in samples.items()
        }
        wanted = self.exposition.samples["tidecast_follower_timestamp_seconds"][0].value

        def scraped():
            try:
                found = self.query("tidecast_follower_timestamp_seconds")
            except OSError:  # it starts
                return False
            return found and abs(float(found[0]["value"][1]) - wanted) < 0.01

        wait_until(scraped, "a scrape", every_s=0.1)

    def close(self):
        self._process.terminate()
        self._process.wait(20)
        self._close()


def _later(sample, passed):
    return Sample(sample.metric, sample.labels, sample.value + passed)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    started = Prometheus(tmp_path_factory.mktemp("prometheus"))
    yield started
    started.close()


def shown(prometheus, trouble):
    """Samples of a job after its trouble began, which Prometheus has scraped; and what webhooks are told of."""
    job, now = MadeUpJob(trouble, SINCE), BEGAN
    while now < SINCE + LAST_S.get(trouble, 900):
        known = job.look(now)
        now += 10
    known = replace(known, refused={"serving": 1}, failed={"hooks.example": 1})
    samples = samples_of(known, now, pytest.fail)
    prometheus.show(samples, now)
    return holding(samples, now)


@pytest.mark.parametrize("trouble", ["", *TROUBLES])
def test_rules_and_webhooks_find_the_same(prometheus, trouble):
    held = shown(prometheus, trouble)
    assert {key.alert for key in held} == ({TROUBLES[trouble].alert} if trouble else set())
    for rule in RULES:
        names = BY_NAME[rule["alert"]].condition.all[0].labels if rule["alert"] in BY_NAME else ()
        found = {tuple(sorted((name, one["metric"][name]) for name in names)) for one in prometheus.query(rule["expr"])}
        assert found == {key.labels for key in held if key.alert == rule["alert"]}, rule["alert"]


def test_every_query_of_the_dashboards_is_understood_and_finds_something(prometheus):
    shown(prometheus, "deaf")
    time.sleep(2.5)  # a rate takes two scrapes
    empty = set()
    for file in sorted((HOME / "dashboards").glob("*.json")):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel["targets"]:
                if not prometheus.query(target["expr"].replace("$job", JOB)):
                    empty.add(panel["title"])
    quiet = {"Alerts", "Until a pool is too small", "Reported drift", "Decisions and outcomes, an hour"}
    assert empty <= quiet, "nobody drifted or answered here"
