"""What importing the package costs and needs, and that Spark's workers need not have it."""

import subprocess
import sys

RUN = """
import sys
from tidecast.signed import count
print(sorted({name.partition(".")[0] for name in sys.modules} & {"pyspark", "pandas", "numpy", "models", "pipelines"}))
"""
WORKER = """
import pickle, sys
sys.modules["tidecast"] = None
processor = pickle.loads(sys.stdin.buffer.read())
state = processor._partial(None)
state.add({"x": 2}, 1)
print(processor._stored(state))
"""


def output(code, given=b""):
    done = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, check=True)
    return done.stdout.decode().strip()


def test_the_import_is_light():
    assert output(RUN) == "[]"


def test_a_worker_needs_nothing_but_pyspark():
    from pyspark import cloudpickle
    from pyspark.sql import types as T

    import tidecast.signed
    from tidecast.signed.processor import GroupPlan, GroupProcessor
    from tidecast.signed.reductions import sum_of

    cloudpickle.register_pickle_by_value(tidecast.signed)
    schema = T.StructType([T.StructField("s", T.LongType())])
    processor = GroupProcessor(GroupPlan(("k",), {"s": sum_of("x")}, schema, {}, False, 0))
    assert output(WORKER, cloudpickle.dumps(processor)).startswith("(1, 0, False, True, [(1, '2'), ")
