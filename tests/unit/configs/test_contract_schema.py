"""What an editor tells of a contract while it is written is what its reader says later."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from configs.contract import Planning, load_contract
from configs.errors import SettingsError
from configs.schema import contract_schema
from configs.settings import ROOT

SCHEMA = contract_schema()
SHIPPED = sorted((ROOT / "configs" / "contracts").rglob("*.yaml"))
CHECK = Draft202012Validator(SCHEMA)


def is_read(tmp_path, said):
    (tmp_path / "orders.yaml").write_text(yaml.safe_dump(said))
    try:
        return bool(load_contract("orders", tmp_path))
    except SettingsError:
        return False


def test_it_is_a_schema_and_the_shipped_contracts_are_valid():
    Draft202012Validator.check_schema(SCHEMA)
    assert SHIPPED
    for file in SHIPPED:
        CHECK.validate(yaml.safe_load(file.read_text()))


@pytest.mark.parametrize(
    "said",
    [
        {"job": "orders"},
        {"job": "orders", "backpressure": {"paths": [{"class": "replay", "quantile": 0.9, "max_ms": 9000}]}},
        {"job": "orders", "configurations": {"small": {"spark.sql.adaptive.enabled": True}}},
        {"job": "orders", "timezone": "Europe/Berlin"},
        {"job": "orders", "timezone": 2},
        {},
        {"job": "a b"},
        {"job": "orders", "latency_target": 5},
        {"job": "orders", "latency_target_s": "soon"},
        {"job": "orders", "latency_target_s": 0},
        {"job": "orders", "error_budget": 0},
        {"job": "orders", "error_budget": 1},
        {"job": "orders", "executors": {"min": 0}},
        {"job": "orders", "executors": {"min": 1, "cpus": 2}},
        {"job": "orders", "planning": {"quantile": 1.0}},
        {"job": "orders", "backpressure": {"paths": [{"class": "batch"}]}},
        {"job": "orders", "backpressure": {"recovery": {"order": "last_first"}}},
        {"job": "orders", "backpressure": {"tables": {"shop.sales": "/lake/all sales"}}},
        {"job": "orders", "backpressure": {"tables": {"sales": "lake/sales"}}},
        {"job": "orders", "backpressure": {"tables": {"sales": "hdfs://broker/lake/sales"}}},
        {"job": "orders", "backpressure": {"tables": {"new sales": "/lake/sales"}}},
        {"job": "orders", "backpressure": {"tables": {"sales": 3}}},
    ],
)
def test_both_refuse_and_take_the_same(tmp_path, said):
    assert CHECK.is_valid(said) == is_read(tmp_path, said)


@given(
    st.fixed_dictionaries(
        {"job": st.just("orders")},
        optional={
            "latency_target_s": st.floats(-1, 1e9),
            "error_budget": st.floats(-0.1, 1.1),
            "window_days": st.floats(0, 400),
            "executors": st.fixed_dictionaries({}, optional={"min": st.integers(-1, 9), "max": st.integers(-1, 99)}),
            "planning": st.dictionaries(st.sampled_from([*Planning.model_fields]), st.floats(0, 3), max_size=3),
        },
    )
)
def test_what_is_read_is_valid(tmp_path_factory, said):
    if is_read(tmp_path_factory.mktemp("contract"), said):
        CHECK.validate(said)


def test_every_key_is_explained_where_it_stands_or_by_its_section():
    for section in (SCHEMA, *SCHEMA["$defs"].values()):
        assert section["description"]
        assert all("None" not in key.get("description", "") for key in section["properties"].values())
    assert all(key.get("description") for key in SCHEMA["properties"].values())
    assert SCHEMA["$defs"]["Planning"]["properties"]["lead_s"]["description"].startswith(
        "from the request of an executor"
    )
