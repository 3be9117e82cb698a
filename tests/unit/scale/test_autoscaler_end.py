"""SIGTERM while the autoscaler's JVM starts: the JVM does not get it, the query is never started, the end is quiet."""

import subprocess
import sys

SCRIPT = """
import os, signal, subprocess
from pathlib import Path
from types import SimpleNamespace
from configs.settings import load
from pipelines.scale import autoscaler

def local_session(name, cores):
    jvm = subprocess.Popen(["grep", "SigIgn", "/proc/self/status"], preexec_fn=lambda: None)  # as PySpark starts it
    jvm.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    return SimpleNamespace(stop=lambda: print("stopped", flush=True))

def start(*arguments):
    print("started", flush=True)
    raise SystemExit(1)

autoscaler.create_topics = lambda kafka: None
autoscaler.make_contract_watch = lambda settings, accepted: SimpleNamespace(update=list)
autoscaler.local_session, autoscaler.start_query = local_session, start
autoscaler.run_autoscaler(load(autoscaler={"policy": "static"}), Path("checkpoint"))
"""


def test_sigterm_while_the_jvm_starts_ends_it_before_the_query_and_spares_the_jvm():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    ignored, *rest = done.stdout.splitlines()
    assert int(ignored.split()[1], 16) & 1 << 14 and rest == ["stopped"]
