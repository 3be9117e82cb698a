from datetime import UTC, datetime, timedelta, timezone

import pytest

from pipelines.ingest.partition import PartitionError, default_name, validate_name

NOW = datetime(2014, 10, 22, 5, 20, 31, tzinfo=UTC)


@pytest.mark.parametrize("name", ["2014-10-22T04", "2014-09-24T04/2014-10-22T04", "2014-10-22T052031"])
def test_an_hour_an_interval_of_hours_or_a_moment_is_a_name(name):
    assert validate_name(name, NOW) == name


@pytest.mark.parametrize(
    "name",
    ["", "2014-10-22", "2014-10-22T4", "2014-10-22T24", "2014-02-30T01", "2014-10-22T04:00", "today", "2014-10-22T04/",
     "2014-10-22T04/2014-10-22T05/2014-10-22T06", "2014-10-22T04'; --"],
)  # fmt: skip
def test_anything_else_is_refused_with_what_would_be_right(name):
    with pytest.raises(PartitionError, match="2014-10-22T04") as error:
        validate_name(name, NOW)
    assert repr(name) in str(error.value)


@pytest.mark.parametrize("end", ["2014-10-22T04", "2014-10-22T03"])
def test_an_interval_must_end_after_it_starts(end):
    with pytest.raises(PartitionError, match="after it starts"):
        validate_name(f"2014-10-22T04/{end}", NOW)


@pytest.mark.parametrize("name", ["2014-10-22T05", "2014-10-23T00"])
def test_an_hour_that_is_not_over_belongs_to_the_run_that_follows_it(name):
    with pytest.raises(PartitionError, match=r"it is 2014-10-22 05:20 UTC here.*Leave it empty; where it was, set"):
        validate_name(name, NOW)


def test_a_scheduled_run_takes_its_hour_where_its_clock_is_a_little_behind():
    for behind_s in (0, 3, 290):
        assert validate_name("2014-10-22T05", NOW.replace(hour=6, minute=0, second=0) - timedelta(seconds=behind_s))


def test_a_run_by_hand_never_takes_the_name_of_an_hour():
    elsewhere = NOW.astimezone(timezone(timedelta(hours=-7)))
    assert default_name(NOW - timedelta(minutes=80), NOW) == "2014-10-22T04"
    assert default_name(None, elsewhere) == validate_name("2014-10-22T052031", NOW)
