"""Contracts while the query runs: what the driver accepts, what a worker reads, what is said."""

import json
import multiprocessing
import os
from types import SimpleNamespace

import pytest
import yaml

from configs.contract import Contract, read_contracts
from configs.settings import load
from pipelines.scale import contracts
from pipelines.scale.beside import report
from pipelines.scale.contracts import AcceptedContracts, ContractWatch, make_contract_watch
from pipelines.watched import GONE_S
from tests.fakes.clock import clock_with
from tests.fakes.unlisted import unlisted
from tests.fakes.waiting import PATIENCE_S


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "contracts").mkdir()
    return tmp_path / "contracts"


@pytest.fixture
def accepted(tmp_path):
    return AcceptedContracts(tmp_path / "query.contracts.json")


@pytest.fixture
def announced():
    return []


@pytest.fixture
def steady(monkeypatch):
    made = SimpleNamespace(s=100.0)
    monkeypatch.setattr(contracts, "time", clock_with(monotonic=lambda: made.s))
    return made


@pytest.fixture
def watch(folder, accepted, announced):
    return ContractWatch(folder, accepted, announced.append)


def write(folder, job, text=None):
    (folder / f"{job}.yaml").write_text(text or f"job: {job}\n")


def test_new_changed_and_removed_files_take_effect_and_are_told_with_their_hash(
    folder, accepted, watch, announced, steady
):
    assert watch.update() == [f"contracts: there is none in {folder}; nothing is decided for any job"]
    assert watch.update() == [] and accepted.all() == {}
    write(folder, "orders")
    first = watch.update()
    assert first == [f"orders: contract {accepted.of('orders').hash}"] and watch.update() == []
    write(folder, "orders", "job: orders\nexecutors: {max: 9}\n")
    (changed,) = watch.update()
    assert changed != first[0] and accepted.of("orders").executors.max == 9
    assert [contract.executors.max for contract in announced] == [4, 9]
    (folder / "orders.yaml").unlink()
    steady.s += 60
    assert watch.update() == [] and accepted.of("orders") is not None, "it may be written anew"
    steady.s += GONE_S
    (gone,) = watch.update()
    assert "gone" in gone and accepted.of("orders") is None and watch.update() == []
    write(folder, "orders")
    assert watch.update() == first and [contract.executors.max for contract in announced] == [4, 9, 4]


def test_one_that_is_put_back_is_announced_again_as_of_now_which_readers_take_for_the_newest(
    folder, accepted, monkeypatch
):
    sent, wall = [], SimpleNamespace(s=1000.0)
    broker = SimpleNamespace(send=lambda *said: sent.append(said), flush=lambda wait_s: None)
    monkeypatch.setattr(contracts, "Publisher", lambda *_, **__: broker)
    monkeypatch.setattr(contracts, "time", clock_with(time=lambda: wall.s))
    watch = make_contract_watch(load(contracts=folder), accepted)
    for most in (4, 9, 4):
        write(folder, "orders", f"job: orders\nexecutors: {{max: {most}}}\n")
        watch.update()
        wall.s += 60
    assert [(topic, message.wall_time) for topic, _, message in sent] == [("contracts", at) for at in (1e3, 1060, 1120)]
    assert sent[0][1] == sent[2][1] == accepted.of("orders").hash != sent[1][1]


def test_one_that_asks_for_more_than_its_executors_sustain_is_refused_alone(folder, accepted, watch):
    write(folder, "orders", "job: orders\nbackpressure:\n  controls: {replay_rps: {min: 1.0e+9}}\n")
    write(folder, "rides")
    told, _ = watch.update()
    assert told.startswith("orders: orders.yaml: backpressure.controls.replay_rps.min=1e+09: the most executors ")
    assert told.endswith("(`tidecast contract check orders`) Until then nothing is decided for it.")
    assert {*accepted.all()} == {"rides"}


def test_a_file_whose_name_is_no_text_keeps_no_other_contract_from_being_accepted(folder, accepted, watch, capsys):
    for name in ("orders", os.fsdecode(b"\xff")):
        write(folder, name, "job: orders\n")
    report(watch.update())
    assert "\\udcff.yaml, line 1: job='orders'; the file's name and" in capsys.readouterr().out
    assert {*accepted.all()} == {"orders"}


def test_one_that_an_earlier_release_accepted_and_this_one_cannot_decide_by_does_not_stay(folder, accepted, watch):
    text = "job: orders\nbackpressure:\n  paths: [{ops: [orders, join], quantile: 0.9, max_ms: 9000}]\n"
    write(folder, "orders", text)
    before = Contract.model_validate(yaml.safe_load(text))
    accepted.file.write_text(json.dumps({"orders": before.model_dump(mode="json")}))
    (told,) = watch.update()
    assert "paths.0.ops=orders, join: a running job is one operator" in told
    assert told.endswith("Until then nothing is decided for it.") and accepted.of("orders") is None


@pytest.mark.parametrize("planning", ["catch_up_s: 1.0e+306", "per_record_s: 1.0e-320", "batch_s: 1.0e-17"])
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_number_with_which_nothing_can_be_computed_stops_no_other_job(folder, accepted, watch, planning):
    write(folder, "orders", f"job: orders\nplanning: {{{planning}}}\nbackpressure: {{}}\n")
    write(folder, "rides")
    told, _ = watch.update()
    assert told.startswith("orders: orders.yaml") and {*accepted.all()} == {"rides"}


@pytest.mark.parametrize(
    "broken", ["job: [", "job: other", "job: orders\nexecutors: {min: 9}", "3", "job: orders\nspeed: 3", "\x00"]
)
def test_a_broken_contract_keeps_the_last_good_one_and_no_other_job_is_touched(folder, accepted, watch, broken):
    write(folder, "orders")
    write(folder, "rides")
    watch.update()
    good = accepted.of("orders")
    write(folder, "orders", broken)
    (said,) = watch.update()
    assert said.startswith("orders: ") and f"contract {good.hash} stays" in said and watch.update() == []
    assert accepted.of("orders") == good and accepted.of("rides") is not None
    again = ContractWatch(folder, accepted, lambda contract: None)  # after a restart
    assert any(f"contract {good.hash} stays" in said for said in again.update())
    assert accepted.of("orders") == good


def test_a_contract_that_was_never_right_is_named_and_decides_nothing(folder, accepted, watch):
    (folder / "orders.yaml").write_bytes(b"job: \xff\xfe")
    (folder / "rides.yaml").mkdir()
    said = watch.update()
    assert len(said) == 2 and all("nothing is decided for it" in line for line in said)
    assert accepted.all() == {}


def test_a_folder_that_is_away_takes_no_contract_with_it(folder, accepted, watch):
    write(folder, "orders")
    watch.update()
    good = accepted.all()
    folder.rename(folder.with_name("unmounted"))
    (said,) = watch.update()
    assert "no folder" in said and watch.update() == [] and accepted.all() == good


def test_a_folder_that_may_not_be_listed_takes_no_contract_with_it_and_is_said_once_each_time(
    folder, accepted, watch, steady, monkeypatch
):
    write(folder, "orders")
    watch.update()
    good = accepted.all()
    for _ in range(2):
        with unlisted(monkeypatch, folder):
            said = []
            for _ in range(3):
                said += watch.update()
                steady.s += GONE_S
        assert said == [f"contracts: {folder} cannot be listed: Permission denied; those that were accepted stay"]
        assert accepted.all() == good and watch.update() == []


def test_a_broker_that_is_away_holds_up_no_contract_and_is_told_later(folder, accepted, announced):
    away = [True]

    def announce(contract):
        if away[0]:
            raise RuntimeError("no broker")
        announced.append(contract)

    watch = ContractWatch(folder, accepted, announce)
    write(folder, "orders")
    assert any("no broker" in said for said in watch.update()) and accepted.of("orders") is not None
    away[0] = False
    watch.update()
    assert announced == [accepted.of("orders")]


def test_a_contract_that_the_broker_refuses_holds_up_no_other(folder, accepted, announced):
    def announce(contract):
        if contract.job == "a-refused":
            raise RuntimeError("too large")
        announced.append(contract)

    watch = ContractWatch(folder, accepted, announce)
    for job in ("a-refused", "orders", "rides"):
        write(folder, job)
    for _ in range(2):
        watch.update()
    assert {contract.job for contract in announced} == {"orders", "rides"}


def test_another_process_sees_what_was_accepted(folder, accepted, watch):
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def tell():
        read = AcceptedContracts(accepted.file)
        while there.recv():
            there.send(sorted((job, one.hash) for job, one in read.all().items()))

    def seen():
        here.send(True)
        assert here.poll(PATIENCE_S)
        return here.recv()

    worker = context.Process(target=tell, daemon=True)
    worker.start()
    there.close()
    try:
        assert seen() == []
        for text in ("job: orders\n", "job: orders\nlatency_target_s: 9\n"):
            write(folder, "orders", text)
            watch.update()
            assert seen() == [("orders", accepted.of("orders").hash)]
        here.send(False)
        worker.join(PATIENCE_S)
        assert worker.exitcode == 0
    finally:
        worker.kill()
        worker.join()


def test_what_was_written_by_another_version_is_written_anew(folder, accepted, watch):
    accepted.file.write_text(json.dumps({"orders": {"job": "orders", "of_the_future": 1}}))
    write(folder, "rides")
    watch.update()
    assert set(accepted.all()) == {"rides"}


def test_what_a_contract_states_of_its_delay_is_known_to_workers_also_where_an_earlier_release_wrote_all_values(
    folder, accepted, watch
):
    accepted.file.write_text(json.dumps({"orders": Contract(job="orders").model_dump(mode="json")}))
    assert accepted.of("orders").delay_stated
    write(folder, "orders")
    watch.update()
    assert not accepted.of("orders").delay_stated and accepted.of("orders") == Contract(job="orders")
    assert accepted.of("orders").hash == Contract(job="orders").hash
    write(folder, "orders", "job: orders\nplanning: {scale_down_delay_s: 8}\n")  # what it would be
    watch.update()
    assert accepted.of("orders").delay_stated


def test_files_that_have_not_changed_are_not_read_again(folder, accepted, watch, monkeypatch, steady):
    reads = []
    monkeypatch.setattr("pipelines.scale.contracts.read_contracts", lambda at: reads.append(at) or read_contracts(at))
    write(folder, "orders")
    watch.update()
    watch.update()
    assert len(reads) == 2  # it has changed just now, and may change again within the same tick of a coarse clock
    os.utime(folder / "orders.yaml", (1, 1))
    for _ in range(5):
        assert watch.update() == []
    assert len(reads) == 3
    accepted.file.unlink()
    watch.update()
    assert len(reads) == 4 and accepted.of("orders") is not None
    (folder / "orders.yaml").unlink()
    assert watch.update() == watch.update() == [] and len(reads) == 5
    steady.s += GONE_S
    assert "gone" in watch.update()[0] and len(reads) == 6


def test_a_change_that_could_not_be_written_or_announced_is_tried_again(folder, accepted, announced):
    failures = []

    def announce(contract):
        if failures:
            raise failures.pop()
        announced.append(contract)

    watch = ContractWatch(folder, accepted, announce)
    write(folder, "orders")
    watch.update()
    write(folder, "orders", "job: orders\nexecutors: {max: 9}\n")
    os.utime(folder / "orders.yaml", (2, 2))
    failures.append(OSError("the network is down"))
    with pytest.raises(OSError, match="network"):
        watch.update()
    in_the_way = accepted.file.with_name(f".{accepted.file.name}.new")
    in_the_way.mkdir()
    for _ in range(2):
        with pytest.raises(IsADirectoryError):
            watch.update()
    assert accepted.of("orders").executors.max == 4
    in_the_way.rmdir()
    assert watch.update() == [f"orders: contract {accepted.of('orders').hash}"] and watch.update() == []
    assert accepted.of("orders").executors.max == 9 and [c.executors.max for c in announced] == [4, 9]
