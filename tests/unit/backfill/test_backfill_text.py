"""What a terminal says of replays, and what the command refuses before it asks anybody."""

import pytest
from typer.testing import CliRunner

from configs.errors import SettingsError
from pipelines.backfill import application, ordering
from pipelines.backfill.follow import FollowedOrder
from pipelines.backfill.text import describe_order, describe_progress
from pipelines.cli.app import app
from pipelines.cli.backfill import _follow
from tidecast.orders import ReplayOrder, ReplayProgress

ORDER = ReplayOrder("fix", "orders", 1.0, "run", {"events": {"0": 5}}, {"events": {"0": 41_205}})


def _said(state, done, **fields):
    return ReplayProgress("fix", "orders", 1.0, 1.0, 1.0, state, 41_200, done, **fields)


def test_an_order_and_its_progress_are_a_line_each():
    assert describe_order(ORDER) == "orders: replay fix, 41,200 records, at what live records leave"
    assert describe_order(ReplayOrder(**{**vars(ORDER), "weight": 2.5, "weighted": True})).endswith(", weight 2.5")
    bounded = ReplayOrder(**{**vars(ORDER), "most_rps": 250.0})
    assert describe_order(bounded).endswith("at 250 records/s at most")
    running = _said("running", 10_300, rps=95.4, admitted_rps=100.0)
    assert describe_progress(running) == (
        "[######..................]  25% running, 10,300 of 41,200, 95 of 100 records/s, 5 min left"
    )
    failed = _said("failed", 0, reason="its source is gone")
    assert describe_progress(failed) == "[........................]   0% failed, 0 of 41,200, its source is gone"
    assert describe_progress(_said("running", 41_100, rps=2.0, admitted_rps=2.0)).endswith("50 s left")
    assert describe_progress(_said("running", 0, rps=2.0)).endswith("5.7 h left")


@pytest.mark.parametrize(("options", "words"), [
    (["--from", "2026-03-01"], "a range has two ends"),
    (["--pause", "a", "--cancel", "b"], "give a range, or one of"),
    (["--publish", "a", "--cancel", "b"], "give a range, or one of"),
    (["--by", "07:00", "--sure", "0.9"], "--by, --sure: of a new replay; give its range"),
    (["--compare", "--resume", "a"], "--compare: of a new replay; give its range"),
    (["--topic", "sales", "--late-s", "300"], "--late-s, --topic: of a new replay; give its range"),
    (["--cancel", "a", "--name", "b", "--table", "/t"], "--name, --table: of a new replay; give its range"),
    (["--from", "2026-03-01", "--to", "2026-03-02", "--sure", "0.9"], "give one, --by"),
    (["--from", "2026-03-01", "--to", "2026-03-02", "--cancel", "b"], "give a range, or one of"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_by_its_option(options, words):
    result = CliRunner().invoke(app, ["backfill", "orders", *options])
    assert isinstance(result.exception, SettingsError) and words in str(result.exception)


def test_a_topic_is_given_once_for_each_that_the_job_reads(monkeypatch):
    asked, span = [], ["--from", "2026-03-01", "--to", "2026-03-02", "--no-wait"]
    monkeypatch.setattr(ordering, "make_order", lambda settings, one: asked.append(one) or ORDER)
    monkeypatch.setattr(application, "give_order", lambda settings, one: None)
    for topics in ([], ["--topic", "sales"], ["--topic", "sales", "--topic", "refunds"]):
        assert CliRunner().invoke(app, ["backfill", "orders", *span, *topics]).exit_code == 0
    assert [one.topics for one in asked] == [(), ("sales",), ("sales", "refunds")]


def test_one_that_is_tried_again_is_told_of_once_until_something_is_new(capsys):
    failed = FollowedOrder(_said("failed", 0, reason="it failed and is tried again in 160 s: away", tried_again=True))
    assert _follow([failed, failed, failed, FollowedOrder(_said("done", 41_200))]) == "done"
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()] == ["failed,", "done,"]
