"""A trace replays to the same controls, bit for bit; what was changed in it is found."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.contract.signals import Signals
from models.contract.state import begin
from models.contract.trace import (
    ControlTraceError,
    TraceDifference,
    first_difference,
    header,
    replay,
    trace_line,
)
from tests.fakes.shared_job import PATH, run_queue, shared_plan, shared_terms

TERMS = shared_terms(lag={"max_ms": 900}, error={"s": {"eps_rel": 0.1, "pf": 0.01}}, fairness={"weights": {"a": 2}})


def traced(loads, change=lambda n: {}, state=None):
    state = state or begin(TERMS, shared_plan(), 1e9)
    closed = run_queue(TERMS, loads, state=state, change=change)
    return [header(TERMS, shared_plan(), state, {"blend": "7"}), *(trace_line(one.line) for one in closed)]


def shown(n):
    return {
        "lag_ms": 100.0 + 7 * n,
        "tenants": {"a": 200.0 / 3, "b": 400.0},
        "live_high_rps": math.nan if n % 3 else 630.1,
    }


LINES = traced([600.0, 650.5, 800.0] * 10, shown)


def test_a_trace_replays_to_itself():
    assert replay(LINES) is None
    first, last = json.loads(LINES[0]), json.loads(LINES[-1])
    assert (first["hash"], first["t0"], first["interval_s"], first["models"]) == (TERMS.hash, 1e9, 10, {"blend": "7"})
    assert last["hash"] == TERMS.hash and (last["n"], last["t"]) == (30, 1e9 + 300)
    assert {"y", "posteriors", "nu", "predicted", "u", "caps", "ladder", "controls", "reason"} <= set(last)
    assert last["response"]["count"] == 29 and len(last["response"]["inputs"]) == 5  # the first one has none before it


def test_a_trace_may_begin_anywhere():
    state = run_queue(TERMS, [600.0] * 7, change=shown)[-1].state
    assert replay(traced([700.0] * 5, shown, state)) is None


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1500) | st.just(math.nan), min_size=1, max_size=8), st.floats(0.1, 100))
def test_any_trace_replays_to_itself(loads, lag):
    assert replay(traced(loads, lambda n: {"lag_ms": lag * n, "time_s": 1e9 + 10 * (n if n % 4 else n - 2)})) is None


@pytest.mark.parametrize(
    "path",
    [("controls", "replay_rps"), ("u", "after"), ("nu", "after", "lag"), ("predicted", "f"), ("measured", PATH)],
)
def test_the_first_difference_is_told_with_its_line(path):
    lines = [json.loads(line) for line in LINES]
    for at in (9, 12):
        part = lines[at]
        for key in path[:-1]:
            part = part[key]
        right, part[path[-1]] = part[path[-1]], math.nextafter(part[path[-1]], math.inf)
        if at == 9:
            told = TraceDifference(10, ".".join(path), part[path[-1]], right)
    changed = [json.dumps(line) for line in lines]
    assert replay(changed) == told
    assert replay(changed, tolerance=1e-9) is None, "also of a zero"


def test_a_difference_is_found_down_to_the_tolerance():
    lines = [json.loads(line) for line in LINES]
    right = lines[9]["predicted"]["f"]
    lines[9]["predicted"]["f"] = other = right * (1 + 1e-6)
    changed = [json.dumps(line) for line in lines]
    assert right != 0 and replay(changed, tolerance=1e-9) == TraceDifference(10, "predicted.f", other, right)
    assert replay(changed, tolerance=1e-5) is None


def test_numbers_near_zero_are_compared_by_their_difference():
    assert first_difference({"g": 0.0}, {"g": 1e-17}, 0.0) == ("g", 0.0, 1e-17)
    assert first_difference({"g": 0.0}, {"g": 1e-17}, 1e-9) is None
    assert first_difference({"g": 0.0}, {"g": 1e-8}, 1e-9) == ("g", 0.0, 1e-8)


def test_what_was_learned_of_the_response_is_compared_to_the_bit_alone():
    lines = [json.loads(line) for line in LINES]
    right = lines[9]["response"]["weights"][0]
    lines[9]["response"]["weights"][0] = other = right + 1e-3
    changed = [json.dumps(line) for line in lines]
    assert replay(changed) == TraceDifference(10, "response.weights.0", other, right)
    assert replay(changed, tolerance=1e-9) is None


def test_other_signals_are_found_in_what_follows_from_them():
    lines = [json.loads(line) for line in LINES]
    lines[4]["y"]["live_rps"] += 100
    assert replay(map(json.dumps, lines)).line == 5
    del lines[6]["controls"]
    assert replay(map(json.dumps, [lines[0], lines[6]])).line == 2


def test_a_contract_or_a_release_that_is_another_is_refused():
    for key, value, told in (
        ("hash", "0" * 16, "line 1: hash='0000000000000000', its contract's is"),
        ("controller", 0, "controller=0, this is 7"), ("terms", {}, "line 1: name: missing"),
        ("state", {}, "line 1: began_s: missing"), ("plan", 3, "line 1: SharedPlan=3"),
    ):  # fmt: skip
        with pytest.raises(ControlTraceError, match=told):
            replay([json.dumps({**json.loads(LINES[0]), key: value}), *LINES[1:]])


@pytest.mark.parametrize(
    ("line", "told"),
    [("{", "line 3: not JSON"), ("[]", "line 3: .* is no mapping"), ("{}", "line 3: 'y'"),
     ('{"y": {"time_s": 1e9, "wind": 3}}', "line 3: wind=3: no such field")],
)  # fmt: skip
def test_a_damaged_line_is_named(line, told):
    with pytest.raises(ControlTraceError, match=told):
        replay([*LINES[:2], line])
    with pytest.raises(ControlTraceError, match="line 1: missing"):
        replay([])


def test_signals_are_written_without_what_is_unread():
    assert json.loads(LINES[1])["y"].get("live_high_rps") is None and Signals(0.0).live_high_rps is None


@pytest.mark.parametrize(("logged", "other"), [("0.0", "-0.0"), ("0.0", "0"), ("1.0", "true")])
def test_bit_for_bit_means_the_sign_of_zero_and_the_kind_of_value(logged, other):
    line = next(line for line in LINES[1:] if f'"shed":{logged}' in line or f'"quantum":{logged}' in line)
    for field in ("shed", "quantum"):
        changed = line.replace(f'"{field}":{logged}', f'"{field}":{other}')
        if changed != line:
            at = LINES.index(line)
            assert replay([*LINES[:at], changed]) == TraceDifference(
                at + 1, f"controls.{field}", json.loads(other), json.loads(logged)
            )
