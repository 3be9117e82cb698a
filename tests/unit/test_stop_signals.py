"""SIGTERM and ctrl-C set an event; for the length of a block, or for good; children ignore SIGTERM."""

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, subprocess, sys, threading
from pipelines.signals import event_of_signals, keep_sigterm_from_jvm, stop_on_signals
stop = threading.Event()
before = signal.getsignal(signal.SIGTERM)
with stop_on_signals(stop):
    os.kill(os.getpid(), signal.{name})
assert stop.wait(30) and signal.getsignal(signal.SIGTERM) is before
stop = event_of_signals()
os.kill(os.getpid(), signal.{name})
assert stop.wait(30)
keep_sigterm_from_jvm()
child = os.fork()
if child == 0:
    os._exit(0 if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("name", [signal.SIGTERM.name, signal.SIGINT.name])
def test_a_signal_sets_the_event_and_children_ignore_sigterm(name):
    subprocess.run([sys.executable, "-c", SCRIPT.format(name=name)], check=True, timeout=60)
