"""The streaming form as a process: `python -m pipelines.bench.fastpath.child.stream_query CHECKPOINT SETS`."""

from __future__ import annotations

import sys
from pathlib import Path

from configs.settings import load
from pipelines.bench.fastpath.load import JOBS
from pipelines.serve.stream.fleet_query import start_query
from pipelines.spark.session import local_session
from pipelines.stack.state import with_stack_addresses

if __name__ == "__main__":
    query = start_query(
        local_session("fastpath", cores=2), with_stack_addresses(load()), Path(sys.argv[1]), Path(sys.argv[2]), JOBS
    )
    query.awaitTermination()
