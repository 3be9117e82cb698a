"""A disk that takes no more of what Spark writes."""

import resource
from contextlib import contextmanager


def pid_of(spark):
    """The process of its JVM."""
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())


@contextmanager
def no_room(spark):
    """Its JVM may write no file of more than 64 bytes."""
    jvm = pid_of(spark)
    whole = resource.prlimit(jvm, resource.RLIMIT_FSIZE)
    resource.prlimit(jvm, resource.RLIMIT_FSIZE, (64, whole[1]))
    try:
        yield
    finally:
        resource.prlimit(jvm, resource.RLIMIT_FSIZE, whole)
