"""What a Python worker hands the JVM of a keyed step: a batch of each key's rows, and none of no rows."""

import subprocess
import sys
from types import SimpleNamespace

from configs.settings import ROOT
from pipelines.spark.worker_daemon import filled

WRITTEN = """
import io, struct
import pyarrow as pa
from pipelines.spark.worker_daemon import import_all
import_all()
from pyspark.sql import Row
from pyspark.sql.pandas.serializers import TransformWithStateInPySparkRowSerializer
from pyspark.sql.types import StringType, StructType
kind = StructType().add("key", StringType())
def written(*keys):
    out = io.BytesIO()
    packs = ([(map(Row("key"), each), kind)] for each in keys)
    TransformWithStateInPySparkRowSerializer(arrow_max_records_per_batch=0).dump_stream(packs, out)
    return out
out = written("a", "", "bc", "")
out.seek(0)
print(struct.unpack("!i", out.read(4)), [one.to_pylist() for one in pa.ipc.open_stream(out)])
print(written("", "").getvalue())
"""


def test_each_key_is_asked_for_its_rows_in_turn_and_where_one_has_none_those_before_are_sent():
    asked = []

    def rows_of(key, many):
        for number in range(many):
            asked.append((key, number))
            yield f"{key}{number}"

    def packs():
        for key, many in (("a", 2), ("b", 0), ("c", 1)):
            asked.append(key)
            yield [(rows_of(key, many), "type")]

    found = []
    stream = SimpleNamespace(flush=lambda: asked.append("flushed"))
    for [(rows, kind)] in filled(packs(), stream):
        found.append(([*rows], kind, [*asked]))
    assert found == [
        (["a0", "a1"], "type", ["a", ("a", 0), ("a", 1)]),
        (["c0"], "type", ["a", ("a", 0), ("a", 1), "b", "flushed", "c", ("c", 0)]),
    ]


def test_pyspark_writes_no_batch_without_rows_and_nothing_where_there_is_none():
    done = subprocess.run([sys.executable, "-c", WRITTEN], capture_output=True, text=True, check=True, cwd=ROOT)
    batches = [[{"_0": {"key": "a"}}], [{"_0": {"key": "b"}}, {"_0": {"key": "c"}}]]
    assert done.stdout.splitlines()[-2:] == [f"(-6,) {batches}", "b''"]
