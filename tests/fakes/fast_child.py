"""Fast servers as processes with one known champion: `python -m tests.fakes.fast_child` forks one per line it reads.

What takes seconds to import is imported once, and each server is a process of its own that can be killed. A line is
JSON: the variables of the server's environment beyond those of this process.
"""

import json
import os
import signal
import sys

from configs.settings import load
from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import Task
from pipelines.registry import Champion
from pipelines.serve.fast.server import serve_fast

JOB = "word_count"
STEP = 3600.0
MADE = Naive(Task(STEP, 3, (0.1, 0.5, 0.9)))


class One:
    """A registry with one version for one job."""

    def champions(self):
        return {JOB: Champion("1")}

    def model_name(self, job):
        return f"{job}-forecaster"

    def fetch(self, job, version):
        return MADE, None


def main():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            sys.stdin.close()
            os.environ.update(json.loads(line))
            try:
                serve_fast(load(), One)
            finally:
                sys.stderr.flush()
                os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
