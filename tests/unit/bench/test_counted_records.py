"""Records that are counted exactly are sent by an idempotent producer: one that came twice would be one too many."""

import time
from contextlib import suppress

import pytest

from configs.settings import load
from pipelines.bench.backfill.session import producer
from pipelines.bench.team.real import feed as team
from pipelines.jobs.chains import feed as chains


class RefusedError(RuntimeError):
    """Instead of a publisher."""


def _live(kafka):
    producer.LiveProducer(kafka, 1.0)


def _range(kafka):
    producer.fill_range(kafka, 3, 1)


def _team(kafka):
    team.TeamFeed(kafka, {})


def _chain(kafka):
    with chains.ChainFeed(kafka, "lines", lambda number, at, chance: None, 1.0) as feed:
        while feed._thread.is_alive():
            time.sleep(0.001)
        feed.check()


@pytest.mark.parametrize(
    ("module", "begin"), [(producer, _live), (producer, _range), (team, _team), (chains, _chain)]
)  # fmt: skip
def test_their_producer_is_idempotent(monkeypatch, module, begin):
    given = {}

    def publisher(kafka, **options):
        given.update(options)
        raise RefusedError

    monkeypatch.setattr(module, "Publisher", publisher)
    if module is producer:
        monkeypatch.setattr(producer, "topic_offsets", lambda kafka, topic: {})
    with suppress(RefusedError):
        begin(load().kafka)
    assert given["enable_idempotence"] is True
