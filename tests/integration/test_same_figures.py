"""What the console shows of jobs is what the lake holds of them, once their records are ingested."""

import pytest

from configs.settings import load
from pipelines.bench.team.console.same_figures import compare_figures

pytestmark = [pytest.mark.spark, pytest.mark.integration]


def test_every_figure_of_the_console_is_the_lakes(spark, empty_topics, tmp_path):
    settings = load(var=tmp_path, kafka=empty_topics.model_dump())
    found = compare_figures(spark, settings, 2, 200)
    assert found["differing"] == []
    assert found["compared"] > 2 * 200 * 6
