"""A table that lacks a part of a partition is refused: by what the topic still has, or once had."""

from pathlib import Path

import pytest

from pipelines.backfill.asked import RangeError, TimeRange
from pipelines.backfill.held import CopiedPartition, check_copied
from tests.fakes.held_topic import noted

DAY = 1_699_920_000.0
ASKED = TimeRange(DAY + 36_000, DAY + 43_200, 60.0, DAY + 80_000)
"""From 10:00 to 12:00."""
WHOLE, FULL = CopiedPartition(200, ASKED.until - 1), (0, 100, 200)
SHORT = CopiedPartition(150, DAY + 40_800)
"""Until 11:20 only."""


def check(copied, *parts, **stamps):
    """What is asked of the topic's records."""
    held = noted(*parts, stamps={int(name[1:]): at for name, at in stamps.items()})
    check_copied(Path("/lake/orders"), held, dict(enumerate(copied)), ASKED)
    return held.asked


def test_a_partition_of_which_the_table_ends_early_is_refused_with_how_far_it_goes():
    with pytest.raises(RangeError, match=r"lacks records of partition 1 of topic 'orders' from \S+T11:20:05Z on"):
        check([WHOLE, SHORT], FULL, FULL, _1=DAY + 40_805)
    with pytest.raises(RangeError, match=r"give --to \S+T11:19:05Z, and read the rest from the topic"):
        check([WHOLE, SHORT], FULL, FULL, _1=DAY + 40_805)


def test_a_partition_that_is_not_in_the_table_is_refused_unless_it_was_quiet():
    whole = [WHOLE, WHOLE]
    with pytest.raises(RangeError, match=r"partition 2 of topic 'orders' from \S+T10:00:01Z on.*give another table"):
        check(whole, FULL, FULL, (0, 30, 70), _2=DAY + 36_001)
    assert check(whole, FULL, FULL, (0, 0, 0)) == []  # empty, or widened after the range
    assert check(whole, FULL, FULL, (0, 70, 70)) == []  # all of it is of before
    assert check(whole, FULL, FULL, (0, 30, 31)) == [{2: (30, 31)}]  # a transaction's mark


def test_a_table_that_ends_with_the_range_is_told_why_it_lacks_what_may_have_come_late():
    ends = CopiedPartition(190, ASKED.end - 1)
    why = r"records of before --to may have come until \S+T12:01:00Z, so give --to "
    with pytest.raises(RangeError, match=rf"from \S+T12:00:04Z on, which the topic has: {why}\S+T11:59:04Z"):
        check([ends], FULL, _0=ASKED.end + 4)
    with pytest.raises(RangeError, match=rf"begins later, at offset 5000: {why}\S+T11:58:59Z"):
        check([ends], (5_000, 5_000, 5_000))


def test_records_that_neither_has_are_missed_though_nobody_can_show_them():
    with pytest.raises(RangeError, match=r"partition 1 of topic 'orders' until \S+T11:20:00Z only, .* at offset 170"):
        check([WHOLE, SHORT], FULL, (170, 170, 200))
    with pytest.raises(RangeError, match=r"partition 2 of topic 'orders' nowhere, .* at offset 500.*another table"):
        check([WHOLE, WHOLE], FULL, FULL, (500, 500, 900))


def test_a_table_that_goes_on_behind_the_range_is_whole_whatever_the_topic_has_dropped():
    later, gone = CopiedPartition(900, DAY + 60_000), (5_000, 5_000, 5_000)
    assert check([later, later], gone, gone) == []
    assert check([WHOLE], (150, 150, 200)) == []  # it ends where the range does
    assert check([CopiedPartition(150, DAY)], (160, 170, 170)) == []  # the topic has one that is older than the range
