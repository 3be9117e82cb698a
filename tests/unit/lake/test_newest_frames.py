"""Which records are read twice where only the newest count."""

import math

import pandas as pd
import pytest

from configs.bounds import DAY_S
from pipelines.lake.steps import newest_frames

BEGAN = 1_413_936_000.0  # 2014-10-22


def records(job, times, span_s=3600.0):
    return pd.DataFrame({"job": job, "time": times, "span_s": span_s})


def newest(whole, span_s, asked):
    """What is kept; what the frames are asked for is noted, and given."""

    def read(since):
        asked.append(since)
        return [whole[::2][lambda part: part["time"] >= since], whole[1::2][lambda part: part["time"] >= since]]

    return pd.concat(newest_frames(read, span_s)).sort_values(["job", "time"], ignore_index=True)


@pytest.mark.parametrize("wrong", [[], [BEGAN - 1e9], [BEGAN + 1e9]])
def test_of_a_year_the_second_look_is_at_the_newest_days(wrong):
    hours, asked = [BEGAN + 3600 * at for at in range(365 * 24)], []
    kept = newest(records("orders", [*hours, *wrong]), 7 * DAY_S, asked)
    pd.testing.assert_frame_equal(kept, records("orders", hours[-7 * 24 :]))
    assert asked[0] == -math.inf and hours[-9 * 24] < asked[1] <= hours[-7 * 24]


def test_a_job_that_ended_long_ago_keeps_its_own_newest_and_long_records_theirs():
    hours, asked = [BEGAN + 3600 * at for at in range(60 * 24)], []
    over, long = records("over", hours[: 9 * 24]), records("long", [hours[-72]], 72 * 3600.0)
    kept = newest(pd.concat([records("orders", hours), over, long]), DAY_S, asked)
    wanted = [long, records("orders", hours[-24:]), over[-24:]]
    pd.testing.assert_frame_equal(kept, pd.concat(wanted, ignore_index=True))


def test_without_records_nothing_is_kept():
    assert newest(records("orders", []), DAY_S, []).empty
