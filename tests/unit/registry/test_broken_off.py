"""The way back after a change of the champion that MLflow has taken by half."""

from types import SimpleNamespace

import pytest

from pipelines.registry.aliases import CHAMPION, PREVIOUS, AliasStore
from pipelines.registry.owned import KIND

JOB = "orders"


class Models(AliasStore):
    """A store whose MLflow is this object: aliases, and tags by version."""

    def __init__(self, versions):
        self.now, self.kept, self.away = {}, {str(n): {KIND: "blend"} for n in range(1, versions + 1)}, set()
        self._client, self._uri, self._deployment, self._experiment_id, self._var = self, "here", "ours", "0", None

    def alias_version(self, job, alias):
        return self.now.get(alias)

    def get_model_version(self, name, version):
        return SimpleNamespace(version=version, tags=self.kept[version])

    def search_model_versions(self, condition, max_results, page_token):
        from mlflow.store.entities import PagedList  # else every worker imports MLflow, and few need it

        return PagedList([self.get_model_version("", version) for version in self.kept], token=None)

    def model_tags(self, job):
        return {}

    def set_registered_model_alias(self, name, alias, version):
        if alias in self.away:
            raise ConnectionError("MLflow is away")
        self.now[alias] = version

    def set_model_version_tag(self, name, version, key, value):
        self.kept[version][key] = value


def test_a_promotion_that_was_broken_off_between_the_aliases_keeps_the_way_back():
    models = Models(3)
    models.set_champion(JOB, "1")
    models.set_champion(JOB, "2")
    models.away = {CHAMPION}
    with pytest.raises(ConnectionError):
        models.succeed(JOB, "3", "2")
    assert models.now == {CHAMPION: "2", PREVIOUS: "2"}
    models.away = set()
    assert models.roll_back(JOB) == ("2", "1")
    assert models.now == {CHAMPION: "1", PREVIOUS: "2"} and models.taken_back(JOB) == "2"
