"""What a run wrote, read again."""

import json
import os

import pytest

from pipelines.report.recorded import run
from pipelines.report.recorded.lines import RunError, json_lines


def test_a_line_ends_where_json_says_so_and_a_cut_one_at_the_end_is_dropped(tmp_path):
    path, odd = tmp_path / "decisions.jsonl", "why\u2028not\x85so\u2029"
    path.write_text(json.dumps({"reason": odd}, ensure_ascii=False) + '\n{"reason": "b"}\n{"rea')
    assert json_lines(path) == [{"reason": odd}, {"reason": "b"}]
    path.write_text('{"rea\n{"reason": "b"}\n')
    with pytest.raises(RunError, match=":1: not JSON"):
        json_lines(path)


@pytest.mark.parametrize(("start", "told"), [(0.0, "1@a"), (25.0, "2@b"), (30.0, "3@c")])
def test_the_rehearsal_of_a_run_is_the_one_that_the_load_met(tmp_path, monkeypatch, start, told):
    """Not that of the naive forecast, the champion for a moment, nor of one that was trained beside the load."""
    monkeypatch.setattr(run, "read_rehearsal", lambda folder: folder.name)
    assert run._rehearsal(tmp_path, "orders", start) is None
    for name, given_at in (("2@b", 20), ("1@a", 10), ("3@c", 30)):
        (folder := tmp_path / "autoscaler.rehearsals" / "orders" / name).mkdir(parents=True)
        os.utime(folder, (given_at, given_at))
    assert run._rehearsal(tmp_path, "orders", start) == told
