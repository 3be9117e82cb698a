import pytest

from pipelines.ingest.partition import PartitionError, checked


@pytest.mark.parametrize("name", ["2014-10-22T04", "2014-09-24T04/2014-10-22T04"])
def test_an_hour_or_an_interval_of_hours_is_a_name(name):
    assert checked(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "2014-10-22", "2014-10-22T4", "2014-10-22T24", "2014-02-30T01", "2014-10-22T04:00", "today", "2014-10-22T04/",
     "2014-10-22T04/2014-10-22T05/2014-10-22T06", "2014-10-22T04'; --"],
)  # fmt: skip
def test_anything_else_is_refused_with_what_would_be_right(name):
    with pytest.raises(PartitionError, match="2014-10-22T04") as error:
        checked(name)
    assert repr(name) in str(error.value)


@pytest.mark.parametrize("end", ["2014-10-22T04", "2014-10-22T03"])
def test_an_interval_must_end_after_it_starts(end):
    with pytest.raises(PartitionError, match="after it starts"):
        checked(f"2014-10-22T04/{end}")
