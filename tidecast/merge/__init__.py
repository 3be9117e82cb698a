"""Windowed results in one Delta table: what a live query tells is merged by key, window and version."""

from tidecast.merge.columns import MergeError
from tidecast.merge.sink import MergeSink
from tidecast.merge.table import read_results

__all__ = ["MergeError", "MergeSink", "read_results"]
