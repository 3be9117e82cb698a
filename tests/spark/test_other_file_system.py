"""Where Spark looks for paths on another file system than Python, as on YARN, nothing that needs both begins."""

from functools import partial

import pytest

from configs.contract import Contract
from configs.errors import SettingsError
from configs.settings import load
from pipelines.jobs import apart, word_count
from pipelines.jobs.launch import Launch, replay_if_possible
from pipelines.jobs.plans import merged
from tidecast.backfill import replay_into, replay_into_topic
from tidecast.backfill.spec import BackfillError
from tidecast.merge import MergeSink
from tidecast.recovery import recover
from tidecast.recovery.checkpoint import RecoveryError
from tidecast.replay.own_session import own_session

pytestmark = pytest.mark.spark

ELSEWHERE = "hdfs://127.0.0.1:1"


@pytest.fixture
def there(spark):
    """A session whose paths are on HDFS."""
    own = own_session(spark)
    own.conf.set("fs.defaultFS", ELSEWHERE)
    return own


def launch(spark, folder, order="in_order", **replay):
    settings = load(kafka={"bootstrap": "127.0.0.1:1"}, replay=replay, var=folder)
    stated = Contract.model_validate({"job": "orders", "backpressure": {"recovery": {"order": order}}})
    return Launch("orders", spark, settings, folder, {"events": {0: 0}}, stated)


@pytest.mark.parametrize(
    ("begin", "error"),
    [
        (lambda spark, at: replay_into(spark, at, None, {}), BackfillError),
        (lambda spark, at: replay_into_topic(spark, "results", None, {}, None, at), BackfillError),
        (lambda spark, at: recover(spark, "o", MergeSink(at, ["k"]), {}, f"{at}.live", "live_first"), RecoveryError),
    ],
)
def test_what_a_replay_writes_is_not_looked_for_where_it_is_not(there, tmp_path, begin, error):
    with pytest.raises(error, match=rf'on {ELSEWHERE} .*spark\.conf\.set\("fs\.defaultFS", "file:///"\)'):
        begin(there, str(tmp_path / "t"))


def test_once_spark_looks_where_python_does_ranges_are_read_again(there, tmp_path):
    there.conf.set("fs.defaultFS", "file:///")
    assert replay_into(there, str(tmp_path / "t"), None, {}).start


def test_a_managed_job_runs_there_but_refuses_orders_and_whatever_rests_on_them(there, spark, tmp_path, capsys):
    assert replay_if_possible(word_count.replayable, spark, "orders") is word_count.replayable
    assert replay_if_possible(None, there, "orders") is None and not capsys.readouterr().out
    assert replay_if_possible(word_count.replayable, there, "orders") is None
    assert "orders: its ranges cannot be read again, as Spark keeps" in (said := capsys.readouterr().out)
    assert f"on {ELSEWHERE} " in said and "Orders are refused." in said
    with pytest.raises(SettingsError, match=r"withheld_share=0\.2 withholds: set TIDECAST_REPLAY__WITHHELD_SHARE=0"):
        word_count.start_query(launch(there, tmp_path, withheld_share=0.2))
    with pytest.raises(SettingsError, match=r"order=in_order in orders\.yaml"):
        merged.MergedJob(None, ["key"]).start(launch(there, tmp_path, "live_first"))


def test_its_application_for_replays_alone_ends_at_once(there, tmp_path, monkeypatch):
    monkeypatch.setattr(there, "stop", lambda: None)
    monkeypatch.setattr(apart, "cluster_session", lambda *given, **named: there)
    given = launch(there, tmp_path)
    read = partial(merged.MergedJob(None, ["key"]).apart, "orders")
    with pytest.raises(SettingsError, match=r"orders: its ranges .* Leave backpressure\.apart out of orders\.yaml"):
        apart.read_apart("orders", read, 1, given.settings, given.contract, tmp_path, lambda: True, ("events",))
