"""Which queries' progress is kept: the job's own, and where they are measured those of its replays."""

import json
from types import SimpleNamespace

import pytest

from pipelines import whole_file
from pipelines.jobs.progress_log import READ_BYTES, ProgressLog, listener_of, newest_lines, progress_file


def progress(name, rows):
    told = {"name": name, "numInputRows": rows}
    one = SimpleNamespace(name=name, json=json.dumps(told), stateOperators=[], observedMetrics={})
    return SimpleNamespace(progress=one)


@pytest.mark.parametrize(("replays", "kept"), [(False, ["orders"]), (True, ["orders", "orders-range"])])
def test_a_replays_progress_is_kept_where_it_is_asked_for(tmp_path, replays, kept):
    context = SimpleNamespace(applicationId="app-1", uiWebUrl=None)
    listener = listener_of(ProgressLog(tmp_path, "orders", context), replays)
    for name in ("orders", "orders-range"):
        listener.onQueryProgress(progress(name, 5))
    lines = progress_file(tmp_path, "orders").read_text().splitlines()
    assert [json.loads(line)["name"] for line in lines] == kept
    assert json.loads((tmp_path / "orders.json").read_text())["rows"] == 5 * len(kept)


def test_a_bounded_log_keeps_the_newest_and_as_much_before(tmp_path):
    context = SimpleNamespace(applicationId="app-1", uiWebUrl=None)
    log, line = ProgressLog(tmp_path, "shop.join", context, most_bytes=90), len('{"numInputRows":1}\n')
    assert 4 * line < 90 <= 5 * line
    for at in range(1, 15):
        log.add(json.dumps({"numInputRows": at % 10}), 0)
    rows = {
        file.name: [json.loads(told)["numInputRows"] for told in file.read_text().splitlines()]
        for file in tmp_path.glob("*.jsonl")
    }
    assert rows == {"shop.join.progress.old.jsonl": [6, 7, 8, 9, 0], "shop.join.progress.jsonl": [1, 2, 3, 4]}
    assert json.loads((tmp_path / "shop.join.json").read_text())["batches"] == 14


@pytest.mark.parametrize(
    ("most_bytes", "lines"),
    [(100, ["one\n", "two\n", "three"]), (13, ["one\n", "two\n", "three"]), (12, ["two\n", "three"]),
     (9, ["two\n", "three"]), (8, ["three"]), (5, ["three"]), (4, [])],
)  # fmt: skip
def test_of_a_long_log_the_newest_lines_are_read_and_those_alone_that_are_whole(tmp_path, most_bytes, lines):
    (tmp_path / "log").write_text("one\ntwo\nthree")
    assert list(newest_lines(tmp_path / "log", most_bytes)) == lines
    assert list(newest_lines(tmp_path / "none", most_bytes)) == []


@pytest.mark.parametrize(
    ("most_bytes", "lines"), [(99, ["one\n", "two\n", "six\n"]), (8, ["two\n", "six\n"]), (4, ["six\n"]), (3, [])]
)
def test_what_was_set_aside_for_its_size_is_read_before_the_rest(tmp_path, most_bytes, lines):
    file = progress_file(tmp_path, "orders")
    file.with_suffix(".old.jsonl").write_text("one\ntwo\n")
    file.write_text("six\n")
    assert list(newest_lines(file, most_bytes)) == lines


@pytest.mark.parametrize("cut", ['{"numInp', '{"name":"' + "x" * 2 * READ_BYTES], ids=["short", "long"])
@pytest.mark.parametrize("lines", [0, 1, 400])
def test_a_line_that_was_cut_off_by_a_kill_does_not_take_the_next_one_with_it(tmp_path, lines, cut):
    file, before = progress_file(tmp_path, "orders"), '{"numInputRows":1}\n' * lines
    file.write_text(before + cut)
    log = ProgressLog(tmp_path, "orders", SimpleNamespace(applicationId="app-2", uiWebUrl=None))
    for rows in (2, 3):
        log.add(json.dumps({"numInputRows": rows}), 0)
    assert file.read_text() == before + '{"numInputRows":2}\n{"numInputRows":3}\n'


def test_totals_that_cannot_be_written_leave_those_before_for_who_reads_them(tmp_path, monkeypatch):
    log = ProgressLog(tmp_path, "orders", SimpleNamespace(applicationId="app-1", uiWebUrl=None))
    log.add(json.dumps({"numInputRows": 1}), 0)
    monkeypatch.setattr(whole_file.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        log.add(json.dumps({"numInputRows": 2}), 0)
    assert json.loads((tmp_path / "orders.json").read_text())["rows"] == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == ["orders.json", "orders.progress.jsonl"]
