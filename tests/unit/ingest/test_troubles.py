"""Whoever ingests without Airflow's task fails by name where a topic was not taken."""

from datetime import UTC, datetime

import pytest

import pipelines.ingest
from pipelines.bench.fleet.batch_work import ingest_all
from pipelines.bench.site.kept import upgrade
from pipelines.ingest.offsets import OffsetsError


def between_releases():
    exec(upgrade._INGEST.format(hour=datetime(2014, 10, 22, 4, tzinfo=UTC)), {})


@pytest.mark.parametrize("caller", [ingest_all, between_releases])
def test_a_topic_in_trouble_fails_who_ingests(caller, monkeypatch):
    took, asked = {"metrics": {"read": 7, "trouble": ""}, "outcomes": {"read": 0, "trouble": ""}}, []
    monkeypatch.setattr(pipelines.ingest, "ingest", lambda partition: asked.append(partition) or (took, []))
    caller()
    took["outcomes"]["trouble"] = "offsets 1 to 2 were deleted"
    with pytest.raises(OffsetsError, match=r"^outcomes: offsets 1 to 2 were deleted$"):
        caller()
    assert len(asked) == 2
