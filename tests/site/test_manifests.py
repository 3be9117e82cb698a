"""Kubernetes' manifests, and an overlay as it is built, by its own schemas: nothing in them that these do not know."""

import shutil
import subprocess

import kubernetes_validate
import pytest
import yaml

from configs.settings import ROOT

FOLDER = ROOT / "docker" / "kubernetes"
MANIFESTS = [
    pytest.param(one, id=f"{one['kind']} {one['metadata']['name']}")
    for file in sorted((FOLDER / "base").glob("*.yaml"))
    if file.name != "kustomization.yaml"
    for one in yaml.safe_load_all(file.read_text())
]


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_a_manifest_is_as_the_newest_schema_has_it(manifest):
    version = kubernetes_validate.latest_version()
    kubernetes_validate.validate(manifest, version, strict=True)


def test_a_field_that_kubernetes_does_not_know_is_seen():
    wrong = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"portz": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)


@pytest.fixture(scope="module")
def built():
    """Manifests of the example overlay, as `kubectl apply -k` would send them."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl, which builds overlays, is not installed")
    command = ["kubectl", "kustomize", str(FOLDER / "example")]
    return list(yaml.safe_load_all(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def _values(value, key):
    """All that stands under a key, at whatever depth."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from [one] if name == key else _values(one, key)
    elif isinstance(value, list):
        for one in value:
            yield from _values(one, key)


def test_an_overlay_is_as_the_newest_schema_has_it(built):
    version = kubernetes_validate.latest_version()
    for manifest in built:
        kubernetes_validate.validate(manifest, version, strict=True)
    base = {(one.values[0]["kind"], one.values[0]["metadata"]["name"]) for one in MANIFESTS}
    assert base <= {(one["kind"], one["metadata"]["name"]) for one in built}


def test_an_overlay_names_image_namespace_and_what_it_has_made(built):
    assert {one["metadata"]["namespace"] for one in built} == {"tidecast"}
    ours = {one for one in _values(built, "image") if "tidecast" in one}
    assert ours == {"registry.example.com/tidecast:VERSION"}
    made = {(one["kind"], one["metadata"]["name"]) for one in built}
    assert ("ConfigMap", "contracts") in made  # without a hash: a changed contract restarts no pod
    keys = {"configMapRef": "ConfigMap", "configMap": "ConfigMap", "secretRef": "Secret", "secretKeyRef": "Secret"}
    asked = [(kind, one) for key, kind in keys.items() for one in _values(built, key)]
    assert asked and {(kind, one["name"]) for kind, one in asked if not one.get("optional")} <= made
