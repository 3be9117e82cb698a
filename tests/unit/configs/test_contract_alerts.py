"""The section `alerts` of a contract: whom it takes, and that its address stays where it was written."""

import pytest
import yaml
from jsonschema import Draft202012Validator

from configs.contract import Contract, load_contract
from configs.errors import SettingsError
from configs.schema import contract_schema

SECRET, CHECK = "T0PSECRET", Draft202012Validator(contract_schema())


def read(folder, said):
    (folder / "orders.yaml").write_text(yaml.safe_dump({"job": "orders", **said}))
    return load_contract("orders", folder)


@pytest.mark.parametrize(
    ("alerts", "right"),
    [
        ({"webhook": f"https://hooks.example/{SECRET}"}, True),
        ({"webhook": f"https://hooks.example/{SECRET}", "repeat_s": 600}, True),
        ({"webhook": "http://127.0.0.1:9000/x"}, True), ({"webhook": "http://localhost/x"}, True),
        ({"webhook": f"http://hooks.example/{SECRET}"}, False), ({"webhook": "http://127.0.0.1.example/x"}, False),
        ({"webhook": f"ftp://hooks.example/{SECRET}"}, False), ({"webhook": f"https://a/ {SECRET}"}, False),
        # What no client can parse would end the look at all webhooks.
        ({"webhook": f"https://[x/{SECRET}"}, False), ({"webhook": f"https://a:b/{SECRET}"}, False),
        ({"webhook": f"https://:443/{SECRET}"}, False), ({"webhook": f"https://me:{SECRET}@a/x"}, False),
        ({"webhook": f"{SECRET}"}, False), ({"webhok": f"https://a/{SECRET}"}, False), ({}, False),
        ({"webhook": 3}, False), (f"https://a/{SECRET}", False),
        ({"webhook": f"https://a/{SECRET}", "repeat_s": 3}, False),
        ({"webhook": f"https://a/{SECRET}", "repeat_s": 1e6}, False),
        ({"webhook": f"https://a/{SECRET}", "to": "me"}, False),
    ],
)  # fmt: skip
def test_reader_and_schema_take_the_same_and_no_error_repeats_the_address(tmp_path, alerts, right):
    said = {"alerts": alerts}
    assert CHECK.is_valid({"job": "orders", **said}) == right
    if right:
        assert read(tmp_path, said).alerts.webhook.get_secret_value() == alerts["webhook"]
    else:
        with pytest.raises(SettingsError) as refused:
            read(tmp_path, said)
        assert "alerts" in str(refused.value) and SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "said",
    [
        {"alert": {"webhook": f"https://a/{SECRET}"}},
        {"webhok": f"https://a/{SECRET}"},
        {"hook": SECRET},
        {"to": f"https://a/{SECRET}"},
        {"alerts": {f"https://a/{SECRET}": None}},
    ],
)
def test_an_address_under_a_wrong_key_or_as_one_is_not_repeated_either(tmp_path, said):
    with pytest.raises(SettingsError) as refused:
        read(tmp_path, said)
    assert SECRET not in str(refused.value)


def test_the_address_is_in_nothing_that_is_written_of_a_contract(tmp_path):
    with_alerts, without = read(tmp_path, {"alerts": {"webhook": f"https://a/{SECRET}"}}), Contract(job="orders")
    assert (with_alerts.text, with_alerts.hash) == (without.text, without.hash)
    written = f"{with_alerts!r} {with_alerts} {with_alerts.model_dump()} {with_alerts.model_dump_json()}"
    assert SECRET not in written and "alerts" not in with_alerts.model_dump(mode="json")
