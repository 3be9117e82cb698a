"""Kubernetes' manifests by its own schemas, and nothing in them that these do not know."""

import kubernetes_validate
import pytest
import yaml

from configs.settings import ROOT

BASE = ROOT / "docker" / "kubernetes" / "base"
MANIFESTS = [
    pytest.param(one, id=f"{one['kind']} {one['metadata']['name']}")
    for file in sorted(BASE.glob("*.yaml"))
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
