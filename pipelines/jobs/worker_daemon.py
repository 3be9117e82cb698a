"""Forks Spark's Python workers after the slow imports, so that a new executor pays for them once, not per worker.

PySpark itself imports pandas and pyarrow only in the worker, because they may start threads; no hang was ever seen.
"""

import numpy  # noqa: F401
import pandas  # noqa: F401
import pyarrow
import pyarrow.compute  # noqa: F401
import pyspark.sql.pandas.serializers
import pyspark.sql.pandas.types
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
