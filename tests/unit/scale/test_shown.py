"""What is said of a job, and where the chain to a decision is broken."""

from dataclasses import replace

import pytest

from configs.contract import Contract
from configs.sections import Kafka
from pipelines.kafka.broker import Record
from pipelines.kafka.signing import Signer
from pipelines.scale import shown
from pipelines.scale.shown import JobSeen, describe_job, read_contract, see_job
from tidecast.connection.signing import HEADER
from tidecast.control import mode_key
from tidecast.messages import Control, Decision, Heartbeat, MetricSample, Reject, encode

NOW, KAFKA, CONTRACT = 1.8e9, Kafka(prefix="acme."), Contract(job="orders")
SAMPLE = MetricSample(
    "orders", "interval", NOW - 2, NOW - 1, arrival_rps=410.0, lag_records=37, executors=3, mode="observe"
)
DECISION = Decision("d7", "orders", NOW, NOW - 4, 1.0, "observe", "mpc", 3, "hold: need 3", ["hold"], {}, {})
BEAT = Heartbeat("orders", "autoscaler", NOW, NOW - 2, 1.0, "d7", NOW - 4, 3, 12)
REJECT = Reject("metrics", 0, 7, "autoscaler", "job 'orders' has no contract", "{}", NOW - 600)


def said(seen, contract=CONTRACT):
    return describe_job("orders", seen, contract, KAFKA, NOW)


def test_a_job_that_is_decided_on_is_shown_from_its_metrics_to_what_stands():
    one = said(JobSeen(replace(SAMPLE, executors=1), (replace(DECISION, executors=1),), BEAT, "observe"))
    assert "lag 37, 1 executor, mode" in one[0] and "by mpc: 1 executor: hold" in one[2]
    assert said(JobSeen(SAMPLE, (DECISION,), BEAT, "observe")) == [
        "measured 1.0 s ago: 410 records/s, lag 37, 3 executors, mode observe",
        "a person has said: observe",
        "recommended 4.0 s ago by mpc: 3 executors: hold: need 3",
        "stands: 12 evaluations since came to the same, as was said 2.0 s ago",
    ]


@pytest.mark.parametrize(
    ("seen", "contract", "words"),
    [
        (JobSeen(None, (), BEAT), CONTRACT, "no metrics on acme.metrics: does the job run, and"),
        (JobSeen(None, (DECISION,), BEAT, since=NOW - 300), CONTRACT,
         "no metrics on acme.metrics of the newest 100,000 of all jobs, the oldest 5 min ago: does the job run"),
        (JobSeen(SAMPLE), CONTRACT, "no sign of an autoscaler for it yet"),
        (JobSeen(replace(SAMPLE, lag_records=None)), CONTRACT, "measured 1.0 s ago: 410 records/s, lag not known"),
        (JobSeen(SAMPLE, (), replace(BEAT, wall_time=NOW - 7300)), CONTRACT, "its autoscaler was heard 2 h ago"),
        (JobSeen(replace(SAMPLE, wall_time=NOW - 130), (), BEAT), CONTRACT, "metrics are 130 s old, and nothing"),
        (JobSeen(SAMPLE, (), BEAT), "orders.yaml: line 3: max=0", "contract: orders.yaml: line 3: max=0"),
        (JobSeen(SAMPLE, (), BEAT, None, (REJECT,)), CONTRACT, "rejected 10 min ago by autoscaler: job"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said(seen, contract, words):
    assert any(line.startswith(words) for line in said(seen, contract)), said(seen, contract)


NOT_HELD = "source Rate[it] takes no limit (no SupportsAdmissionControl): read a topic instead"


def test_live_records_that_cannot_be_held_back_are_told_where_the_contract_asks_for_it():
    seen = JobSeen(replace(SAMPLE, cannot_hold=NOT_HELD), (DECISION,), BEAT)
    asks = Contract(job="orders", backpressure={"controls": {"live_rps": {}}})
    assert said(seen, asks)[1] == (
        f"live records cannot be held back, which its contract asks for: {NOT_HELD}; or take "
        "backpressure.controls.live_rps out of the contract"
    )
    for contract in (CONTRACT, Contract(job="orders", backpressure={}), "orders.yaml: line 3"):
        assert not any("held back" in line for line in said(seen, contract))
    assert not any("held back" in line for line in said(JobSeen(SAMPLE, (DECISION,), BEAT), asks))


def test_an_agent_that_no_longer_reaches_the_broker_is_among_the_reasons_of_old_metrics():
    first, *_ = said(JobSeen(replace(SAMPLE, wall_time=NOW - 130), (DECISION,), BEAT))
    assert "does its agent reach the broker (its log, logger `tidecast`, says so)" in first and "clock" in first


def test_the_newest_of_the_job_is_taken_from_each_topic(monkeypatch):
    other = replace(DECISION, job="payments", id="p1")
    history = replace(SAMPLE, executors=None, wall_time=NOW)
    topics = {
        "metrics": [("orders", replace(SAMPLE, arrival_rps=1.0)), ("orders", SAMPLE), ("orders", history)],
        "decisions": [("orders", replace(DECISION, id=f"d{n}")) for n in range(9)] + [("payments", other)],
        "heartbeats": [("orders", BEAT), ("orders", Heartbeat("orders", "serving", NOW, NOW, 1.0))],
        "control": [(mode_key("orders"), Control("orders", NOW, mode="freeze"))],
        "rejects": [("metrics", REJECT), ("metrics", replace(REJECT, reason="job 'payments' has no contract"))],
    }

    def read(kafka, topic, newest):
        broken = Record(topic, 0, 0, "orders", b"{", NOW)
        return [broken, *(Record(topic, 0, 1, key, encode(message), NOW) for key, message in topics[topic])]

    monkeypatch.setattr(shown, "read_records", read)
    seen = see_job(KAFKA, "orders")
    assert (seen.sample, seen.beat, seen.mode, seen.rejects) == (SAMPLE, BEAT, "freeze", (REJECT,))
    assert [one.id for one in seen.decisions] == ["d4", "d5", "d6", "d7", "d8"]


def test_of_a_job_with_a_key_what_is_not_signed_counts_for_nothing_and_is_named(monkeypatch, tmp_path):
    (tmp_path / "keys.yaml").write_text(f"orders: {'k' * 40}\n")
    kafka = Kafka(prefix="acme.", signing_keys=tmp_path / "keys.yaml")
    by_serving = Heartbeat("orders", "serving", NOW, NOW, 1.0)
    topics = {
        "decisions": [(False, "orders", replace(DECISION, id="foreign")), (True, "orders", DECISION)],
        "heartbeats": [(True, "orders", BEAT), (False, "orders", by_serving)],
        "control": [
            (True, mode_key("orders"), Control("orders", NOW, mode="freeze")),
            (False, mode_key("orders"), Control("orders", NOW, mode="act")),
        ],
    }

    def read(kafka, topic, newest):
        for signed, key, message in topics.get(topic, []):
            signature = Signer.of(kafka).sign(topic, key, encode(message), "orders") if signed else None
            headers = {} if signature is None else {HEADER: signature}
            yield Record(topic, 0, 1, key, encode(message), NOW, headers)

    monkeypatch.setattr(shown, "read_records", read)
    seen = see_job(kafka, "orders")
    assert (seen.decisions, seen.beat, seen.mode) == ((DECISION,), BEAT, "freeze")
    ((topic, why),) = seen.unsigned
    assert topic == "control" and why.startswith("no signature")
    first, *rest = describe_job("orders", seen, CONTRACT, kafka, NOW)
    assert first.startswith("the newest of acme.control for it counts for nothing: no signature")
    assert "a person has said: freeze" in rest


def test_who_cannot_read_the_file_of_keys_sees_what_is_there_and_that_nothing_is_checked(monkeypatch, tmp_path):
    kafka = Kafka(prefix="acme.", signing_keys=tmp_path / "keys.yaml")
    word = Control("orders", NOW, mode="freeze")
    topics = {"decisions": ("orders", DECISION), "heartbeats": ("orders", BEAT), "control": (mode_key("orders"), word)}

    def read(kafka, topic, newest):
        return [Record(topic, 0, 1, key, encode(one), NOW) for at, (key, one) in topics.items() if at == topic]

    monkeypatch.setattr(shown, "read_records", read)
    seen = see_job(kafka, "orders")
    assert (seen.decisions, seen.beat, seen.mode, seen.unsigned) == ((DECISION,), BEAT, "freeze", ())
    first, *_ = describe_job("orders", seen, CONTRACT, kafka, NOW)
    assert first.startswith(f"signatures are not checked: kafka.signing_keys={kafka.signing_keys}: No such file")


def test_a_contract_that_is_not_there_is_said_with_its_file(tmp_path):
    from configs.settings import load

    assert "orders" in read_contract(load(contracts=tmp_path), "orders")


def test_a_job_that_fell_silent_is_looked_for_behind_the_newest_records_of_the_others(monkeypatch):
    others = [("payments", replace(SAMPLE, job="payments"))] * 9

    def read(kafka, topic, newest):
        told = {"metrics": [("orders", SAMPLE), *others], "heartbeats": [("orders", BEAT), *others]}.get(topic, [])
        many = {shown.NEWEST[topic]: 9, shown.DEEP: 10}[newest]
        return [Record(topic, 0, n, key, encode(one), NOW - 20 + n) for n, (key, one) in enumerate(told)][-many:]

    monkeypatch.setattr(shown, "read_records", read)
    seen = see_job(KAFKA, "orders")
    assert (seen.sample, seen.beat, seen.since) == (SAMPLE, BEAT, NOW - 20)
