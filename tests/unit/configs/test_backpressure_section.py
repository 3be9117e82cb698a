"""What a contract file states under `backpressure` is read whole, kept by its text, and refused where it is wrong."""

import json

import pytest

from configs.contract import Contract, load_contract
from configs.errors import SettingsError

WHOLE = """\
job: a
backpressure:
  version: 2
  interval_s: 5
  admit_by: arrivals
  weights: {alpha: 2}
  scales: {latency_ms: 1000, energy_cores: 4, error_rel: 0.02, goodput_rps: 500}
  paths:
    - {quantile: 0.99, max_ms: 4000}
    - {class: replay, ops: [a], quantile: 0.5, max_ms: 60000}
  memory: {max_bytes: 1.0e+9}
  lag: {max_ms: 9000}
  util_max: {cpu: 0.9}
  error: {hll: {eps_rel: 0.01, pf: 0.05}}
  recall: {near: {min: 0.9}}
  recovery: {order: live_first}
  shed: {allowed: true, max_fraction: 0.1}
  fairness: {weights: {gold: 2}}
  controls: {replay_rps: {max: 300}, live_rps: {}}
"""


def loaded(folder, text):
    (folder / "a.yaml").write_text(text)
    return load_contract("a", folder)


def test_a_whole_section_is_read_and_kept_by_the_contracts_text(tmp_path):
    contract = loaded(tmp_path, WHOLE)
    stated = contract.backpressure
    assert stated.paths[1].kind == "replay" and stated.paths[0].ops == () and stated.controls.live_rps is not None
    assert stated.recovery.order == "live_first" and stated.recovery.rto_s == 300 and stated.weights.beta == 0.2
    again = Contract.model_validate(json.loads(contract.text))
    assert again.backpressure == stated and again.hash == contract.hash != Contract(job="a").hash
    assert Contract.model_validate(contract.model_dump(mode="json")).hash == contract.hash


def test_tables_change_neither_text_nor_hash_and_are_in_nothing_that_is_written_of_a_contract(tmp_path):
    without = loaded(tmp_path, WHOLE)
    stated = loaded(tmp_path, f"{WHOLE}  tables: {{shop.sales: /lake/sales, refunds: /lake/sales}}\n")
    assert stated.backpressure.tables == {"shop.sales": "/lake/sales", "refunds": "/lake/sales"}
    assert without.backpressure.tables == {} and (stated.text, stated.hash) == (without.text, without.hash)
    written = f"{stated.text} {stated.to_json_values()} {stated.model_dump()} {stated.model_dump_json()}"
    assert "tables" not in written and "/lake" not in written


def test_an_empty_section_is_a_section_and_none_is_none(tmp_path):
    assert loaded(tmp_path, "job: a\nbackpressure:").hash == Contract(job="a").hash
    assert loaded(tmp_path, "job: a\nbackpressure: {}").hash != Contract(job="a").hash


@pytest.mark.parametrize(
    ("section", "line", "says"),
    [
        ("  weights: {alpha: 2}", 2, "scales: weights are stated, and latency_ms is missing: .*State every scale"),
        (
            "  weights: {alpha: 2}\n  scales: {latency_ms: 1, energy_cores: 1, error_rel: 1}", 4,
            "scales: weights are stated, and goodput_rps is missing",
        ),
        ("  latency: 3", 3, "backpressure.latency=3: no such key.*docs/contract.md"),
        ("  paths:\n    - quantile: 0.9\n    - quantile: 1", 5, "paths.1.quantile=1: Input should be less than 1"),
        ("  paths:\n    - {max_ms: 0}", 4, "paths.0.max_ms=0: Input should be greater than 0"),
        ("  paths:\n    - max_ms: 100", 4, "paths.0.max_ms=100: a batch takes 0.6 s .*State 600 ms or more"),
        ("  paths: [{class: replay, max_ms: 9000}]", 3, "class replay follows from no promise. State its quantile"),
        ("  paths: [{class: other}]", 3, "paths.0.class='other'"),
        ("  paths:\n    - {ops: [a, join]}", 4, "paths.0.ops=a, join: a running job is one operator, .*Leave ops out"),
        ("  memory:\n    max_bytes: -1", 4, "memory.max_bytes=-1"),
        ("  memory: {}", 3, "memory.max_bytes: missing.*State it"),
        ("  lag: {max_ms: .inf}", 3, "lag.max_ms=inf: Input should be a finite"),
        ("  scales: {latency_ms: .nan}", 3, "scales.latency_ms=nan"),
        ("  error: {hll: {pf: 0.1}}", 3, "error.hll: .*state one of the two"),
        ("  shed:\n    max_fraction: 0.1", 3, "shed: max_fraction=0.1: nothing is shed. State allowed: true"),
        ("  priorities:\n    replay: 200", 3, "priorities: .*must not rise"),
        ("  controls:\n    replay_rps:\n      min: 3\n      max: 2", 4, "replay_rps: min=3 is above max=2; swap them"),
        ("  controls: {theta: {min: 0.5, max: 0.4}}", 3, "theta: min=0.5, max=0.4"),
        ("  controls: {thetta: {}}", 3, "controls.thetta={}: no such key"),
        ("  recovery: {order: any}", 3, "recovery.order='any'"),
        ("  interval_s: 0", 3, "interval_s=0"),
        ("  admit_by: paper", 3, "admit_by='paper': Input should be 'forecast' or 'arrivals'"),
        ("  tables:\n    events: /lake/a\n    sales: lake/b", 5, "sales: 'lake/b' is no absolute path .*State one, as"),
        ("  tables: {sales: 's3a://me:hunter2@lake'}", 3, "tables.sales: 's3a://…' is no absolute path"),
        ("  tables:\n    new orders: /lake", 4, "a topic's whole name is expected, as --topic has it: 1 to 249"),
        ("  tables:\n    sales: [/lake]", 4, "tables.sales=.*: Input should be a valid string"),
        ("  tables: /lake", 3, "backpressure.tables='/lake': Input should be a valid"),
        (" 3", 2, "backpressure=3"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_it_is_told_with_line_and_remedy(tmp_path, section, line, says):
    with pytest.raises(SettingsError, match=says) as told:
        loaded(tmp_path, f"job: a\nbackpressure:\n{section}\n")
    assert str(told.value).startswith(f"a.yaml, line {line}: backpressure")
