"""A contract's hash is made once, and a copy with other values has its own."""

from configs.contract import Contract


def test_a_copy_has_the_hash_of_what_it_says():
    contract = Contract(job="orders")
    first = contract.hash
    other = contract.model_copy(update={"latency_target_s": 7.0})
    assert other.hash == Contract.model_validate(other.model_dump()).hash != first
    assert contract.planned_for(44.0).hash != first == contract.hash
    assert contract == Contract(job="orders") and "hash" not in contract.model_dump()


def test_equal_contracts_are_one_key_and_what_is_planned_for_is_made_once():
    contract = Contract(job="orders", configurations={"quick": {"trigger": "2 seconds"}})
    again = Contract.model_validate(contract.model_dump())
    assert {contract: 1}[again] == 1 and again not in {Contract(job="orders"): 1}
    assert contract.planned_for(44.0) is again.planned_for(44.0, contract.planning.start_growth)
    assert contract.planned_for(44.0).planning.lead_s == 44.0 != contract.planning.lead_s
