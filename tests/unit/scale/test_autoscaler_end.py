"""An autoscaler that ends: by SIGTERM while its JVM starts, because another one decides, and as its query ends."""

import os
import pwd
import socket
import threading
import time
from functools import partial
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from pipelines.scale import autoscaler, beside
from pipelines.scale.beside import BesideQuery
from pipelines.scale.learned import NOTHING
from pipelines.spark.wall_clock import ClockWatch
from tests.fakes.forked_script import run_script

RIGHT = ClockWatch(float, lambda: None)
"""A clock that nobody sets."""
SCRIPT = """
import os, signal, subprocess
from pathlib import Path
from types import SimpleNamespace
from configs.settings import load
from pipelines.scale import autoscaler, beside

def session(*arguments, python_state):
    assert python_state
    jvm = subprocess.Popen(["grep", "SigIgn", "/proc/self/status"], preexec_fn=lambda: None)  # as PySpark starts it
    jvm.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    return SimpleNamespace(stop=lambda: print("stopped", flush=True))

def start(*arguments):
    print("started", flush=True)
    raise SystemExit(1)

autoscaler.create_topics = lambda kafka: None
autoscaler.Turn = lambda *_: SimpleNamespace(has_come=lambda: True, lost=False)
beside.make_contract_watch = lambda settings, accepted: SimpleNamespace(update=list)
autoscaler.query_session, autoscaler.start_query = session, start
autoscaler.run_autoscaler(load(autoscaler={"policy": "static"}), Path("checkpoint"))
"""


def test_sigterm_while_the_jvm_starts_ends_it_before_the_query_and_spares_the_jvm(tmp_path):
    done = run_script(SCRIPT, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    ignored, *rest = done.stdout.splitlines()
    assert int(ignored.split()[1], 16) & 1 << 14 and rest == ["stopped"]


REFUSED = """
import time
from pathlib import Path
from configs.settings import load
from pipelines.scale import autoscaler, turn

def refuse(kafka):
    time.sleep(0.2)
    print("listened", flush=True)
    raise turn.AnotherAutoscalerError("another autoscaler decides")

turn.refuse_another = refuse
autoscaler.create_topics = lambda kafka: None
autoscaler.query_session = lambda *_, **__: print("session", flush=True)
autoscaler.begin = lambda *_: print("begun", flush=True)
try:
    autoscaler.run_autoscaler(load(autoscaler={"policy": "static"}), Path("checkpoint"))
except turn.AnotherAutoscalerError as error:
    print(error)
"""


def test_one_that_is_refused_has_announced_no_contract_and_told_no_pool(tmp_path):
    done = run_script(REFUSED, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["session", "listened", "another autoscaler decides"]


UNREAD = """
import sys
from pathlib import Path
from types import SimpleNamespace
from configs.settings import load
from pipelines.kafka import signing
from pipelines.scale import autoscaler

keys, seen = Path("keys.yaml").absolute(), sys.argv[1]
keys.write_text("orders: 0123456789abcdef0123456789abcdef")

class Context:  # with two executors
    def parallelize(self, numbers, slices):
        assert len(numbers) == slices == 2
        self.numbers = numbers
        return self

    def flatMap(self, asked):
        return SimpleNamespace(collect=lambda: [told for number in self.numbers for told in asked(number)])

def session(app, settings, cores, master, *, python_state):
    if seen == "gone":
        keys.unlink()  # where executors run it is not
    there = {} if seen == "local" else {"sparkContext": Context()}
    return SimpleNamespace(**there, stop=lambda: print("stopped", flush=True))

signing.TASK_S = 0.0
autoscaler.create_topics = lambda kafka: None
autoscaler.Turn = lambda *_: SimpleNamespace(has_come=lambda: False, lost=False)
autoscaler.stand_by = lambda turn, stop, rehearse: stop.wait(None if seen == "gone" else 0.2) and False
autoscaler.query_session = session
master = {} if seen == "local" else {"master": "spark://host:7077"}
settings = load(autoscaler={"policy": "static", "cores": 2, **master}, kafka={"signing_keys": keys})
autoscaler.run_autoscaler(settings, Path("checkpoint"))
"""


@pytest.mark.parametrize("seen", ["there", "local", "gone"])
def test_where_executors_cannot_read_the_signing_keys_it_ends_and_says_who_has_to(tmp_path, seen):
    done = run_script(UNREAD, tmp_path, seen)
    assert done.stdout.splitlines() == ["stopped"]
    if seen == "gone":
        *_, said = done.stderr.splitlines()
        assert "SettingsError: executors cannot read the file of signing keys" in said
        assert f"kafka.signing_keys={tmp_path / 'keys.yaml'}: No such file or directory" in said
        assert f"on {socket.gethostname()} as {pwd.getpwuid(os.geteuid()).pw_name}" in said and "docs/deploy.md" in said
    assert done.returncode == (seen == "gone")


def test_what_writes_contracts_and_grants_is_waited_for_before_the_next_one_decides(monkeypatch):
    stop, writing, written = threading.Event(), threading.Event(), []

    def tick():
        writing.set()
        stop.wait()
        time.sleep(0.2)
        written.append("contracts")
        return []

    monkeypatch.setattr(beside, "LOOK_S", 0.001)
    begun = BesideQuery(NOTHING, [beside.begin_to_repeat(tick, stop)])
    writing.wait()
    stop.set()
    begun.end()
    assert written == ["contracts"] and not begun.writers[0].is_alive()
    monkeypatch.setattr(beside, "END_S", 0.001)  # nor for ever
    held = threading.Event()
    hangs = BesideQuery(NOTHING, [threading.Thread(target=held.wait, daemon=True)])
    hangs.writers[0].start()
    hangs.end()
    assert hangs.writers[0].is_alive()
    held.set()


def test_what_goes_wrong_in_looks_is_said_once_and_again_once_it_was_well_in_between(monkeypatch, capsys):
    monkeypatch.setattr(beside, "LOOK_S", 0.001)
    stop, left = threading.Event(), [OSError("no space left"), OSError("no space left"), None, OSError("no space left")]

    def tick():
        wrong = left.pop(0)
        if not left:
            stop.set()
        if wrong is not None:
            raise wrong
        return []

    beside.begin_to_repeat(tick, stop).join()
    assert capsys.readouterr().out.splitlines() == ["autoscaler: OSError: no space left"] * 2


class Queries:
    """Starts a query after the other: what each fails with, None for one that runs; `stop` is set once one does."""

    def __init__(self, *failures):
        self.left, self.started, self.stop = list(failures), 0, threading.Event()

    def __call__(self):
        self.started += 1
        failure = self.left.pop(0)
        if failure is None:
            self.stop.set()
        query = SimpleNamespace(isActive=failure is None, lastProgress=None, stop=lambda: None)
        query.exception = lambda: failure
        return query


SLOW = "org.apache.spark.SparkException: Python worker failed to connect back."


@pytest.fixture(autouse=True)
def _hurried(monkeypatch):
    monkeypatch.setattr(autoscaler, "LOOK_AT_QUERY_S", 0.001)


def test_a_worker_that_is_slower_than_spark_waits_is_tried_again(capsys):
    queries = Queries(SLOW, SLOW, None)
    autoscaler.run_until(queries.stop, queries, RIGHT)
    assert queries.started == 3 and "try 3 of 5" in capsys.readouterr().out


@pytest.mark.parametrize(("failures", "started"), [([SLOW] * 9, 5), ([SLOW, "no state"], 2)])
def test_what_fails_as_often_or_otherwise_ends_it_with_its_error(failures, started):
    queries = Queries(*failures)
    with pytest.raises(SystemExit, match=f"query failed: {failures[started - 1]}"):
        autoscaler.run_until(queries.stop, queries, RIGHT)
    assert queries.started == started


def test_a_query_that_does_not_go_on_from_its_checkpoint_names_what_helps(tmp_path):
    checkpoint = tmp_path / "autoscaler"
    (checkpoint / "offsets").mkdir(parents=True)
    remedy = partial(autoscaler.remedy_of, checkpoint)
    queries = Queries("Incomplete log file")
    with pytest.raises(SystemExit, match=rf"(?s)Incomplete log file.*mv {checkpoint} {checkpoint}\.damaged-1"):
        autoscaler.run_until(queries.stop, queries, RIGHT, remedy)

    def refused():
        raise PySparkException("metadata is no JSON")

    with pytest.raises(SystemExit, match=rf"(?s)does not start: metadata is no JSON.*mv {checkpoint}"):
        autoscaler.run_until(queries.stop, refused, RIGHT, remedy)
    for name in ("metadata", "offsets/0", "commits/0", "offsets/1", "commits/1"):
        (checkpoint / name).parent.mkdir(exist_ok=True)
        (checkpoint / name).write_text("v1")
    (checkpoint / "commits" / ".1.crc").write_text("no checksums")
    with pytest.raises(
        SystemExit, match=rf"(?s)damaged: commits/1.*tidecast job repair {checkpoint}\n.*mv {checkpoint}"
    ):
        autoscaler.run_until(queries.stop, refused, RIGHT, remedy)


@pytest.mark.parametrize(("failure", "words"), [
    ("org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized", r"docs/security\.md"),
    (SLOW, "start the autoscaler again"),
    ("java.io.FileNotFoundException: /mnt/q/state/0/0/.1.tmp (Permission denied)\n\tat java", "as whom executors run"),
    ("Job aborted: java.io.IOException: Mkdirs failed to create file:/mnt/var/q/state/0/0", "as whom executors run"),
    ('java.io.IOException: Cannot run program "/opt/python": error=13, Permission denied', "PYSPARK_PYTHON"),
    ("no state", "mv checkpoint"),
])  # fmt: skip
def test_nobody_is_told_to_throw_away_what_was_learned_for_what_is_not_its_fault(failure, words):
    queries = Queries(*[failure] * autoscaler.TRIES)
    with pytest.raises(SystemExit, match=words) as told:
        autoscaler.run_until(queries.stop, queries, RIGHT, lambda: "mv checkpoint away")
    assert ("mv checkpoint" in str(told.value)) is (words == "mv checkpoint")


def test_where_the_clock_is_set_back_the_query_is_started_again_and_no_try_is_counted(monkeypatch, capsys):
    monkeypatch.setattr(autoscaler, "TRIES", 2)
    fallen = [0.0, 0.0, 0.0, 3600.0, 0.0, 3600.0, 0.0]  # seconds, at each look at a query that is active
    failures, queries, stopped = [None, None, SLOW, None], [], []

    def start():
        number, failure = len(queries), failures[len(queries)]
        query = SimpleNamespace(isActive=failure is None, lastProgress={}, exception=lambda: failure)
        query.stop = lambda: stopped.append(number)
        queries.append(query)
        return query

    looks = iter(range(20))
    stop = SimpleNamespace(wait=lambda seconds: not fallen or next(looks, None) is None)
    autoscaler.run_until(stop, start, ClockWatch(lambda: fallen.pop(0), lambda: stopped.append("waited")))
    assert stopped == [0, "waited", 1, "waited", 3] and len(queries) == 4
    said = capsys.readouterr().out
    assert said.count("set back by 3600 s; the query is started again") == 2 and said.count("ready") == 3
