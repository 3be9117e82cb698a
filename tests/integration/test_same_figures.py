"""What the console shows of jobs is what the lake holds of them, once their records are ingested."""

import pytest

from configs.settings import load
from pipelines.bench.team.console import same_figures

pytestmark = [pytest.mark.spark, pytest.mark.integration]


def test_every_figure_of_the_console_is_the_lakes(spark, empty_topics, tmp_path, monkeypatch):
    monkeypatch.setattr(same_figures, "PAUSE_S", 0.1)  # they still come one by one
    settings = load(var=tmp_path, kafka=empty_topics.model_dump())
    found = same_figures.compare_figures(spark, settings, 2, 200)
    assert found["differing"] == []
    assert found["compared"] > 2 * 200 * 6
