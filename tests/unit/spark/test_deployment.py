"""The deployment files hold together; no container engine is needed to see that."""

import re
from importlib.metadata import version

import pytest
import yaml

from configs.settings import ROOT, Settings
from pipelines.spark import jars

COMPOSE = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text()
SERVICES = COMPOSE["services"]


def test_services_depend_on_services_that_exist():
    for name, service in SERVICES.items():
        for other in service.get("depends_on", []):
            assert other in SERVICES, f"{name} depends on {other}"


def test_a_service_that_must_be_healthy_has_a_check():
    for service in SERVICES.values():
        wanted = service.get("depends_on", {})
        for other, how in wanted.items() if isinstance(wanted, dict) else []:
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other]


def test_volumes_and_secrets_are_declared():
    for service in SERVICES.values():
        assert {v.split(":")[0] for v in service.get("volumes", [])} <= set(COMPOSE["volumes"])
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])


def test_ports_are_published_on_the_loopback_only():
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published and all(port.startswith("127.0.0.1:") for port in published)


def test_addresses_are_settings_that_exist():
    for name in COMPOSE["x-addresses"]:
        if name.startswith("TIDECAST_"):
            section, key = name.removeprefix("TIDECAST_").lower().split("__")
            assert key in Settings.model_fields[section].annotation.model_fields


def test_no_secret_has_a_value():
    text = (ROOT / "docker" / "compose.yaml").read_text()
    for name in re.findall(r"^([A-Z_]+)=", (ROOT / "docker" / ".env.example").read_text(), re.M):
        assert re.findall(rf"\$\{{{name}[:}}]", text), f"{name} is not used"
        assert not re.findall(rf"\$\{{{name}:-", text), f"{name} has a default"


@pytest.mark.parametrize(
    ("image", "wanted"),
    [
        (SERVICES["kafka"]["image"], re.search(r"kafka_2\.13:([\d.]+)", jars.COORDINATES["broker"][0])[1]),
        (SERVICES["mlflow"]["image"], version("mlflow")),
        (re.search(r"FROM (apache/airflow:\S+)", DOCKERFILE)[1], version("apache-airflow-core")),
        (re.search(r"FROM (apache/spark:\S+)", DOCKERFILE)[1], version("pyspark")),
    ],
)
def test_images_have_the_versions_of_the_lock(image, wanted):
    assert re.search(rf":v?{re.escape(wanted)}(-|$)", image), f"{image}: {wanted} is expected"
