"""Whatever is wrong in a contract file is told with file, line and remedy; nothing that older releases read changes."""

import hashlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from configs.contract import Contract, load_contract
from configs.errors import SettingsError
from configs.files import LinesError, read_lined
from configs.settings import ROOT

HASHES = {"key_window": "6a716c3216117495", "ride_count": "c815e124d7f1b5a0"}
"""Of the shipped contracts without a section `backpressure`, as releases that did not know it made them."""


def refused(folder, text):
    (folder / "a.yaml").write_text(text)
    with pytest.raises(SettingsError) as told:
        load_contract("a", folder)
    return str(told.value)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("job: a\n\nexecutors:\n  min: 5\n  max: 2", 3, "executors: min=5 is above max=2; swap them"),
        ("job: a\nplanning:\n  lead_s: 3\n  target_utilization: 0.7", 4, "target_utilization=0.7: no such key"),
        ("job: a\nplanning:\n  target_utilisation: 1.7", 3, "planning.target_utilisation=1.7: Input should be less"),
        ("job: a\n# none\nerror_budget: 0", 3, "error_budget=0: no job keeps that"),
        ("job: a\nlatency_target_s: 0.01", 2, "latency_target_s=0.01: a batch takes 0.6 s"),
        ("planning: {batch_s: 9}\njob: a", 1, "latency_target_s=5: a batch takes 9 s (planning.batch_s)"),
        ("# b\njob: b", 2, "job='b'; the file's name and the job's must be one. Rename"),
        ("job: a\nplanning: [", 2, "not YAML"),
        ("- a", 1, "is not a mapping of keys to values. Begin with job: a"),
        ("", 1, "an empty file is not a mapping"),
        ("job: a\nexecutors: {min: 1}\nexecutors: {max: 2}", 3, "executors is stated in line 2 already. Delete one"),
        ("job: a\nplanning:\n  lead_s: 1\n  hold_s: 2\n  lead_s: 3", 5, "lead_s is stated in line 3 already"),
        ("latency_target_s: 9", 1, "job: missing, and it has no default. State it"),
        ("job: a\nexecutors: &e {min: 3}\nplanning:\n  <<: *e\n  lead_s: 2", 2, "planning.min=3: no such key"),
        ("job: a\nwindow_days: .nan", 2, "window_days=nan"),
        ("job: a\n\ntimezone: Mars/Olympus", 3, "timezone: 'Mars/Olympus' is no time zone. Take an IANA name such as"),
        ("timezone: Europe\njob: a", 1, "timezone: 'Europe' is no time zone"),
        ("timezone: ../UTC\njob: a", 1, "timezone: '../UTC' is no time zone"),
        ("timezone:  2\njob: a", 1, "timezone=2: Input should be a valid string"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(tmp_path, text, line, says):
    told = refused(tmp_path, text)
    assert told.startswith(f"a.yaml, line {line}: ") and says in told


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("job: a\nalerts:\n  webhook: !hunter2", "line 3: not YAML at column 12"),
        ("job: a\nalerts:\n  webhook: !hunter2!x y", "line 3: not YAML at column 12"),
        ("job: a\nalerts:\n  webhook: !!float hunter2", "line 3: not YAML at column 12"),
        ("job: a\nalerts:\n  webhook: *hunter2", "line 3: not YAML at column 12"),
        ("job: a\nalerts: [&hunter2 b, &hunter2 c]", "line 2: not YAML at column 22"),
        ("job: a\nalerts: {webhook: 'hunter2", "line 2: not YAML at column 27"),
        ("job: a\nwindow_days: 2026-13-45", "line 2: not YAML at column 14"),
        ("webhook:hunter2", "line 1: one value is not a mapping"),
    ],
)
def test_what_is_not_yaml_is_told_by_its_place_and_not_repeated(tmp_path, text, place):
    told = refused(tmp_path, text)
    assert told.startswith(f"a.yaml, {place}") and "hunter2" not in told


def test_all_that_is_wrong_is_told_in_the_order_of_the_file(tmp_path):
    told = refused(tmp_path, "planning: {lead_s: -1}\njob: a\nlatency: 3\nexecutors:\n  max: 0").splitlines()
    assert [line.split(":")[0] for line in told] == [f"a.yaml, line {n}" for n in (1, 3, 5)]


@pytest.mark.parametrize("job", HASHES)
def test_the_shipped_contracts_have_the_hash_that_they_had(job):
    contract = load_contract(job, ROOT / "configs" / "contracts")
    assert contract.hash == HASHES[job] and "backpressure" not in contract.text
    assert "backpressure" not in contract.model_dump() and "backpressure" not in contract.model_dump_json()


def test_the_main_jobs_controller_decides_about_once_a_batch():
    contract = load_contract("word_count", ROOT / "configs" / "contracts")
    assert contract.backpressure.interval_s == 2
    plain = contract.model_copy(update={"backpressure": None})
    assert plain.hash == "c048ac94fcce61b1" != contract.hash  # nothing else has changed


def test_a_text_without_the_section_is_the_one_of_before():
    text = Contract(job="orders").text
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "53ab6d4fb749993b"
    assert Contract.model_validate_json(text).text == text


def test_a_time_zone_is_a_term_of_the_contract_that_states_it_alone():
    plain, zoned = Contract(job="orders"), Contract(job="orders", timezone="Asia/Tokyo")
    assert "timezone" not in plain.text and "timezone" not in plain.to_json_values()
    assert Contract.model_validate_json(zoned.text).hash == zoned.hash != plain.hash
    assert zoned.model_copy(update={"timezone": None}).hash == plain.hash


def test_an_alias_of_what_it_stands_in_ends():
    assert read_lined("b: 1\na: &x\n  - *x\n").line_of(("a", 0, 0)) == 2


@pytest.mark.parametrize("form", ["[{}]", "{{<<: [{}]}}", "{{? [{}] : 1}}"])
def test_a_file_whose_aliases_make_billions_of_keys_is_refused(tmp_path, form):
    lines = [f"k{n}: &a{n} " + form.format(", ".join([f"*a{n - 1}"] * 10)) for n in range(1, 10)]
    told = refused(tmp_path, "\n".join(["job: a", "k0: &a0 {x: 1}", *lines]))
    assert told.startswith("a.yaml, line ") and len(told) < 10_000


def test_lines_of_lists_sections_and_what_is_not_there():
    read = read_lined("a:\n  - x: 1\n    y: 2\n  - 3\nb: {c: 4}\n")
    assert read.data == {"a": [{"x": 1, "y": 2}, 3], "b": {"c": 4}}
    places = [("a",), ("a", 0, "y"), ("a", 1), ("b", "c"), ("b", "d", "e"), ("z",), ()]
    assert [read.line_of(place) for place in places] == [1, 3, 4, 5, 5, 1, 1]


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(max_size=60) | NESTED.map(lambda data: yaml.safe_dump(data, allow_unicode=True)))
def test_any_text_is_read_as_yaml_reads_it_or_refused_with_a_line(text):
    try:
        expected = yaml.safe_load(text)
    except Exception:
        expected = None
    try:
        read = read_lined(text)
    except LinesError as error:
        assert str(error).startswith("line ")
    except (ValueError, TypeError, RecursionError):
        with pytest.raises(Exception):  # noqa: B017  a date such as 0000-00-00, which yaml refuses alike
            yaml.safe_load(text)
    else:
        assert read.data == expected
        lines = text.splitlines() or [""]
        assert all(1 <= line <= len(lines) + 1 for line in read.lines.values())
