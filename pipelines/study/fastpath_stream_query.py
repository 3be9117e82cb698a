"""The streaming form as a process: `python -m pipelines.study.fastpath_stream_query CHECKPOINT SETS`."""

from __future__ import annotations

import sys
from pathlib import Path

from configs.settings import load
from pipelines.serve.fleet_query import start
from pipelines.session import local_session
from pipelines.stack.state import addressed
from pipelines.study.fastpath_load import JOBS

if __name__ == "__main__":
    query = start(local_session("fastpath", cores=2), addressed(load()), Path(sys.argv[1]), Path(sys.argv[2]), JOBS)
    query.awaitTermination()
