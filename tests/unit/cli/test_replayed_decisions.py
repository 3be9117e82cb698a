"""`tidecast contract replay` of a dump of decisions: each is made again of what it names, or told with its line."""

import json
import math
import re

import pytest

from configs.backpressure import Backpressure
from tests.unit.cli.test_contract_commands import run, written
from tests.unit.policy.test_replay_control import CONTRACT, NOW, Life, progress, second
from tidecast.messages import ContractText, encode


@pytest.fixture(scope="module")
def decided():
    """What was decided of a job beside a replay, which live records that come too late stop; one without metrics."""

    def late(now):
        return second(now, kind="batch", batch_rows=50, batch_s=1.0, latency_max_s=19.0)

    life = Life(CONTRACT.model_copy(update={"backpressure": Backpressure.model_validate({"admit_by": "arrivals"})}))
    life.lasts(2)
    life.lasts(5, lambda now: progress(now, executors=2))
    life.lasts(24, lambda now: progress(now, executors=2), late)
    held = life.scaler.hold_without_metrics(life.memory, life.now + 30.0)
    return life.scaler.contract, [*life.logged, json.loads(encode(held))]


def with_contract(folder, contract):
    known = ContractText("orders", NOW, NOW, 1.0, contract.hash, contract.text)
    return written(folder, [encode(known).decode()], "contracts.jsonl")


def test_a_dump_of_decisions_is_made_again_to_the_last_bit(tmp_path, decided):
    contract, logged = decided
    assert {one["inputs"].get("relief", {}).get("step", 0) for one in logged} >= {0, 1}
    path = written(tmp_path, map(json.dumps, logged), "decisions.jsonl")
    ran = run("replay", path)
    assert ran.exit_code == 0 and "0 decisions and 29 rates of replays, each as logged" in ran.output
    assert f"31 not made again: contract {contract.hash} is not known" in ran.output
    with_contract(tmp_path, contract)
    ran = run("replay", path)
    assert ran.exit_code == 0 and "31 decisions and 29 rates of replays, each as logged" in ran.output
    assert "1 not made again: made without an observation" in ran.output
    learned = [{**one, "policy": "dqn"} for one in logged[:2]]
    ran = run("replay", written(tmp_path, map(json.dumps, learned), "decisions.jsonl"))
    assert ran.exit_code == 0 and "2 not made again: " in ran.output


def test_decisions_of_another_controller_are_left_out_and_counted(tmp_path, decided):
    contract, logged = decided
    with_contract(tmp_path, contract)
    older = json.loads(json.dumps(logged))
    beside = [one["inputs"]["replay"] for one in older if "replay" in one["inputs"]]
    del beside[0]["controller"], beside[0]["weighed"]  # as releases wrote that named none
    beside[1]["controller"] = 4
    ran = run("replay", written(tmp_path, map(json.dumps, older), "decisions.jsonl"))
    assert ran.exit_code == 0 and "29 decisions and 27 rates of replays, each as logged" in ran.output
    assert "2 not made again: beside a replay by another controller than this release's" in ran.output


def more_of(value):
    return math.nextafter(value, math.inf) if isinstance(value, float) else value + 1


@pytest.mark.parametrize(
    "place",
    [
        ("executors",), ("replay_rps",), ("inputs", "replay", "weighed", "numbers", 0, "live_rps"),
        ("inputs", "relief", "step"), ("inputs", "replay", "signals", "live_rps"), ("inputs", "lag_records"),
    ],
)  # fmt: skip
def test_the_first_decision_that_comes_out_otherwise_is_told_with_its_line(tmp_path, decided, place):
    contract, logged = decided
    with_contract(tmp_path, contract)
    at = next(n for n, one in enumerate(logged) if one["inputs"].get("relief"))
    changed = json.loads(json.dumps(logged[at - 1 : at + 1]))
    *way, last = place
    part = changed[1]
    for name in way:
        part = part[name]
    part[last] = more_of(part[last]) if place[-1] != "live_rps" or "weighed" in place else 2 * part[last]
    ran = run("replay", written(tmp_path, map(json.dumps, changed), "decisions.jsonl"))
    assert ran.exit_code == 1 and "line 2: " in ran.output and " is logged as " in ran.output
    if place[0] != "inputs" or "weighed" in place or "relief" in place:
        assert f"line 2: {'.'.join(map(str, place))} is logged as {part[last]!r}" in ran.output


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda line: [line, line[:60]], "line 2: .* is no decision. One that was cut off may be deleted"),
        (lambda line: [line.replace('"terms"', '"term"')], "line 1: KeyError: 'terms'.*as this release writes them"),
        (lambda line: [line, "3"], "line 2: '3' is no decision"),
    ],
)
def test_a_bad_dump_is_refused_with_line_and_remedy(tmp_path, decided, change, told):
    ran = run("replay", written(tmp_path, change(json.dumps(decided[1][20])), "decisions.jsonl"))
    assert ran.exit_code == 1 and re.search(told, str(ran.exception)), ran.exception


def test_a_dump_of_contracts_that_is_none_is_refused_by_name(tmp_path, decided):
    path = written(tmp_path, [json.dumps(decided[1][0])], "decisions.jsonl")
    written(tmp_path, ['{"hash": 3}'], "contracts.jsonl")
    assert "contracts.jsonl: KeyError: 'text'; the topic `contracts`" in str(run("replay", path).exception)
