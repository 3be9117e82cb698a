"""Which parts of Spark's event logs are deleted, and which ones stay."""

import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipelines.jobs import running
from pipelines.spark.event_log import trim_event_logs


def written(folder, parts, first_s):
    """Write parts of 10 bytes, each a second after the one before."""
    for at, name in enumerate(parts, first_s):
        part = folder / name
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_text("0123456789")
        os.utime(part, (at, at))


OLDER = [f"eventlog_v2_app-1/events_{n}_app-1" for n in (1, 2)]
NEWEST = [f"eventlog_v2_app-2/events_{n}_app-2" for n in (1, 2, 9, 10)]


@pytest.mark.parametrize(
    ("most_bytes", "kept"),
    [(70, ["app-0", *OLDER, *NEWEST]), (69, [*OLDER, *NEWEST]), (50, [OLDER[1], *NEWEST]), (40, NEWEST),
     (30, [NEWEST[0], *NEWEST[2:]]), (0, [NEWEST[0], NEWEST[-1]])],
)  # fmt: skip
def test_the_oldest_parts_go_and_of_the_newest_application_the_first_and_the_last_stay(tmp_path, most_bytes, kept):
    written(tmp_path, ["app-0", *OLDER, *NEWEST], first_s=1000)
    for application in ("app-1", "app-2"):
        (tmp_path / f"eventlog_v2_{application}" / f"appstatus_{application}").touch()
    trim_event_logs(tmp_path, most_bytes)
    parts = sorted(tmp_path.glob("app-*")) + sorted(tmp_path.glob("*/events_*"))
    assert {str(part.relative_to(tmp_path)) for part in parts} == set(kept)
    assert (tmp_path / "eventlog_v2_app-1").exists() is (OLDER[1] in kept)
    assert (tmp_path / "eventlog_v2_app-2" / "appstatus_app-2").exists()


def test_a_folder_without_a_log_stays_as_it_is(tmp_path):
    trim_event_logs(tmp_path, 0)
    assert not list(tmp_path.iterdir())


def test_a_running_job_trims_its_log_again_and_again_and_outlives_one_that_it_cannot_trim(monkeypatch, capsys):
    trimmed, stop = [], threading.Event()

    def trim(folder):
        trimmed.append(folder)
        if len(trimmed) == 3:
            stop.set()
        if len(trimmed) == 2:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(running, "trim_event_logs", trim)
    monkeypatch.setattr(running, "TRIMMED_EVERY_S", 0.0)
    assert not running._await_end(SimpleNamespace(isActive=True), stop, Path("logs"), float)
    assert trimmed == 3 * [Path("logs")]
    assert "Input/output error" in capsys.readouterr().err
