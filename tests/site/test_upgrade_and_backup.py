"""An upgrade beside a job under load and the way back, and a backup on an empty folder: nothing is lost."""

import pytest

from configs.settings import load
from pipelines.bench.site.kept.backup import back_up_and_restore
from pipelines.bench.site.kept.upgrade import upgrade_and_back


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYSPARK_SUBMIT_ARGS")
        return upgrade_and_back(load(), tmp_path_factory.mktemp("upgrade"))


def test_an_upgrade_and_the_way_back_lose_nothing(changed):
    assert changed["lost"] == []
    assert changed["produced"] == changed["counted"] > 2000


@pytest.mark.parametrize("way", ["forth", "back"])
def test_decisions_go_on_by_forecasts(changed, way):
    print(f"{way}: nobody decided for {changed[way]['silent_s']} s")
    assert changed[way]["on_forecasts"] >= 1


def test_a_backup_is_all_there_on_an_empty_folder_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS")
    found = back_up_and_restore(load(), tmp_path)
    assert found["lost"] == []
    assert found["produced"] == found["counted"] > 2000
    assert found["compared"] > 40 and found["went_on"] >= 1
