"""Signatures of what an agent obeys: who signs, what is refused, and that no message repeats a key."""

import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import driver
from tests.unit.agent.test_commands import Record, wish
from tidecast import agent, modes
from tidecast.commands import Commands
from tidecast.connection.outbox import Outbox
from tidecast.connection.signing import HEADER, SigningKeys
from tidecast.control import clock_key, mode_key
from tidecast.messages import FUTURE_S, Control, Heartbeat, MessageError, Reject, encode
from tidecast.orders import ReplayOrder, order_key

SECRET, OTHER = "0123456789abcdef0123456789abcdef", "f" * 32
# printf 'acme.decisions\0orders\0{"id":"d1"}' | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef
VECTOR = (
    b"e23c7d86999e581e3e7c2574e10e81a4b7341c059f0d94972c61299a67111121", "acme.decisions", "orders",
    b'{"id":"d1"}',
)  # fmt: skip


def test_a_signature_is_the_hmac_of_topic_key_and_value():
    keys = SigningKeys.read(SECRET)
    assert keys.sign(*VECTOR[1:]) == VECTOR[0]
    keys.check(*VECTOR[1:], {HEADER: VECTOR[0]})


@given(st.sampled_from(["topic", "name", "value", "signature"]), st.data())
def test_whatever_is_changed_is_refused(which, data):
    signature, topic, name, value = VECTOR
    record = {"topic": topic, "name": name, "value": value, "signature": signature}
    texts = st.text(st.characters(codec="ascii", exclude_characters="\0"))
    changed = data.draw(texts if isinstance(record[which], str) else st.binary())
    if changed == record[which]:
        return
    record[which] = changed
    with pytest.raises(MessageError, match="signature is not of this job's key"):
        SigningKeys.read(SECRET).check(record["topic"], record["name"], record["value"], {HEADER: record["signature"]})


def test_while_a_key_is_changed_both_are_accepted_and_the_first_signs():
    both, old, new = SigningKeys.read(f"{OTHER}, {SECRET}"), SigningKeys.read(SECRET), SigningKeys.read(OTHER)
    said = "decisions", "orders", b"{}"
    for signer in (old, new, both):
        both.check(*said, {HEADER: signer.sign(*said)})
    assert both.sign(*said) == new.sign(*said) != old.sign(*said)


@pytest.mark.parametrize("text", ["", "tooshort", f"{SECRET},", f"{SECRET},tooshort", " " * 40])
def test_a_short_key_is_refused_and_not_repeated(text):
    with pytest.raises(ValueError, match="at least 32") as refused:
        SigningKeys.read(text)
    assert SECRET not in str(refused.value) and "tooshort" not in str(refused.value)


def test_keys_do_not_show():
    job = driver.job(signing=SigningKeys.read(SECRET))
    assert SECRET not in f"{job!r} {job.signing!r} {job.signing}"
    assert pickle.loads(pickle.dumps(job.signing)) == job.signing


def test_attach_refuses_an_empty_key_of_the_environment(monkeypatch):
    monkeypatch.setenv(agent.SIGNING_KEY, "")
    with pytest.raises(ValueError, match="a signing key of 0 characters"):
        agent.attach(None, "orders")


@pytest.fixture
def job():
    made = driver.job(signing=SigningKeys.read(SECRET), prefix="acme.")
    modes.switch_mode(made, "act")
    return made


@pytest.fixture
def commands(job):
    made = Commands(job, "nowhere:1", {}, waits_for_clock=True)
    made._control_read = True
    return made


class Sender:
    """Gives an agent records on the topics of its deployment, signed with a key or not at all."""

    def __init__(self, commands):
        self.commands = commands

    def __call__(self, topic, key, message, secret=SECRET, signed_for=None):
        record = Record(f"acme.{topic}", key.encode(), None if message is None else encode(message))
        named = signed_for or record.topic
        record.headers = [] if secret is None else [(HEADER, SigningKeys.read(secret).sign(named, key, record.value))]
        self.commands._handle(record)


def order(now):
    return ReplayOrder("r1", "orders", now, "run", {"events": {"0": 0}}, {"events": {"0": 9}})


SAID = {
    "a decision": ("decisions", "orders", lambda now: wish(3, wall_time=now), lambda job: job.actuator.target == 3),
    "a mode": (
        "control", mode_key("orders"), lambda now: Control("orders", now, mode="freeze"),
        lambda job: job.mode == "freeze",
    ),
    "a clock": (
        "control", clock_key("orders"), lambda now: Control("orders", now, None, now, 0.0, 200.0),
        lambda job: job.clock is not None and job.clock.scale == 200,
    ),
    "an order": ("control", order_key("orders", "r1"), order, lambda job: "r1" in job.orders),
    "a sign of life": (
        "heartbeats", "orders", lambda now: Heartbeat("orders", "autoscaler", now, now, 1.0),
        lambda job: job.heard_at > 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SAID)
@pytest.mark.parametrize(
    ("secret", "signed_for", "obeyed"),
    [(SECRET, None, True), (None, None, False), (OTHER, None, False), (SECRET, "beta.decisions", False)],
    ids=["signed", "unsigned", "with another key", "for another deployment"],
)
def test_only_what_is_signed_for_it_moves_an_agent(job, commands, what, secret, signed_for, obeyed):
    topic, key, message, done = SAID[what]
    job.heard_at = 1.0
    assert not done(job)
    Sender(commands)(topic, key, message(time.time()), secret, signed_for)
    assert done(job) == obeyed
    assert [reject.topic for reject in job.outbox.of(Reject)] == ([] if obeyed else [topic])


def test_what_serving_says_of_itself_needs_no_signature(job, commands):
    now = time.time()
    Sender(commands)("heartbeats", "orders", Heartbeat("orders", "serving", now, now, 1.0), secret=None)
    assert job.outbox.of(Reject) == []


def test_a_signed_mode_that_somebody_kept_is_not_obeyed_later(job, commands):
    send, now = Sender(commands), time.time()
    key = mode_key("orders")
    send("control", key, Control("orders", now - FUTURE_S - 60, mode="act"))
    send("control", key, Control("orders", now, mode="freeze"))
    send("control", key, Control("orders", now - FUTURE_S - 60, mode="act"))
    assert job.mode == "freeze" and "send it anew" in job.outbox.of(Reject)[0].reason
    send("control", key, Control("orders", now - 10, mode="act"))  # another person's clock is ten seconds late
    assert job.mode == "act"


@pytest.mark.parametrize("kept", [Control("orders", 1.0, mode="act"), None], ids=["unsigned", "deleted"])
def test_where_a_signed_mode_may_have_been_replaced_an_agent_that_starts_observes(job, kept):
    """Of each key the topic keeps the newest record alone: it may have been a freeze."""
    commands = Commands(job, "nowhere:1", {}, waits_for_clock=False)
    send = Sender(commands)
    send("control", mode_key("orders"), kept, secret=None)
    assert commands._requested_mode == "observe"
    send("control", mode_key("orders"), Control("orders", time.time(), mode="freeze"))  # what somebody says anew counts
    assert commands._requested_mode == "freeze"
    send("control", mode_key("orders"), kept, secret=None)
    assert commands._requested_mode == "freeze"


def test_an_agent_signs_what_it_will_obey_itself(monkeypatch):
    sent = []

    class Producer:
        def partitions_for(self, topic):
            return {0}

        def send(self, topic, **record):
            sent.append((topic, record))
            return self

        def add_errback(self, *how):
            pass

        def add_callback(self, *how):
            pass

    monkeypatch.setattr("tidecast.connection.outbox.producer", lambda *where, **how: Producer())
    outbox = Outbox("nowhere:1", {}, "test", "acme.", SigningKeys.read(SECRET))
    told = order(time.time())
    for topic, key in (("control", order_key("orders", "r1")), ("replays", "orders")):
        outbox.enqueue(topic, key, told)
        outbox.send_next(0)
    (topic, first), (_, second) = sent
    SigningKeys.read(SECRET).check(topic, order_key("orders", "r1"), first["value"], dict(first["headers"]))
    assert second["headers"] == []
