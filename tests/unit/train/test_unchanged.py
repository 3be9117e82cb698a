"""A job whose load, settings and champion have not changed is not trained again."""

import json
import time
from types import SimpleNamespace

import pytest

from configs.sections import Training
from pipelines.registry import RegistryError
from pipelines.train.forecaster.run import UnchangedError, refuse_unchanged

TRAINING = Training()
PARAMETERS = {name: str(value) for name, value in TRAINING.model_dump().items()}
LOST = {"job": "orders", "version": "2", "promoted": False}
SETTLED = {"challenger": "2", "champion": "1", "verdict": json.dumps(LOST)}
WON = SETTLED | {"verdict": json.dumps(LOST | {"promoted": True})}
ASKED = Training(approval_s=600.0)


class Registry:
    """Version 2 was registered last, by one run; version 1 serves unless another one is given."""

    def __init__(self, parameters=None, tags=None, champion="1", gone=False, previous=None, held=None, age_s=60.0):
        self._figures = {}, parameters or PARAMETERS, tags or SETTLED
        self._champion, self._gone, self._previous, self._held = champion, gone, previous, held
        self._made_ms = 1000 * (time.time() - age_s)

    def newest_version(self, job):
        tags = {"data.digest": "now"}
        return SimpleNamespace(version=2, run_id="run", tags=tags, creation_timestamp=self._made_ms)

    def figures(self, run_id):
        if self._gone:
            raise RegistryError(f"run {run_id!r}: no such run")
        return self._figures

    def champion_version(self, job):
        return self._champion

    def has_served(self, job, version):
        return version in (self._champion, self._previous)

    def taken_back(self, job):
        return self._held


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
        (Registry(tags=WON), "now"),  # MLflow was away when it was to be promoted
        (Registry(tags=WON, age_s=1e6), "now"),
    ],
)
def test_what_has_changed_or_was_not_settled_is_trained(registry, digest):
    refuse_unchanged(registry, "orders", TRAINING, digest)


def test_a_job_without_versions_is_trained():
    refuse_unchanged(SimpleNamespace(newest_version=lambda job: None), "orders", TRAINING, "now")


@pytest.mark.parametrize(
    "registry",
    [
        Registry(tags=WON, champion="2"),
        Registry(tags=WON, previous="2", held="2"),  # it served, and a person took it back
        Registry(tags=WON, previous="2"),  # it served, and a person let another serve
        Registry(tags=WON, previous="3", held="3"),  # none is promoted before a person does
    ],
)
def test_a_winner_that_serves_or_that_a_person_has_decided_on_is_settled(registry):
    with pytest.raises(UnchangedError):
        refuse_unchanged(registry, "orders", TRAINING, "now")


def test_a_winner_is_settled_while_a_person_may_be_asked_about_it():
    parameters = {name: str(value) for name, value in ASKED.model_dump().items()}
    with pytest.raises(UnchangedError):
        refuse_unchanged(Registry(parameters, WON, age_s=1200.0), "orders", ASKED, "now")
    refuse_unchanged(Registry(parameters, WON, age_s=4300.0), "orders", ASKED, "now")  # silence is consent
