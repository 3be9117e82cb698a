"""Records that a live query drops as late are counted by the plan of its replay, in whatever order they are read."""

import json
import os

import pytest

from pipelines.jobs.plans import key_totals
from tests.fakes.plan_truths import SignedEvent, encode_signed, true_totals

pytestmark = pytest.mark.spark

MINUTE = 60_000
SIX, TEN = 1_700_000_000_000 // (1440 * MINUTE) * 1440 * MINUTE + 360 * MINUTE, 240 * MINUTE
"""06:00 of a day, and how much later ten o'clock is."""
BEGIN, END = SIX, SIX + 60 * MINUTE
EVENTS = (
    [SignedEvent(n, SIX + n * 10 * MINUTE - 1, "a") for n in range(12)],  # from before six until half past seven
    [SignedEvent(20, SIX + TEN - MINUTE, "a")],
    [SignedEvent(21, SIX + TEN, "a")],
    [SignedEvent(1, SIX + 10 * MINUTE - 1, "a", -1), *(SignedEvent(n, SIX + 30 * MINUTE + n, "b") for n in range(3))],
)
"""As they come; those of the last batch are three and a half hours late, and take one back."""


def counted(spark, folder, plan, batches):
    """What a stream tells of each window of the hour last, so many batches in one."""
    told = {}

    def take(batch, number):
        for row in batch.collect():
            told[row["key"], row["_window_start"]] = (row["n"], row["seq_sum"]) if row["_net"] > 0 else None

    reader = spark.readStream.schema("value string, at bigint").option("maxFilesPerTrigger", batches)
    files = reader.json(str(folder / "in"))
    records = files.selectExpr("CAST(value AS BINARY) AS value", "timestamp_millis(at) AS timestamp")
    writer = plan(records).writeStream.outputMode("update").foreachBatch(take)
    query = writer.option("checkpointLocation", str(folder / plan.__name__)).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return {group: counts for group, counts in told.items() if counts and BEGIN <= group[1] < END}


def test_a_replay_counts_what_came_too_late_for_live_and_takes_back_what_was_taken_back(one_partition, tmp_path):
    (tmp_path / "in").mkdir()
    for number, batch in enumerate(EVENTS):
        file = tmp_path / "in" / f"{number}.json"
        file.write_text("\n".join(json.dumps({"value": encode_signed(one).decode(), "at": one.t_e}) for one in batch))
        os.utime(file, (number, number))

    def again(records):
        return key_totals.again(records, BEGIN, END)

    whole = true_totals(event for batch in EVENTS for event in batch)
    truth = {group: counts for group, counts in whole.items() if BEGIN <= group[1] < END}
    assert ("b", SIX + 30 * MINUTE) in truth and ("a", SIX) not in truth
    assert counted(one_partition, tmp_path, again, 2) == truth
    live = counted(one_partition, tmp_path, key_totals.plan, 1)
    assert live["a", SIX] == (1, 1) and ("b", SIX + 30 * MINUTE) not in live
