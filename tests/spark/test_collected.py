"""A JVM that is asked to collect its garbage does; what is none, or is gone, is told."""

import os
import subprocess
import sys

import psutil
import pytest

from pipelines.bench.soak.collected import collect_garbage, is_java


def test_a_jvm_collects_its_whole_heap_each_time_that_it_is_asked(spark):
    jvm = spark._jvm
    beans = jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
    (whole,) = [bean for bean in beans if bean.getName() == "MarkSweepCompact"]
    pid = int(jvm.java.lang.ProcessHandle.current().pid())
    for _ in range(2):  # the first time it does not listen yet
        before = whole.getCollectionCount()
        collect_garbage(pid)
        assert whole.getCollectionCount() > before
    assert is_java(psutil.Process(pid)) and not is_java(psutil.Process(os.getpid()))


def test_of_a_process_that_is_gone_it_says_so():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with pytest.raises(FileNotFoundError):
        collect_garbage(gone.pid)
