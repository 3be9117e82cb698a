"""Webhooks: what is posted, and that one which is down, slow, or refuses holds nothing up and gives nothing away."""

import http.server
import json
import logging
import threading
import time
from dataclasses import replace

import pytest

from configs.contract import Contract
from configs.settings import load
from models.alerts.followed import Followed
from models.alerts.message import write_message
from models.alerts.standing import MOST, Key, Notice, StandingAlert
from models.pool.state import PoolState
from pipelines.alerts import webhook
from pipelines.alerts.follower import Alerting, Reports, unheard_of
from pipelines.alerts.kept import digest_of, read_told, write_told
from pipelines.alerts.webhook import Channel, host_of, post
from tests.fakes.waiting import PATIENCE_S
from tidecast.messages import MetricSample

SECRET = "T0PSECRET"
BURNS = Key("TidecastBudgetBurnsFast", (("job", "orders"),))
AWAY = Key("TidecastBrokerAway", ())


@pytest.fixture
def served():
    """A server that answers as the path of its address says, and what was posted to it."""
    posted = []

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            posted.append((self.path, body))
            status = next((code for code in (500, 302, 404) if str(code) in self.path), 204)
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", posted
    server.shutdown()
    server.server_close()


def ended(channel, held, now, seconds=PATIENCE_S):
    """Look until a message's outcome is known."""
    until = time.monotonic() + seconds
    while (said := channel.look(held, now, 600)) is None and time.monotonic() < until:
        time.sleep(0.005)
    return said


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        ("ok", ""), ("500", "it answered 500 Internal Server Error"), ("404", "it answered 404 Not Found"),
        ("302", "it answered 302 Found, a redirect"),
    ],
)  # fmt: skip
def test_only_a_success_counts_as_taken_and_no_redirect_is_followed(served, caplog, path, outcome):
    url, posted = served
    with caplog.at_level(logging.DEBUG):
        assert post(f"{url}/{path}/{SECRET}", {"text": "a"}) == outcome
    assert [where for where, _ in posted] == [f"/{path}/{SECRET}"]
    assert SECRET not in caplog.text


@pytest.mark.parametrize("address", [f"http://127.0.0.1:1/{SECRET}", f"https://{SECRET}.invalid:99999/", "http://["])
def test_an_address_that_nobody_answers_is_told_without_it(address, caplog):
    with caplog.at_level(logging.DEBUG):
        outcome = post(address, {})
    assert outcome and SECRET not in outcome and SECRET not in caplog.text


@pytest.mark.parametrize(("left", "told"), [(-0.354, "-35 %"), (-0.004, "-0.4 %")])
def test_what_is_left_of_a_budget_is_told_as_a_share_of_it(left, told):
    spent = Notice("new", Key("TidecastBudgetSpent", (("job", "orders"),)), StandingAlert(0.0, 0.0, left))
    said = f"orders: the error budget is spent and the promise is broken; {told} of the budget is left"
    assert write_message([spent], 0.0)["alerts"][0]["summary"] == said


def test_what_is_posted_says_it_to_people_and_programs(served):
    url, posted = served
    channel = Channel(f"{url}/ok", {})
    assert channel.look({BURNS: 70.0, AWAY: 0.0}, 1.8e9, 600) is None
    assert ended(channel, {BURNS: 75.0, AWAY: 0.0}, 1.8e9 + 1) == ""
    (_, body), (alert,) = posted[0], posted[0][1]["alerts"]
    said = "[page] orders: the error budget is being spent 70.00 times as fast as allowed. `tidecast job"
    assert body["text"].startswith(said)
    assert {name: alert[name] for name in ("alert", "status", "severity", "labels", "since", "value")} == {
        "alert": "TidecastBudgetBurnsFast", "status": "new", "severity": "page", "labels": {"job": "orders"},
        "since": "2027-01-15T08:00:00Z", "value": 70.0,
    }  # fmt: skip
    channel.look({BURNS: 75.0, AWAY: 0.0}, 1.8e9 + 62, 600)
    ended(channel, {}, 1.8e9 + 63)
    channel.look({}, 1.8e9 + 200, 600)
    ended(channel, {}, 1.8e9 + 201)
    assert [one["status"] for _, body in posted for one in body["alerts"]] == ["new", "new", "over", "over"]
    assert posted[-1][1]["text"].splitlines()[0].startswith("over: the broker does not answer")


def test_a_webhook_that_hangs_holds_nothing_up_and_is_given_up():
    over = threading.Event()
    channel = Channel("https://h.example/x", {}, lambda address, message: "" if over.wait(PATIENCE_S) else "slow")
    try:
        for now in range(61):
            assert channel.look({BURNS: 1.0}, now, 600) is None, "a look has waited for it"
        assert channel.look({BURNS: 1.0}, 62, 600).startswith("it has not answered for 60 s. Its alerts wait")
    finally:
        over.set()
    assert channel.failed == 1 and channel.state[BURNS].times == 0


def test_a_webhook_that_fails_is_tried_ever_more_seldom_until_it_takes_the_message():
    tried, answers, threads = [], ["no", "no", "no", ""], threading.enumerate()

    def send(address, message):
        tried.append(now)
        return answers[len(tried) - 1]

    channel = Channel("https://h.example/x", {}, send)
    for now in range(200):
        channel.look({BURNS: 1.0}, now, 600)
        for thread in {*threading.enumerate()} - {*threads}:
            thread.join()
    assert tried == [0, 11, 32, 73] and channel.state[BURNS].times == 1 and channel.failed == 3


def contract(job, address, **more):
    return Contract.model_validate({"job": job, "alerts": {"webhook": address, **more}})


def alerting(tmp_path, sent, outcome="", now=0.0):
    def send(address, message):
        sent.append((address, sorted(one["labels"].get("job", "") for one in message["alerts"])))
        return outcome

    return Alerting(load(var=tmp_path), Reports(), now, send)


def looked(told, held, contracts, *moments, pools=()):
    before = {*threading.enumerate()}
    for now in moments:
        told.look(held, contracts, {state.pool: state for state in pools}, now)
        for thread in {*threading.enumerate()} - before:
            thread.join()


def held(*jobs):
    return {Key("TidecastBudgetBurnsFast", (("job", job),)): 70.0 for job in jobs}


def test_jobs_of_one_webhook_share_a_message_and_what_is_of_no_job_goes_to_all(tmp_path):
    sent, ours, theirs = [], f"https://a.example/{SECRET}", "https://b.example/x"
    contracts = {"a": contract("a", ours), "b": contract("b", ours), "c": contract("c", theirs), "d": Contract(job="d")}
    away = {Key("TidecastBudgetBurnsFast", (("job", job),)): 70.0 for job in "abcd"}
    looked(alerting(tmp_path, sent), {**away, Key("TidecastBrokerAway", ()): 0.0}, contracts, 0, 1, 70, 71)
    assert sent == [(ours, ["a", "b"]), (theirs, ["c"]), (ours, [""]), (theirs, [""])]


def test_of_many_alerts_each_message_takes_so_many_that_a_chat_system_takes_it(tmp_path):
    sent, jobs = [], [f"j{number:02d}" for number in range(90)]
    contracts = {job: contract(job, "https://a.example/x") for job in jobs}
    away = {Key("TidecastBrokerAway", ()): 0.0}
    looked(alerting(tmp_path, sent), held(*jobs) | away, contracts, *range(100))
    assert [len(told) for _, told in sent] == [MOST, MOST, 11]
    assert sorted(job for _, told in sent for job in told) == ["", *jobs]


def test_what_is_of_a_pool_goes_to_the_webhooks_of_its_jobs(tmp_path):
    sent, contracts = [], {job: contract(job, f"https://{job}.example/x") for job in "abc"}
    pools = [PoolState("p", 0.0, "divided", shares=[{"job": "a"}, {"job": "b"}]), PoolState("q", 0.0, "divided")]
    small = {Key("TidecastPoolTooSmall", (("pool", name),)): 4.0 for name in "pq"}
    looked(alerting(tmp_path, sent), small, contracts, 0, 60, 61, pools=pools)
    assert sent == [("https://a.example/x", [""]), ("https://b.example/x", [""])]


def test_a_webhook_in_trouble_is_named_once_and_never_its_secret(tmp_path, capsys, caplog):
    sent, contracts = [], {"a": contract("a", f"https://a.example/{SECRET}?k={SECRET}")}
    with caplog.at_level(logging.DEBUG):
        looked(alerting(tmp_path, sent, "it answered 500"), held("a"), contracts, *range(0, 2000, 5))
    said = capsys.readouterr().err.splitlines()
    assert len(sent) > 3 and len(said) == 1 and "at a.example: it answered 500" in said[0]
    assert SECRET not in said[0] + caplog.text + "".join(file.read_text() for file in tmp_path.iterdir())


def test_a_new_process_tells_nothing_twice_and_what_is_over(tmp_path):
    sent, contracts = [], {"a": contract("a", f"https://a.example/{SECRET}")}
    looked(alerting(tmp_path, sent), held("a"), contracts, 0, 1)
    again = alerting(tmp_path, sent, now=100.0)
    looked(again, held("a"), contracts, 100, 101)
    assert len(sent) == 1
    last = alerting(tmp_path, sent, now=200.0)
    looked(last, {}, contracts, 200, 259)
    assert len(sent) == 1
    looked(last, {}, contracts, 260, 261)
    assert len(sent) == 2 and SECRET not in (tmp_path / "alerts.json").read_text()
    assert (tmp_path / "alerts.json").stat().st_mode & 0o077 == 0


def test_a_new_process_that_cannot_read_the_topics_says_of_no_job_that_it_is_over(tmp_path):
    sent, contracts = [], {"a": contract("a", "https://a.example/x")}
    looked(alerting(tmp_path, sent), held("a") | {Key("TidecastBrokerAway", ()): 0.0}, contracts, 0, 1, 70, 71)
    told = len(sent)
    again, threads = alerting(tmp_path, sent, now=100.0), {*threading.enumerate()}
    for now in (100, 101, 200, 201, 300, 301):  # the broker is back, and its topics are still read
        again.look({}, contracts, {}, now, topics_read=False)
        for thread in {*threading.enumerate()} - threads:
            thread.join()
    assert sent[told:] == [("https://a.example/x", [""])], "the broker's is over, the job's is not"
    looked(again, {}, contracts, 302, 362, 363)
    assert sent[told + 1 :] == [("https://a.example/x", ["a"])]


def test_a_clock_that_is_set_changes_nothing_but_what_is_shown_and_kept(tmp_path):
    bodies, threads = [], {*threading.enumerate()}

    def send(address, message):
        bodies.append(message["alerts"][0])
        return ""

    told, contracts = Alerting(load(var=tmp_path), Reports(), 1.8e9, send), {"a": contract("a", "https://a.example/x")}
    for passed, ahead_s in ((0, 0.0), (1, 0.0), (100, 7200.0), (101, 7200.0), (3601, -3600.0), (3602, -3600.0)):
        told.look(held("a"), contracts, {}, 1.8e9 + passed, ahead_s)
        for thread in {*threading.enumerate()} - threads:
            thread.join()
    assert [(one["status"], one["now"]) for one in bodies] == [
        ("new", "2027-01-15T08:00:00Z"), ("repeated", "2027-01-15T08:00:01Z"),
    ]  # fmt: skip
    (kept,) = read_told(tmp_path / "alerts.json", 1.9e9).values()
    assert next(iter(kept.values())).told_at == 1.8e9 + 1


@pytest.mark.parametrize(("alert", "value", "known"), [
    ("TidecastJobSilent", 7260.0, Followed()),
    ("TidecastJobNotForecast", 7320.0, Followed(sample=MetricSample("a", "interval", 7200.0, 7200.0))),
])  # fmt: skip
def test_what_was_heard_last_before_all_that_a_new_follower_reads_is_not_told_as_over(tmp_path, alert, value, known):
    bodies, threads = [], {*threading.enumerate()}

    def send(address, message):
        bodies.append(message["alerts"][0])
        return ""

    def look(told, at, held, known):
        contracts = {"a": contract("a", "https://a.example/x")}
        told.look(held, contracts, {}, at, unheard=unheard_of({"a": known}, contracts, 7200.0))
        for thread in {*threading.enumerate()} - threads:
            thread.join()

    heard = replace(known, sample=MetricSample("a", "interval", 7200.0, 7200.0), heard={"serving": 7200.0})
    first = Alerting(load(var=tmp_path), Reports(), 0.0, send)
    for at in (0, 31, 32):
        look(first, at, {Key(alert, (("job", "a"),)): 90.0}, heard)
    again = Alerting(load(var=tmp_path), Reports(), 7200.0, send)
    for at in (7200, 7201, 7300, 7301):
        look(again, at, {}, known)
    assert [(one["status"], one["value"]) for one in bodies] == [("new", 90.0), ("repeated", value)]
    for at in (7400, 7401):
        look(again, at, {}, heard)
    assert [one["status"] for one in bodies] == ["new", "repeated", "over"]


@pytest.mark.parametrize("told_at", [1e6 + 7200.0, 1e6 - 7200.0])
def test_what_was_told_by_a_clock_that_was_set_since_is_told_again_in_time(tmp_path, told_at):
    sent, contracts = [], {"a": contract("a", "https://a.example/x")}
    looked(alerting(tmp_path, sent, now=told_at), held("a"), contracts, told_at, told_at + 1)
    again = alerting(tmp_path, sent, now=1e6)
    looked(again, held("a"), contracts, 1e6, 1e6 + 1, 1e6 + 3599)
    assert len(sent) == (1 if told_at > 1e6 else 2)
    looked(again, held("a"), contracts, 1e6 + 3601)
    assert len(sent) == 2


def test_a_webhook_that_is_named_again_later_is_told_what_stands_then(tmp_path):
    sent, contracts = [], {"a": contract("a", "https://a.example/x"), "b": contract("b", "https://b.example/x")}
    looked(alerting(tmp_path, sent), held("a"), contracts, 0, 1)
    again = alerting(tmp_path, sent, now=100.0)
    looked(again, held("a"), contracts, 100, 101)
    looked(again, {}, contracts, 161, 162)
    assert len(sent) == 2, "it is over"
    looked(again, {}, {"b": contracts["b"]}, 200)
    looked(again, {}, contracts, 300, 400, 500)
    assert len(sent) == 2, "and over once"


def test_what_was_told_of_a_webhook_that_no_contract_names_for_a_while_is_kept_over_a_restart(tmp_path):
    sent, contracts = [], {"a": contract("a", "https://a.example/x"), "b": contract("b", "https://b.example/x")}
    looked(alerting(tmp_path, sent), held("a"), {"a": contracts["a"]}, 0, 1)
    looked(alerting(tmp_path, sent, now=100.0), held("b"), {"b": contracts["b"]}, 100, 101)
    assert len(sent) == 2
    looked(alerting(tmp_path, sent, now=200.0), held("a") | held("b"), contracts, 200, 201)
    assert len(sent) == 2, "each has been told of its own"


def test_what_another_release_told_by_other_labels_keeps_no_message_back(tmp_path):
    """Its text could not be filled in: each message with it would fail, for good."""
    standing = StandingAlert(0.0, 0.0, 1.0, 0.0, 1)
    unlike = {Key("TidecastJobSilent", ()): standing, Key("TidecastAsItWas", (("job", "a"),)): standing}
    write_told(tmp_path / "alerts.json", {"a": {**unlike, BURNS: standing}})
    assert read_told(tmp_path / "alerts.json", 1e9) == {"a": {BURNS: replace(standing, held_at=1e9)}}


AS_TOLD = (
    '{"a": [{"key": ["TidecastBrokerAway", []], "standing": {"since": 1, "told_at": %s, "value": %s, "times": 1}}]}'
)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", '{"a": 3}', '{"a": [{"key": ["x", 3], "standing": {}}]}', '{"a": [{}]}', AS_TOLD % ("NaN", 1),
        AS_TOLD % (1, '"v"'),
    ],
)  # fmt: skip
def test_a_file_of_another_form_counts_as_none(tmp_path, text):
    (tmp_path / "alerts.json").write_text(text)
    assert read_told(tmp_path / "alerts.json", 0) == {}


def test_of_an_address_the_host_alone_is_said():
    assert host_of(f"https://u:{SECRET}@hooks.example:8443/{SECRET}") == "hooks.example"
    assert SECRET not in digest_of(f"https://a/{SECRET}") and webhook.GIVE_UP_S > webhook.WAIT_S
