"""A contract's hash is made once, and a copy with other values has its own."""

from configs.contract import Contract


def test_a_copy_has_the_hash_of_what_it_says():
    contract = Contract(job="orders")
    first = contract.hash
    other = contract.model_copy(update={"latency_target_s": 7.0})
    assert other.hash == Contract.model_validate(other.model_dump()).hash != first
    assert contract.planned_for(44.0).hash != first == contract.hash
    assert contract == Contract(job="orders") and "hash" not in contract.model_dump()
