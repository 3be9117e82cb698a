"""The deployment files hold together; no container engine is needed to see that."""

import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import yaml
from kafka.protocol.metadata import ApiVersionsRequest

from configs.files import QUICK
from configs.settings import ROOT, Settings
from pipelines.scale.beside import END_S
from pipelines.spark import jars
from pipelines.stack.services.kafka import MARKS_MINUTES

DOCKER = ROOT / "docker"
COMPOSE = yaml.load((DOCKER / "compose.yaml").read_text(), QUICK)
OUTSIDE = yaml.load((DOCKER / "outside.yaml").read_text(), QUICK)
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
SERVICES = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "tidecast"}
BUILT = [name for name, service in SERVICES.items() if "build" in service]
EXAMPLE = DOCKER / "kubernetes" / "example"
OVERLAY = yaml.load((EXAMPLE / "kustomization.yaml").read_text(), QUICK)
LITERALS = [line for one in OVERLAY["configMapGenerator"] for line in one.get("literals", [])]
SECRETS = (EXAMPLE / "secrets.env").read_text()
MANIFESTS = [
    one
    for file in sorted((DOCKER / "kubernetes" / "base").glob("*.yaml"))
    if file.name != "kustomization.yaml"
    for one in yaml.load_all(file.read_text(), QUICK)
]


def test_services_depend_on_services_that_exist_and_have_a_check_where_they_must_be_healthy():
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            assert other in SERVICES, f"{name} depends on {other}"
            assert how["condition"] != "service_healthy" or "healthcheck" in SERVICES[other]


def test_every_service_that_is_to_run_for_good_has_a_check():
    lasting = {name for name, service in SERVICES.items() if service["restart"] == "unless-stopped"}
    assert set(SERVICES) - lasting == {"word-count", "load"}  # of the demo
    assert [name for name in lasting if "healthcheck" not in SERVICES[name]] == []


def test_volumes_are_declared_and_files_that_are_mounted_exist():
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (DOCKER / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]


def test_what_a_person_adds_to_contracts_pools_and_topologies_is_seen_in_every_container_that_reads_it():
    read = {f"/opt/tidecast/configs/{name}" for name in ("contracts", "pools", "topologies")}
    mounted = {name: {volume.split(":")[1] for volume in one.get("volumes", [])} for name, one in OURS.items()}
    for _, container in _containers():
        mounted[f"container {container['name']}"] = {one["mountPath"] for one in container.get("volumeMounts", [])}
    readers = {"autoscaler", "airflow-scheduler", "airflow-api-server", "airflow-dag-processor", "metrics"}
    readers |= {f"container {name.removeprefix('airflow-')}" for name in readers}
    assert readers <= {name for name, paths in mounted.items() if read <= paths}
    assert [name for name, paths in mounted.items() if read & paths and not read <= paths] == []


def test_a_changed_contract_restarts_no_pod():
    """Under a name with the hash of what it holds, each change would be another config map, and another pod."""
    (contracts,) = (one for one in OVERLAY["configMapGenerator"] if one["name"] == "contracts")
    assert contracts["options"] == {"disableNameSuffixHash": True}


def test_a_contract_or_pool_with_a_secret_address_may_be_a_secret_of_the_cluster():
    (spec,) = (spec for spec, container in _containers() if container["name"] == "autoscaler")
    for name in ("contracts", "pools"):
        (volume,) = (one for one in spec["volumes"] if one["name"] == name)
        sources = volume["projected"]["sources"]
        assert sources == [{kind: {"name": name, "optional": True}} for kind in ("configMap", "secret")]


def test_ports_are_published_on_the_loopback_only_unless_a_person_names_an_address():
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published and all(port.startswith("127.0.0.1:") for port in published)
    assert all(port.startswith("${KAFKA_OUTSIDE_ADDRESS:?") for port in OUTSIDE["services"]["kafka"]["ports"])


def test_the_image_is_built_once():
    assert len(BUILT) == 1 and BUILT[0] in OURS


def test_our_containers_have_no_rights_and_write_on_volumes_alone():
    assert {"autoscaler", "mlflow", "spark-worker", "airflow-scheduler"} <= set(OURS)
    for name, service in OURS.items():
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
    assert re.findall(r"^USER (\w+)$", DOCKERFILE, re.M) == ["tidecast"]


def test_every_tidecast_variable_is_a_setting_that_exists():
    manifests = [line.split("=")[0] for line in (*LITERALS, *SECRETS.splitlines())]
    assert {"TIDECAST_KAFKA__BOOTSTRAP", "TIDECAST_AIRFLOW__PASSWORD"} <= set(manifests)
    compose = [name for service in SERVICES.values() for name in service["environment"]]
    for name in (*compose, *manifests):
        if name.startswith("TIDECAST_"):
            section, key = name.removeprefix("TIDECAST_").lower().split("__")
            assert key in Settings.model_fields[section].annotation.model_fields, name


def test_containers_ask_each_other_past_a_proxy_that_the_engine_hands_them():
    named = set(re.findall(r"https?://([\w.-]+)", (DOCKER / "compose.yaml").read_text()))
    assert {"mlflow", "airflow-api-server"} <= named
    for name, service in OURS.items():
        for spared in ("no_proxy", "NO_PROXY"):  # one client reads the one, another the other
            hosts = service["environment"].get(spared, "").split(",")
            assert {*named, "localhost"} <= {*hosts}, name
            assert {"${NO_PROXY:-}", "${no_proxy:-}"} <= {*hosts}, name


def test_no_secret_has_a_value_and_each_is_used():
    text = (DOCKER / "compose.yaml").read_text()
    named = re.findall(r"^([A-Z_]+)=(.*)$", (DOCKER / ".env.example").read_text(), re.M)
    for name, value in named:
        assert value == "" and re.findall(rf"\$\{{{name}:\?", text), name
        assert not re.findall(rf"\$\{{{name}:-", text), f"{name} has a default"
    assert {name for name, _ in named} == set(re.findall(r"\$\{([A-Z_]+):\?see docker/.env.example", text))


def test_the_brokers_image_has_the_version_of_the_embedded_one():
    wanted = re.search(r"kafka_2\.13:([\d.]+)", jars.COORDINATES["broker"][0])[1]
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{wanted}"


def test_the_broker_keeps_what_was_sent_once_for_as_long_as_the_embedded_one():
    assert SERVICES["kafka"]["environment"]["KAFKA_OFFSETS_RETENTION_MINUTES"] == MARKS_MINUTES > 5 * 365 * 24 * 60


def test_nothing_secret_goes_into_the_image(tmp_path):
    from docker.utils import exclude_paths  # it takes a part of a second, which workers that only collect do without

    secret = {
        "docker/.env", "docker/kubernetes/ours/secrets.env", "var/settings.yaml", ".git/config",
        "configs/contracts/orders.yaml", "configs/contracts/plans/orders.yaml", "configs/pools/shared.yaml",
    }  # fmt: skip
    for name in (*secret, "configs/default.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    sent = exclude_paths(str(tmp_path), (ROOT / ".dockerignore").read_text().split())
    assert "configs/default.yaml" in sent and not secret & sent
    assert {"/docker/.env", "/docker/kubernetes/ours/"} <= set((ROOT / ".gitignore").read_text().split())


def _containers():
    for one in MANIFESTS:
        if one["kind"] == "StatefulSet":
            spec = one["spec"]["template"]["spec"]
            for container in (*spec.get("initContainers", []), *spec["containers"]):
                yield spec, container


def test_the_same_services_stand_in_the_manifests_but_broker_and_spark_which_a_cluster_has():
    named = {container["name"] for _, container in _containers()}
    elsewhere = {"kafka", "spark-master", "spark-worker", "word-count", "load"}
    assert {name.removeprefix("airflow-") for name in set(SERVICES) - elsewhere} == named - {"migrate"}


def test_no_pod_has_rights():
    for spec, container in _containers():
        assert spec["securityContext"]["runAsNonRoot"] and not spec["automountServiceAccountToken"]
        assert not container["securityContext"]["allowPrivilegeEscalation"], container["name"]
        if container["image"] == "tidecast":
            assert container["securityContext"]["readOnlyRootFilesystem"], container["name"]


@pytest.mark.parametrize("given", ["looks", "", None])
def test_every_login_of_airflow_has_a_password_that_it_does_not_make_up_and_print(monkeypatch, given):
    """Without a password of a person's own the viewer's is one that nobody knows."""
    (container,) = (one for _, one in _containers() if one["name"] == "api-server")
    for command in (SERVICES["airflow-api-server"]["command"], container["command"]):
        assert "python docker/logins.py > /tmp/passwords.json\nexec airflow" in command[-1]
    given_to = SERVICES["airflow-api-server"]["environment"]
    logins = given_to["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"]
    assert f"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS={logins}" in LITERALS
    assert given_to["AIRFLOW_VIEWER_PASSWORD"] == "${AIRFLOW_VIEWER_PASSWORD:-}"
    monkeypatch.setenv("TIDECAST_AIRFLOW__PASSWORD", "all")
    monkeypatch.delenv("AIRFLOW_VIEWER_PASSWORD", raising=False)
    if given is not None:  # compose hands an empty one on
        monkeypatch.setenv("AIRFLOW_VIEWER_PASSWORD", given)
    printed = subprocess.run([sys.executable, DOCKER / "logins.py"], capture_output=True, check=True).stdout
    passwords = json.loads(printed)
    assert [*passwords] == [login.split(":")[0] for login in logins.split(",")] == ["admin", "viewer"]
    assert passwords["admin"] == "all"
    assert passwords["viewer"] == given if given else len(passwords["viewer"]) >= 32


def test_what_a_task_leaves_behind_is_reaped_where_tasks_run():
    """Its JVM ends after it, as a child of the first process, and neither Airflow nor Tidecast waits for strangers."""
    assert [name for name, service in OURS.items() if not service["init"]] == []
    (spec,) = (spec for spec, container in _containers() if container["name"] == "scheduler")
    assert spec.get("shareProcessNamespace") is True


def test_the_overlay_gives_all_that_the_base_asks_for():
    given = {one["name"] for one in (*OVERLAY["configMapGenerator"], *OVERLAY["secretGenerator"])}
    own = {one["metadata"]["name"] for one in MANIFESTS if one["kind"] == "ConfigMap"}
    for spec, container in _containers():
        for source in container.get("envFrom", []):
            assert next(iter(source.values()))["name"] in given
        for variable in container.get("env", []):
            if key := variable.get("valueFrom", {}).get("secretKeyRef"):
                assert f"{key['key']}=" in SECRETS
        for volume in spec.get("volumes", []):
            for source in volume.get("projected", {"sources": [volume]})["sources"]:
                asked = source.get("configMap") or source.get("secret") or {"optional": True}
                assert asked.get("optional") or asked["name"] in given | own
    assert not re.findall(r"^[A-Z_]+=.+$", SECRETS, re.M)


class Page(BaseHTTPRequestHandler):
    told = b""

    def do_GET(self):
        self.send_response(200 if self.told else 503)
        self.end_headers()
        self.wfile.write(self.told)

    def log_message(self, *_):
        pass


@pytest.mark.parametrize(
    ("told", "parts", "status"),
    [
        (b"OK", [], 0),
        (b"", [], 1),
        (json.dumps({"scheduler": {"status": "healthy"}}).encode(), ["scheduler"], 0),
        (json.dumps({"scheduler": {"status": "unhealthy"}}).encode(), ["scheduler"], 1),
        (json.dumps({"scheduler": {"status": "healthy"}}).encode(), ["scheduler", "dag_processor"], 1),
        (b"<html>", ["scheduler"], 1),
    ],
)
def test_a_check_fails_where_it_should(told, parts, status):
    page = type("Told", (Page,), {"told": told})
    with HTTPServer(("127.0.0.1", 0), page) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/health"
        done = subprocess.run([sys.executable, DOCKER / "health.py", url, *parts], capture_output=True, text=True)
        server.shutdown()
    assert done.returncode == status and (url in done.stderr) == bool(status)


def test_mlflows_check_asks_its_database_and_is_let_in():
    """MLflow refuses a host that it was not told, as the address of a pod, but on the page that asks no database."""
    asked = "/api/2.0/mlflow/experiments/search?max_results=1"
    assert SERVICES["mlflow"]["healthcheck"]["test"][-1] == f"http://127.0.0.1:5000{asked}"
    (container,) = (one for _, one in _containers() if one["name"] == "mlflow")
    ready = container["readinessProbe"]["httpGet"]
    assert ready["path"] == asked and container["livenessProbe"]["httpGet"]["path"] == "/health"
    allowed = container["command"][container["command"].index("--allowed-hosts") + 1].split(",")
    assert {one["name"]: one["value"] for one in ready["httpHeaders"]}["Host"] in allowed


def test_airflows_check_asks_what_its_page_says_of_the_database():
    """The page answers 200 whatever that is."""
    asked = ["python", "docker/health.py", "http://127.0.0.1:8080/api/v2/monitor/health", "metadatabase"]
    assert SERVICES["airflow-api-server"]["healthcheck"]["test"] == ["CMD", *asked]
    (container,) = (one for _, one in _containers() if one["name"] == "api-server")
    assert container["readinessProbe"]["exec"]["command"] == asked


@pytest.mark.parametrize(
    ("number", "status"), [(b"tide", 0), (b"edit", 1), (None, 1)], ids=["an answer", "of another request", "stuck"]
)
def test_kafkas_check_fails_where_the_broker_takes_connections_and_does_not_answer(number, status):
    command, asked = SERVICES["kafka"]["healthcheck"]["test"][-1], []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                asked.append(connection.recv(14, socket.MSG_WAITALL))
                if number:
                    connection.sendall((12).to_bytes(4) + number + bytes(8))
                with suppress(ConnectionResetError):
                    connection.recv(1)  # until the other side has ended

        threading.Thread(target=answer, daemon=True).start()
        mine = command.replace("/kafka/9092", f"/127.0.0.1/{server.getsockname()[1]}").replace("timeout 5", "timeout 1")
        done = subprocess.run(["bash", "-c", mine], capture_output=True)
    assert (done.returncode == 0) == (status == 0)
    size, key, version, correlation, client = struct.unpack(">ihhih", asked[0])
    assert (size, key, version, client) == (10, ApiVersionsRequest.API_KEY, 0, -1)
    assert correlation.to_bytes(4) == b"tide"


def test_kafkas_check_fails_where_nobody_listens():
    command = SERVICES["kafka"]["healthcheck"]["test"][-1].replace("/kafka/9092", "/127.0.0.1/1")
    assert subprocess.run(["bash", "-c", command], capture_output=True).returncode


@pytest.mark.parametrize(
    ("ages_s", "status"), [((), 1), ((1005, 5), 0), ((1500, 500), 1), ((-3600,), 1), ((-3600, -3500, 5), 0)]
)
def test_a_query_whose_micro_batches_have_ended_is_said_to_be_sick(tmp_path, ages_s, status):
    """Below 0: written before the clock was set back."""
    for number, age_s in enumerate(ages_s):
        (tmp_path / f"{number}").touch()
        os.utime(tmp_path / f"{number}", (time.time() - age_s,) * 2)
    told = [sys.executable, DOCKER / "fresh.py", tmp_path, "60"]
    done = subprocess.run(told, capture_output=True, text=True)
    assert done.returncode == status and (str(tmp_path) in done.stderr) == bool(status)


def test_an_autoscaler_that_is_ended_has_the_time_to_hand_over():
    waits = 3 * END_S  # for contracts, grants and the look at the topics; its query, and Spark, end besides
    assert int(SERVICES["autoscaler"]["stop_grace_period"].removesuffix("s")) >= 2 * waits


def test_the_autoscalers_check_looks_at_its_own_checkpoint():
    service = SERVICES["autoscaler"]
    folder = service["command"][service["command"].index("--checkpoint") + 1]
    assert service["healthcheck"]["test"][2:4] == ["docker/fresh.py", f"{folder}/commits"]
    (container,) = (one for _, one in _containers() if one["name"] == "autoscaler")
    assert container["livenessProbe"]["exec"]["command"][1:3] == ["docker/fresh.py", f"{folder}/commits"]
    assert container["command"] == service["command"]
