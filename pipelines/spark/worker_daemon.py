"""Forks Spark's Python workers after the slow imports, so that a new executor pays for them once, not per worker.

PySpark itself imports pyarrow only in the worker, because it may start threads; no hang was ever seen. Pandas stays
out: the managed job does not need it, and it would more than double the time of a cold start.
"""

import pyarrow
import pyarrow.compute  # noqa: F401
import pyspark.sql.pandas.serializers
import pyspark.sql.pandas.types
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
