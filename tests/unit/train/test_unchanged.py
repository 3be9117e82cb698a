"""A job whose load, settings and champion have not changed is not trained again."""

from types import SimpleNamespace

import pytest

from configs.sections import Training
from pipelines.registry import RegistryError
from pipelines.train.forecaster.run import UnchangedError, refuse_unchanged

TRAINING = Training()
PARAMETERS = {name: str(value) for name, value in TRAINING.model_dump().items()}
SETTLED = {"challenger": "2", "champion": "1", "verdict": "{}"}


class Registry:
    """Version 2 was registered last, by one run; version 1 serves unless another one is given."""

    def __init__(self, parameters=None, tags=None, champion="1", gone=False):
        self._figures = {}, parameters or PARAMETERS, tags or SETTLED
        self._champion, self._gone = champion, gone

    def versions(self, job):
        return [SimpleNamespace(version=at, run_id="run", tags={"data.digest": digest}) for at, digest in
                ((1, "before"), (2, "now"))]  # fmt: skip

    def figures(self, run_id):
        if self._gone:
            raise RegistryError(f"run {run_id!r}: no such run")
        return self._figures

    def champion_version(self, job):
        return self._champion


@pytest.mark.parametrize("champion", ["1", "2"])
def test_the_same_load_is_not_learned_twice(champion):
    with pytest.raises(UnchangedError, match="orders: version 2 was trained on this load"):
        refuse_unchanged(Registry(champion=champion), "orders", TRAINING, "now")


@pytest.mark.parametrize(
    ("registry", "digest"),
    [
        (Registry(), "later"),
        (Registry(), "before"),  # that of an older version: another one was registered since
        (Registry(parameters={**PARAMETERS, "horizon": "3"}), "now"),
        (Registry(tags={"outcome": "no challenger"}), "now"),
        (Registry(tags={"challenger": "2", "champion": "1"}), "now"),  # never judged
        (Registry(champion="3"), "now"),  # it was compared with another one
        (Registry(gone=True), "now"),
    ],
)
def test_what_has_changed_or_was_not_settled_is_trained(registry, digest):
    refuse_unchanged(registry, "orders", TRAINING, digest)


def test_a_job_without_versions_is_trained():
    refuse_unchanged(SimpleNamespace(versions=lambda job: []), "orders", TRAINING, "now")
