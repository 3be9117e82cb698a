"""What a run wrote, read again."""

import json

import pytest

from pipelines.report.recorded.lines import RunError, json_lines


def test_a_line_ends_where_json_says_so_and_a_cut_one_at_the_end_is_dropped(tmp_path):
    path, odd = tmp_path / "decisions.jsonl", "why\u2028not\x85so\u2029"
    path.write_text(json.dumps({"reason": odd}, ensure_ascii=False) + '\n{"reason": "b"}\n{"rea')
    assert json_lines(path) == [{"reason": odd}, {"reason": "b"}]
    path.write_text('{"rea\n{"reason": "b"}\n')
    with pytest.raises(RunError, match=":1: not JSON"):
        json_lines(path)
