"""A start's configuration: what the runs before have earned, which one is its turn, and what is refused."""

import json
import weakref
from datetime import UTC, datetime

import pytest
from pyspark.errors import AnalysisException

from configs.contract import Contract, load_contract
from configs.errors import SettingsError
from configs.settings import Settings
from pipelines.jobs.launch import Launch
from pipelines.jobs.progress_log import progress_file
from pipelines.jobs.restarts.configured import (
    ChosenConfiguration,
    choose_configuration,
    earned_intervals,
    note_run,
    set_configuration,
)
from pipelines.jobs.running import _started
from pipelines.kafka.connection import BrokerError

BEGIN_S = 1_700_000_000
SETTING = "spark.sql.streaming.stateStore.rocksdb.blockCacheSizeMB"
TRIGGER = "2 seconds"
STATED = {"usual": {}, "eager": {"trigger": "1 second"}, "roomy": {SETTING: 64}}


def contract(**fields):
    return Contract(job="orders", latency_target_s=8.0, **{"configurations": STATED} | fields)


def earned(lines, trigger=TRIGGER, name="usual"):
    """What the intervals of run "a" came to."""
    return earned_intervals(lines, {"a": name}, contract(), trigger)


def batches(run, seconds, period_s=2.0, batch_s=1.0, rows=200, behind=0, begin_s=0.0):
    """Progresses of a run as Spark tells them, a batch every so many seconds."""
    for n in range(int(seconds / period_s) + 1):
        stamp = datetime.fromtimestamp(BEGIN_S + begin_s + n * period_s, UTC).isoformat(timespec="milliseconds")
        source = {"endOffset": {"events": {"0": 9, "1": 9}}, "metrics": {"avgOffsetsBehindLatest": f"{behind / 2}"}}
        yield {
            "runId": run, "timestamp": stamp.replace("+00:00", "Z"), "numInputRows": rows, "sources": [source],
            "durationMs": {"triggerExecution": 1000 * batch_s, "addBatch": 400},
        }  # fmt: skip


def test_an_interval_earns_by_latency_and_by_records_in_time():
    lines = [*batches("a", 60), *batches("unknown", 60)]
    found = earned(lines)
    assert len(found) == 3 and {one.name for one in found} == {"usual"}  # of six the first three are warming up
    quicker = earned(batches("a", 60, batch_s=0.5))
    assert quicker[0].reward - found[0].reward == pytest.approx(0.5 / 8)
    assert all(one.kept and not one.overloaded for one in found)
    busier = earned(batches("a", 60, rows=2000))
    assert busier == found  # how much comes is not its doing
    slow = earned(batches("a", 60, period_s=5, batch_s=5, rows=500))
    assert not slow[0].kept and not slow[0].overloaded  # 40 % of the records wait for more than 8 s
    late = earned(batches("a", 60, behind=1000))
    assert late[0].overloaded and not late[0].kept and late[0].reward < found[0].reward - 10 / 8
    caught_up = [*batches("a", 60, behind=1000), *batches("a", 60, begin_s=62)]
    assert earned(caught_up) == 6 * found[:1]  # an outage is not its doing either


def test_who_ran_while_nothing_came_is_not_charged_for_the_silence():
    usual = earned(batches("a", 60))[0].reward
    quiet = earned([*batches("a", 60), *batches("a", 60, begin_s=3600)])
    assert all(one.kept for one in quiet) and [one.reward for one in quiet] == pytest.approx(len(quiet) * [usual])
    behind = earned([*batches("a", 36, behind=100), *batches("a", 60, begin_s=3600)])
    assert not any(one.overloaded for one in behind)  # the next batch came at once
    sparse = list(batches("a", 3600, period_s=60))
    assert earned(sparse)[0].kept and earned(sparse)[0].reward == pytest.approx(usual)  # it waits for a trigger at most
    for eager in (earned(sparse, "1 second"), earned(sparse, name="eager")):
        assert eager[0].reward - usual == pytest.approx(0.5 / 8)
    assert not earned(sparse, "interval 2 seconds")[0].kept  # that Spark alone can read: periods count as they were


class Told(dict):
    """A progress that can be counted while it lives."""

    def __hash__(self):
        return id(self)


def test_of_a_long_run_no_more_batches_are_kept_than_an_interval_has():
    alive, most = weakref.WeakSet(), 0

    def told():
        nonlocal most
        for one in map(Told, batches("a", 600)):
            alive.add(one)
            most = max(most, len(alive))
            yield one

    assert len(earned(told())) == 57
    assert most <= 10


def run_job(folder, stated, seconds, **fields):
    """A start, and a run under the configuration that it took."""
    chosen = choose_configuration(folder, "orders", stated, TRIGGER)
    runs = folder / "orders.configurations.jsonl"
    run = f"run {len(runs.read_text().splitlines()) if runs.is_file() else 0}"
    note_run(folder, "orders", run, chosen)
    with progress_file(folder, "orders").open("a") as file:
        file.write("".join(f"{json.dumps(one)}\n" for one in batches(run, seconds, **fields)) + '{"cut off')
        file.write("\n")
    return chosen.name


def test_each_is_tried_for_thirty_intervals_and_the_best_is_kept(tmp_path):
    ran = [run_job(tmp_path, contract(), 340, batch_s={0: 1.0, 1: 0.2}.get(turn, 1.5)) for turn in range(3)]
    assert ran == ["usual", "eager", "roomy"]
    chosen = choose_configuration(tmp_path, "orders", contract(), TRIGGER)
    assert chosen.name == "eager" and chosen.trigger == {"trigger": "1 second"}
    assert "configuration eager; cost J so far: usual " in chosen.text and " in 31 intervals" in chosen.text


@pytest.mark.parametrize(("seconds", "then"), [(320, "usual"), (330, "eager")])
def test_none_is_left_before_thirty_intervals_are_counted(tmp_path, seconds, then):
    run_job(tmp_path, contract(), seconds)  # three of them are warming up
    assert choose_configuration(tmp_path, "orders", contract(), TRIGGER).name == then


def test_a_short_run_is_gone_on_with_and_other_settings_are_another_configuration(tmp_path):
    assert [run_job(tmp_path, contract(), 120) for _ in range(2)] == ["usual", "usual"]
    changed = {"usual": {SETTING: 8}, "eager": {}}
    chosen = choose_configuration(tmp_path, "orders", contract(configurations=changed), TRIGGER)
    assert (chosen.name, chosen.settings) == ("usual", {SETTING: "8"}) and "usual never ran" in chosen.text


def test_what_keeps_no_promise_is_not_taken_again_and_nothing_is_changed_while_a_job_is_behind(tmp_path):
    behind, slow = tmp_path / "behind", tmp_path / "slow"
    behind.mkdir()
    slow.mkdir()
    run_job(behind, contract(), 400, behind=5000)
    assert choose_configuration(behind, "orders", contract(), TRIGGER).name == "usual"
    two = contract(configurations={"usual": {}, "eager": {"trigger": "1 second"}})
    assert run_job(slow, two, 400, period_s=8, batch_s=8, rows=8000) == "usual"
    assert run_job(slow, two, 400) == "eager"
    assert choose_configuration(slow, "orders", two, TRIGGER).name == "eager"


def test_one_that_fails_at_once_is_tried_twice(tmp_path):
    two = contract(configurations={"usual": {}, "broken": {SETTING: -1}})
    ran = [run_job(tmp_path, two, seconds) for seconds in (400, 4, 4, 400)]
    assert ran == ["usual", "broken", "broken", "usual"]
    assert choose_configuration(tmp_path, "orders", two, TRIGGER).name == "usual"


def test_a_run_that_a_trimmed_log_no_longer_tells_of_did_not_fail(tmp_path):
    two = contract(configurations={"usual": {}, "eager": {"trigger": "1 second"}})
    for number, name in enumerate(("usual", "usual", "eager")):
        chosen = ChosenConfiguration(name, dict(two.configurations[name]), "")
        note_run(tmp_path, "orders", f"run {number}", chosen)
    log = progress_file(tmp_path, "orders")
    lines = [f"{json.dumps(one)}\n" for one in batches("run 2", 400)]
    log.with_suffix(".old.jsonl").write_text("".join(lines[:150]))
    log.write_text("".join(lines[150:]))
    again = choose_configuration(tmp_path, "orders", two, TRIGGER)
    assert again.name == "usual" and "usual never ran, eager " in again.text and " in 37 intervals" in again.text


def test_without_configurations_nothing_is_chosen_and_the_contract_reads_as_before(tmp_path):
    plain = contract(configurations={})
    assert choose_configuration(tmp_path, "orders", plain, TRIGGER) is None
    assert "configurations" not in plain.text and "configurations" in contract().text
    assert Contract.model_validate(json.loads(contract().text)).configurations == contract().configurations


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "{usual: {spark.executor.memory: 4g}}",
            "'spark.executor.memory': a query's start takes settings of spark.sql",
        ),
        ("{usual: {spark.sql.shuffle.partitions: 4}}", "the checkpoint keeps it"),
        ("{" + ", ".join(f"c{n}: {{}}" for n in range(9)) + "}", "at most 8 items"),
        ("{usual: {trigger: 2}}", "trigger=2: a processing time is expected, such as 2 seconds"),
        ("{usual: 4}", "configurations.usual"),
    ],
)
def test_what_a_start_cannot_take_is_refused_by_line(tmp_path, text, words):
    (tmp_path / "orders.yaml").write_text(f"job: orders\nconfigurations: {text}\n")
    with pytest.raises(SettingsError, match=r"orders\.yaml, line 2") as refused:
        load_contract("orders", tmp_path)
    assert words in str(refused.value)


class Session(dict):
    """A session that takes notes of what is set."""

    conf = property(lambda self: self)
    set = dict.__setitem__


def test_the_trigger_is_no_setting_of_the_session():
    session = Session()
    set_configuration(session, ChosenConfiguration("x", {"trigger": "1 second", SETTING: "64"}, ""))
    assert session == {SETTING: "64"}


class Refusing:
    """A session that refuses whatever is set, as Spark does with what it takes only when it starts."""

    @property
    def conf(self):
        return self

    def set(self, key, value):
        raise AnalysisException(f"[CANNOT_MODIFY_STATIC_CONFIG] {key}")


def started(folder, stated, session, start_query):
    return _started(Launch("orders", session, Settings(), folder, {}, stated), stated, start_query)


def test_one_that_spark_refuses_at_the_start_is_tried_twice_too(tmp_path):
    def refused(launch):
        raise AnalysisException("[AMBIGUOUS_REFERENCE] key")

    for where, session, what in (("set", Refusing(), SettingsError), ("start", Session(), AnalysisException)):
        folder = tmp_path / where
        folder.mkdir()
        two = contract(configurations={"usual": {}, "broken": {SETTING: -1}})
        run_job(folder, two, 400)
        for _ in range(2):
            assert choose_configuration(folder, "orders", two, TRIGGER).name == "broken"
            with pytest.raises(what):
                started(folder, two, session, refused)
        assert choose_configuration(folder, "orders", two, TRIGGER).name == "usual"


def test_a_broker_that_is_away_is_not_the_doing_of_a_configuration(tmp_path):
    def away(launch):
        raise BrokerError("nobody answers")

    run_job(tmp_path, contract(), 400)
    for _ in range(3):
        with pytest.raises(BrokerError):
            started(tmp_path, contract(), Session(), away)
    assert choose_configuration(tmp_path, "orders", contract(), TRIGGER).name == "eager"


def test_a_note_that_was_cut_off_by_a_kill_does_not_take_the_next_one_with_it(tmp_path):
    runs = tmp_path / "orders.configurations.jsonl"
    runs.write_text('{"run_id": "r')
    note_run(tmp_path, "orders", "run 1", ChosenConfiguration("usual", {}, ""))
    assert [json.loads(line)["run_id"] for line in runs.read_text().splitlines()] == ["run 1"]
