"""A replay's query that ends before its range is read: why it did, in a line."""

from types import SimpleNamespace

import pytest

from tidecast.replay.query import ReplayQuery, why_ended

OURS = "tidecast.backfill.spec.BackfillError: backfill fix cannot be written: no room beside /lake/job"
TOLD = f"""[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. \
Reason: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/app/tidecast/backfill/room.py", line 30, in refuse_full_disk
    yield
pyspark.errors.exceptions.captured.SparkException: [TASK_WRITE_FAILED] No space left on device

JVM stacktrace:
org.apache.spark.SparkException
\tat org.apache.spark.sql.errors.QueryExecutionErrors

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/app/py4j/clientserver.py", line 641, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
{OURS}
 SQLSTATE: 39000
=== Streaming Query ===
Identifier: [id = 1, runId = 2]
"""
"""How Spark tells an error of a sink."""
OF_JVM = """[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. \
Reason: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/app/tidecast/backfill/kept.py", line 46, in keep_batch
    marked.write.mode("overwrite").format(form).save(str(folder / str(number)))
py4j.protocol.Py4JJavaError: An error occurred while calling o371.save.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/lake/job.
\tat org.apache.spark.sql.errors.QueryExecutionErrors

 SQLSTATE: 39000
=== Streaming Query ===
"""
"""Likewise, of the JVM below the sink."""


def test_an_error_of_a_sink_is_told_in_its_own_words_and_any_other_as_spark_tells_it():
    assert why_ended(RuntimeError(TOLD)) == OURS
    assert why_ended(RuntimeError("offsets are gone\n=== Streaming Query ===")).startswith("offsets are gone")
    assert why_ended(None) == "it was stopped"


def test_of_an_error_of_the_jvm_below_a_sink_it_is_told_which_one_it_was():
    occurred, which = why_ended(RuntimeError(OF_JVM)).split(".: ")
    assert occurred == "py4j.protocol.Py4JJavaError: An error occurred while calling o371.save"
    assert which.startswith("org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed") and "\n" not in which


def test_a_query_that_has_failed_says_why_and_all_that_spark_told_stays_its_cause():
    failure = RuntimeError(TOLD)
    query = ReplayQuery.__new__(ReplayQuery)
    query.__dict__.update(
        _query=SimpleNamespace(status={"message": "Terminated"}, isActive=False, exception=lambda: failure),
        _reader=SimpleNamespace(new_batches=list, committed=dict), _committed={}, newest=None,
        _staged=SimpleNamespace(files=lambda: (1, 5)),
    )  # fmt: skip
    with pytest.raises(RuntimeError) as raised:
        query.poll()
    assert str(raised.value) == f"its query has ended before the range was read: {OURS}"
    assert raised.value.__cause__ is failure
