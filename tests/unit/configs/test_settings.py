import json
import re

import pytest

from configs.contract import Contract, jobs_with_contract, load_contract, read_contracts
from configs.errors import SettingsError
from configs.settings import DEFAULT_FILE, ROOT, Settings, load
from pipelines.backfill.application import ORDER_TIME
from pipelines.stack.processes import MARKER
from tidecast.connection.environment import ORDER, SIGNING_KEY

CONTRACTS = ROOT / "configs" / "contracts"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    import os

    for name in list(os.environ):
        if name.startswith("TIDECAST_"):
            monkeypatch.delenv(name)


def test_the_default_file_says_what_the_types_say():
    assert load() == Settings()


def test_environment_beats_file_beats_default(monkeypatch, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text("replay: {speed: 60, peak_rps: 70}\n")
    monkeypatch.setenv("TIDECAST_FILE", str(own))
    monkeypatch.setenv("TIDECAST_REPLAY__SPEED", "30")
    settings = load()
    assert (settings.replay.speed, settings.replay.peak_rps, settings.replay.keys) == (30, 70, 50)


def test_a_file_that_states_one_key_of_a_section_leaves_the_others(monkeypatch, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text("replay: {speed: 60, newcomer: {days: 7}}\nkafka: {retention_h: {events: 9}}\n")
    before = load()
    monkeypatch.setenv("TIDECAST_FILE", str(own))
    newcomer = before.replay.newcomer.model_copy(update={"days": 7})
    assert load().replay == before.replay.model_copy(update={"speed": 60, "newcomer": newcomer})
    assert load().kafka.retention_h == before.kafka.retention_h.model_copy(update={"events": 9})
    own.write_text("replay: {surge: null}\n")
    assert before.replay.surge is not None and load().replay.surge is None


def test_an_application_that_is_started_for_an_order_reads_the_settings(monkeypatch):
    for name in (ORDER, ORDER_TIME, SIGNING_KEY, MARKER):  # of these alone its starter says something else
        monkeypatch.setenv(name, "orders:replay:fix")
    assert load() == Settings()


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"kafka": {"sasl_plain_password": "hunter2"}}, "kafka.sasl_plain_password"),
        ({"kafka": {"security": {"sasl_plain_password": ["hunter2"]}}}, "kafka.security.sasl_plain_password"),
        ({"kafka": {"secruity": {"sasl_plain_password": "hunter2"}}}, "kafka.secruity"),
        ({"airflow": {"password": {"is": "hunter2"}}}, "airflow.password"),
        ({"serving": {"token": ["hunter2"]}}, "serving.token"),
    ],
)
def test_a_wrong_secret_is_named_and_not_repeated(given, key):
    with pytest.raises(SettingsError) as refused:
        load(**given)
    assert key in str(refused.value) and "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("TIDECAST_REPLAY__SPED", "3", "replay.sped"),
        ("TIDECAST_REPLY__SPEED", "3", "Sections are"),
        ("TIDECAST_REPLAY__SPEED", "fast", "replay.speed='fast'"),
        ("TIDECAST_REPLAY__SPEED", "-1", "replay.speed='-1'"),
        ("TIDECAST_REPLAY__NEWCOMER__DAYS", "0", "replay.newcomer.days='0'"),
        ("TIDECAST_PORTS__AIRFLOW", "70000", "ports.airflow='70000'"),
        ("TIDECAST_AUTOSCALER__POLICY", "magic", "autoscaler.policy='magic'"),
        ("TIDECAST_TRAINING__LEVELS", "[0.9, 0.5]", "must rise"),
        ("TIDECAST_TRAINING__LEVELS", "[0.5, 1.7]", "training.levels.1=1.7"),
        ("TIDECAST_TRAINING__LEVELS", "0.5,0.9", "TIDECAST_TRAINING__LEVELS: not JSON (Extra data: line 1 column 4"),
        ("TIDECAST_KAFKA", '{"prefix": "a."', "TIDECAST_KAFKA: not JSON (Expecting"),
        ("TIDECAST_FILE", "/nowhere/at/all.yaml", "no such file"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(monkeypatch, name, value, says):
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=re.escape(says)):
        load()


@pytest.mark.parametrize(
    "content",
    [b"replay: {speed: 60", b"- a list", b"just text", b"replay: \xff", b"1: 3", b"var: !!bool x", b"[" * 600],
)
def test_a_file_that_holds_no_settings_is_named(monkeypatch, tmp_path, content):
    own = tmp_path / "own.yaml"
    own.write_bytes(content)
    monkeypatch.setenv("TIDECAST_FILE", str(own))
    with pytest.raises(SettingsError, match=r"own\.yaml: no settings can be read"):
        load()


@pytest.mark.parametrize(
    "password", ["!hunter2", "!hunter2!x", "*hunter2", "*hunter2+x", "'hunter2", "a: hunter2", "[hunter2"]
)
def test_a_file_that_is_no_yaml_for_its_password_is_named_without_it(monkeypatch, tmp_path, password):
    own = tmp_path / "own.yaml"
    own.write_text(f"airflow:\n  username: me\n  password: {password}\n")
    monkeypatch.setenv("TIDECAST_FILE", str(own))
    with pytest.raises(
        SettingsError, match=r"own\.yaml: no settings can be read: line [34] is not YAML. Quote"
    ) as refused:
        load()
    assert "hunter2" not in str(refused.value)


def test_settings_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        load().replay.speed = 3


def test_every_shipped_contract_loads_under_its_own_name():
    contracts, wrong = read_contracts(CONTRACTS)
    assert wrong == {}
    assert set(contracts) == {"word_count", "key_window", "ride_count"}
    plans, broken = read_contracts(CONTRACTS / "plans")
    assert not broken and set(plans) == {
        "corrected_join", "key_sessions", "best_keys", "key_estimates", "key_totals",
    }  # fmt: skip
    assert all(name == contract.job for name, contract in contracts.items())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("job: a\nexecutors: {min: 5, max: 2}", "min=5 is above max=2"),
        ("job: a\nplanning: {target_utilization: 0.7}", "target_utilization"),
        ("job: a\nplanning: {target_utilisation: 1.7}", "1.7"),
        ("job: a\nerror_budget: 0", "error_budget=0: no job keeps that, the least is 0.0001"),
        (
            "job: a\nlatency_target_s: 0.01",
            "latency_target_s=0.01: a batch takes 0.6 s .planning.overhead_s.*0.6 s or more",
        ),
        ("job: a\nlatency_target_s: 1\nplanning: {batch_s: 2}", "takes 2 s .planning.batch_s.*Promise 2 s or more"),
        ("job: b", "job='b'"),
        ("job: [", "not YAML"),
        ("- a", "mapping"),
    ],
)
def test_a_wrong_contract_is_named(tmp_path, text, says):
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(SettingsError, match=says):
        load_contract("a", tmp_path)


def test_batches_should_take_what_lets_two_of_them_fit_into_the_target_unless_stated():
    assert Contract(job="a", latency_target_s=10).batch_s == 4
    assert Contract(job="a", planning={"batch_s": 3.5}).batch_s == 3.5


def test_a_contracts_text_has_nothing_that_older_releases_do_not_know_unless_it_is_stated():
    plain, stated = Contract(job="a", latency_target_s=8), Contract(job="a", planning={"start_growth": 0.5})
    said = json.loads(plain.text)
    assert said["planning"]["batch_s"] == pytest.approx(3.2) and "start_growth" not in said["planning"]
    assert "price_per_executor_hour" not in said and json.loads(stated.text)["planning"]["start_growth"] == 0.5
    assert Contract.model_validate(said).hash == plain.hash != stated.hash


def test_a_broken_contract_leaves_the_others_jobs_alone(tmp_path):
    (tmp_path / "orders.yaml").write_text("job: orders")
    (tmp_path / "rides.yaml").write_text("job: [")
    assert jobs_with_contract(tmp_path) == ["orders", "rides"]
    found, wrong = read_contracts(tmp_path)
    assert set(found) == {"orders"} and "not YAML" in wrong["rides"]


def test_a_missing_contract_lists_the_known_ones():
    with pytest.raises(SettingsError, match="key_window, ride_count, word_count"):
        load_contract("orders", CONTRACTS)


def test_a_setting_of_an_earlier_release_is_told_as_removed(monkeypatch, tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("serving: {publish_s: 2.0, publish: 1}\nreplay: {publish_s: 30}\nspark: {executor_cores: 1}\n")
    monkeypatch.setenv("TIDECAST_FILE", str(file))
    with pytest.raises(SettingsError) as told:
        load()
    lines = str(told.value).splitlines()
    assert len(lines) == 4 and sum("no longer a setting: " in line and "Delete the line" in line for line in lines) == 3
    assert any(line.startswith("serving.publish=1: no such key") for line in lines)


def test_our_own_file_is_parsed_once(monkeypatch):
    first = load()
    monkeypatch.setattr("configs.settings.yaml.load", None)
    assert load() == first


def test_the_defaults_say_the_same_to_both_parsers_and_a_persons_file_is_read_by_the_one_that_nothing_ends(
    monkeypatch, tmp_path
):
    file = tmp_path / "settings.yaml"
    file.write_text(DEFAULT_FILE.read_text())
    defaults = load()
    monkeypatch.setenv("TIDECAST_FILE", str(file))
    assert load() == defaults
    file.write_text("[" * 200_000)  # the parser in C ends the process over it
    with pytest.raises(SettingsError, match="no settings can be read"):
        load()
