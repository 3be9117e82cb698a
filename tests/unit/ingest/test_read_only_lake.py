import pytest

from pipelines.ingest import run
from pipelines.lake import writable
from pipelines.lake.errors import LakeError


@pytest.mark.parametrize("made", [True, False])
def test_a_lake_that_cannot_be_written_is_refused_before_anything_is_read(tmp_path, monkeypatch, made):
    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
    there = tmp_path / "lake" if made else tmp_path
    there.mkdir(exist_ok=True)
    asked = []
    monkeypatch.setattr(writable.os, "access", lambda folder, how: bool(asked.append(folder)))
    with pytest.raises(LakeError, match="cannot be written"):
        run.ingest("2014-10-22T04")
    assert asked == [there]
