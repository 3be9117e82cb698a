"""Copies of a job's values: those that `dataclasses.replace` makes, written in the same order."""

from dataclasses import fields, replace
from functools import cached_property

from configs.contract import Contract
from models.policy.copies import copy_with
from models.policy.core.batch_time import BatchTime
from models.policy.core.batches import BatchSums
from models.policy.live.memory import Memory, fresh

CONTRACT = Contract(job="copied")


def test_a_copy_is_the_one_that_dataclasses_make_to_the_last_byte_and_the_value_stays():
    memory = fresh(CONTRACT)
    changes = {"mode": "act", "executors": 3, "lag_records": 7, "arrivals": (2.0, 3.5)}
    made, expected = copy_with(memory, **changes), replace(memory, **changes)
    assert made == expected and made.to_json() == expected.to_json() and hash(made.model) == hash(expected.model)
    assert memory == fresh(CONTRACT) and Memory.from_json(made.to_json()) == expected
    assert copy_with(made, executors=None) == replace(expected, executors=None) != made


def test_what_is_copied_so_holds_its_fields_and_nothing_that_is_made_with_them():
    guess = BatchTime.guess(0.4, 0.004)
    for one in (fresh(CONTRACT), guess, BatchSums()):
        assert list(vars(one)) == [field.name for field in fields(one)]
        assert not hasattr(one, "__post_init__")
        assert not any(isinstance(made, cached_property) for made in vars(type(one)).values())
    assert list(vars(guess.with_guess(guess, 2.0)).values()) == list(vars(replace(guess, per_record_s=0.008)).values())
