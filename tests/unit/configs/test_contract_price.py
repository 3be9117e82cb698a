"""The price of an executor-hour: optional, a positive number, and unseen by releases that know none."""

import json

import pytest
from pydantic import ValidationError

from configs.contract import Contract


def test_a_contract_without_a_price_has_the_text_it_always_had():
    plain, priced = Contract(job="j"), Contract(job="j", price_per_executor_hour=0.4)
    assert "price_per_executor_hour" not in json.loads(plain.text)
    assert Contract.model_validate_json(priced.text).hash == priced.hash != plain.hash
    assert Contract.model_validate_json(plain.text).text == plain.text


@pytest.mark.parametrize("price", [0, -1, float("inf"), float("nan"), "cheap"])
def test_a_price_is_a_finite_number_above_zero(price):
    with pytest.raises(ValidationError, match="price_per_executor_hour"):
        Contract(job="j", price_per_executor_hour=price)
