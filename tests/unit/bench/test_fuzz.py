"""Damaged inputs at every border: drawn alike again, told where they end a reader, and none does."""

import json

import pytest
import yaml

from pipelines.bench.borders.fuzz import fuzz_border, fuzz_borders
from pipelines.bench.borders.mutants import make_mutants
from pipelines.bench.borders.read import Border

SAMPLE = b'{"a": 1, "b": {"c": [1, 2.5, "x"]}}'


@pytest.mark.parametrize("form", ["json", "yaml", "bytes"])
def test_the_same_seed_makes_the_same_damage(form):
    first, again, other = (list(make_mutants(form, [SAMPLE], 200, seed)) for seed in (7, 7, 8))
    assert first == again != other
    assert len(set(first)) > 120


def test_every_other_mutant_of_a_tree_is_a_tree_still():
    trees = list(make_mutants("json", [SAMPLE], 200, 7))[1::2]
    changed = [json.loads(raw) for raw in trees]
    assert sum(tree != json.loads(SAMPLE) for tree in changed) > 90
    assert all(isinstance(yaml.safe_load(raw), dict) for raw in list(make_mutants("yaml", [SAMPLE], 50, 7))[1::2])


def test_every_other_mutant_of_a_request_is_one_with_the_length_of_its_body():
    right = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n" + b'{"a": 1}'
    drawn = list(make_mutants("http", [right], 400, 7))[1::2]
    bodies = [(head, body) for head, _, body in (raw.partition(b"\r\n\r\n") for raw in drawn) if body]
    assert len(bodies) > 100 and all(f"Content-Length: {len(body)}".encode() in head for head, body in bodies)
    assert {b"GET", b"POST"} & {raw.split(b" ")[0] for raw in drawn} == {b"POST"}


def told(read, sound=lambda found: True, refused=(ValueError,)):
    return fuzz_border(Border("json", (SAMPLE,), read, refused, sound), 400, 7)


def test_a_border_that_falls_is_told_with_what_it_fell_over():
    def falls(raw, folder):
        return json.loads(raw)["a"]

    found = told(falls)
    assert found["inputs"] == 401 and found["refused"] > 0 and found["crashed"] > 5
    assert any(what == "crashed" and "KeyError" in why for what, _, why in found["faults"])
    assert len(found["faults"]) < 10


def test_what_is_accepted_wrongly_is_told():
    assert told(lambda raw, folder: raw, lambda found: b'"a": 1' in found)["unsound"] > 5
    what, _, why = told(lambda raw, folder: raw, lambda found: 1 / 0)["faults"][0]
    assert what == "unsound" and "ZeroDivisionError" in why


def test_a_border_that_refuses_what_is_right_is_told():
    def refuses(raw, folder):
        raise ValueError("never")

    found = told(refuses)
    assert found["accepted"] == 0 and found["crashed"] == 1
    assert found["faults"] == [["crashed", repr(SAMPLE), "refused, and right: never"]]


def test_no_border_falls():
    lines = []
    found = fuzz_borders(20, seed=11, say=lines.append)
    assert {name: one["faults"] for name, one in found["borders"].items() if one["faults"]} == {}
    assert len(lines) == len(found["borders"]) and found["inputs"] > 500
    assert 20 < found["fewest"] < 35
    assert {"topic: PoolWant", "topic: PoolState", "YAML: pool", "YAML: settings"} < {*found["borders"]}
    assert sum(found["shares"][name] for name in ("messages", "http", "yaml", "artifacts")) < found["inputs"]
    assert all(one["accepted"] for one in found["borders"].values())
