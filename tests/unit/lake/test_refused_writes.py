"""What a file system answers in the middle of a commit is told in a line; all else is as Spark has it."""

from pathlib import Path

import pytest

from pipelines.lake.errors import LakeFullError
from pipelines.lake.writable import naming_refusals

HDFS = "org.apache.hadoop.hdfs"


@pytest.mark.parametrize(("said", "words"), [
    ("java.io.IOException: No space left on device", "has no room left"),
    ("Read-only file system", "has become read-only"),
    (f"{HDFS}.protocol.DSQuotaExceededException: The DiskSpace quota of /lake is exceeded", "reached its quota; raise"),
    (f"{HDFS}.protocol.NSQuotaExceededException: The NameSpace quota of directory /lake", "reached its quota; raise"),
    (
        'AccessControlException: Permission denied: user=tidecast, access=WRITE, inode="/lake/metrics":hdfs',
        "forbids this user to write there; give it the right",
    ),
    (f"{HDFS}.server.namenode.SafeModeException: Cannot create file. It is in safe mode", "is in safe mode; wait"),
])  # fmt: skip
def test_what_is_full_is_told_with_its_remedy(said, words):
    told = rf"the file system of /lake/metrics .*{words}.*Nothing was committed there"
    with pytest.raises(LakeFullError, match=told), naming_refusals(Path("/lake/metrics")):
        raise RuntimeError(f"Job aborted due to stage failure: {said}\n  at java.base/...")


def test_what_is_something_else_passes():
    with pytest.raises(RuntimeError, match="a file is gone"), naming_refusals(Path("/lake/metrics")):
        raise RuntimeError("a file is gone")
