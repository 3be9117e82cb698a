import subprocess
import sys
from types import SimpleNamespace

import pyarrow as pa
import pytest

from pipelines.jobs import service
from pipelines.jobs.events import LoadEvent, encode_event
from tests.fakes.bad_events import BAD_EVENTS, NOW

KINDS = {"value": pa.binary(), "partition": pa.int32(), "offset": pa.int64(), "produced_at": pa.float64()}


@pytest.fixture
def outside(monkeypatch):
    """What the stage did besides its output: seconds slept, records rejected."""
    seen = {"slept": [], "rejected": []}
    # The name in the module, not the function everybody's threads sleep by.
    monkeypatch.setattr(service, "time", SimpleNamespace(sleep=seen["slept"].append))
    monkeypatch.setattr(service, "_publish_rejects", lambda kafka, by, bad: seen["rejected"].extend(bad))
    return seen


def frame(*values, partition=0, first=0):
    rows = [(value, partition, first + i, NOW) for i, value in enumerate(values)]
    columns = list(zip(*rows, strict=True)) or [()] * 4
    return pa.RecordBatch.from_arrays(
        [pa.array(c, kind) for c, kind in zip(columns, KINDS.values(), strict=True)], list(KINDS)
    )


def event(seq, time=5.0, key="a"):
    return encode_event(LoadEvent(seq, time, key))


def run(*frames):
    return pa.Table.from_batches(service.service_stage(0.004, {}, "job")(iter(frames))).to_pandas()


def test_every_good_event_takes_the_service_time(outside):
    out = run(frame(event(1), event(2)), frame(event(3), b"bad"))
    assert out["seq"].tolist() == ["1", "2", "3", "0"]
    assert out["at"].tolist() == ["5000", "5000", "5000", None]
    assert outside["slept"] == pytest.approx([0.008, 0.004])


def test_bad_events_go_to_rejects_and_leave_a_row_without_key(outside):
    values = [raw for raw, _ in BAD_EVENTS.values()]
    out = run(frame(event(1), *values, event(2), partition=3, first=10))
    assert out["key"].notna().sum() == 2
    assert len(out) == len(values) + 2
    places = [(partition, offset) for partition, offset, *_ in outside["rejected"]]
    assert places == [(3, 11 + i) for i in range(len(values))]


def test_late_is_older_than_the_newest_before_it_in_its_partition(outside):
    out = run(
        frame(event(1, 5.0), event(2, 4.0), event(3, 6.0)),
        frame(event(4, 5.5), partition=0),
        frame(event(5, 1.0), partition=1),
    )
    assert out["late"].notna().tolist() == [False, True, False, True, False]


def test_empty_frame_gives_an_empty_frame(outside):
    assert len(run(frame())) == 0
    assert outside["rejected"] == []


def test_a_cold_worker_imports_no_pandas():
    code = (
        "import sys, pyarrow as pa; from pipelines.jobs.service import _batch, _decoded;"
        "_batch({'key': ['a', None], 'seq': ['1', '2'], 'late': [None, None]});"
        "sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
