"""The daemon of the shared session's Python workers: what one with state imports is there before workers are forked.

PySpark's client of the state imports PySpark's own tools for tests, these import Pandas, and Arrow does for the first
rows that it is given: most of a second in each new worker, and a minute without a task ends all of them.
"""

from __future__ import annotations

import importlib

from pipelines.spark.worker_daemon import main

IMPORTED = ("pyspark.testing.utils", "pyspark.sql.streaming.proto.StateMessage_pb2", "pyarrow.pandas_compat")

if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    main()
