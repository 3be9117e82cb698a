"""The interval of state snapshots, from what batches told, on Spark's own settings."""

import json
import os
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.limits import RecoveryTerms
from pipelines.jobs.progress_log import NEWEST_BYTES, progress_file
from pipelines.jobs.restarts.snapshots import (
    DELTAS,
    FIRST_MTBF_S,
    MAINTENANCE,
    StateCommits,
    read_commits,
    set_snapshots,
    snapshot_interval,
)

BEGIN_S = 1_700_000_000


def batch(run, at_s, flush_ms=0, checkpoint_ms=0, stores=2, ran=True):
    """A progress as Spark tells it."""
    stamp = datetime.fromtimestamp(BEGIN_S + at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    told = {"rocksdbCommitFlushLatency": flush_ms, "rocksdbCommitCheckpointLatency": checkpoint_ms}
    state = {"commitTimeMs": 200, "numStateStoreInstances": stores, "customMetrics": told}
    durations = {"triggerExecution": 900, **({"addBatch": 500} if ran else {})}
    return json.dumps({"runId": run, "timestamp": stamp, "durationMs": durations, "stateOperators": [state]})


LINES = [
    *(batch("a", at, *((10, 70) if at == 4 else (0, 0))) for at in (0, 2, 4, 6, 8)),
    batch("a", 9, ran=False),
    '{"runId":"a","time',  # a kill cut it off
    *(batch("b", at, *((20, 100) if at == 103 else (0, 0))) for at in (100, 103, 105)),
]


def test_batches_tell_their_period_what_a_snapshot_takes_and_how_often_the_job_ends():
    found = read_commits(LINES)
    assert found.period_s == 2  # 2, 2, 2, 2, 3 and 2 s; what lies between two runs is none
    assert found.snapshot_s == pytest.approx((0.040 + 0.060) / 2)  # of two stores side by side
    assert found.mtbf_s == pytest.approx((FIRST_MTBF_S + 8 + 5) / 3)


def test_nothing_is_known_before_a_snapshot_and_two_batches():
    assert read_commits([]) is None
    assert read_commits([batch("a", 0, 5, 5)]) is None
    assert read_commits([batch("a", at) for at in (0, 2, 4)]) is None


def test_the_interval_is_youngs_less_the_wait_for_the_checkpoint():
    found = StateCommits(2.0, 2.0, 3600.0)  # sqrt(2 * 2 * 3600) = 120 s
    chosen = snapshot_interval(found, RecoveryTerms(rpo_s=600))
    assert (chosen.maintenance_s, chosen.deltas) == (24, 48)
    assert "every 48 micro-batches" in chosen.text and "every 120 s costs least" in chosen.text
    clipped = snapshot_interval(found, RecoveryTerms(rpo_s=60))
    assert (clipped.maintenance_s, clipped.deltas) == (12, 24)
    assert clipped.deltas * found.period_s + clipped.maintenance_s <= 60


def test_the_thread_is_waited_for_less_where_the_overhead_needs_the_time():
    chosen = snapshot_interval(StateCommits(2.0, 2.6, 3600.0), RecoveryTerms(rpo_s=60))  # 2.6 s of 52 s are 5 %
    assert (chosen.maintenance_s, chosen.deltas) == (8, 26)
    assert chosen.text.endswith("so every 137 s costs least, as far as rpo_s=60 and overhead_max=5.0% allow")
    crashing = snapshot_interval(StateCommits(2.0, 1.0, 100.0), RecoveryTerms())  # Young's are 14 s
    assert (crashing.maintenance_s, crashing.deltas) == (5, 10)


def test_what_a_contract_asks_for_in_vain_is_said():
    chosen = snapshot_interval(StateCommits(2.0, 3.0, 3600.0), RecoveryTerms(rpo_s=60))
    assert (chosen.maintenance_s, chosen.deltas) == (5, 27)
    assert "snapshots take 5.6% of the time, overhead_max is 5.0%: keep less state, or allow rpo_s=65" in chosen.text
    allowed = snapshot_interval(StateCommits(2.0, 3.0, 3600.0), RecoveryTerms(rpo_s=65))
    assert (allowed.maintenance_s, allowed.deltas) == (5, 30) and "rpo_s=65 and overhead_max=5.0% allow" in allowed.text


def test_there_is_a_snapshot_though_a_batch_is_longer_than_the_interval():
    chosen = snapshot_interval(StateCommits(300.0, 0.05, 3600.0), RecoveryTerms())
    assert (chosen.deltas, chosen.maintenance_s) == (1, 5)
    assert chosen.text.endswith("; the newest snapshot may be 305 s old, rpo_s is 60: allow as much")
    least = snapshot_interval(StateCommits(2.0, 0.05, 3600.0), RecoveryTerms(rpo_s=3))
    assert (least.deltas, least.maintenance_s) == (1, 5) and "may be 7 s old, rpo_s is 3:" in least.text


@given(st.floats(0.1, 600), st.floats(0.001, 100), st.floats(1, 1e6), st.floats(1, 1e4), st.floats(0.001, 0.5))
def test_both_terms_are_kept_or_which_is_not_is_said(period, cost, mtbf, rpo, overhead):
    chosen = snapshot_interval(StateCommits(period, cost, mtbf), RecoveryTerms(rpo_s=rpo, overhead_max=overhead))
    every = chosen.deltas * period
    assert cost <= every * overhead * (1 + 1e-9) or "keep less state" in chosen.text
    assert every + chosen.maintenance_s <= rpo * (1 + 1e-9) or (chosen.deltas == 1 and "may be" in chosen.text)


class Session:
    """A session that takes notes of what is set."""

    def __init__(self):
        self.conf, self.noted = self, {}

    def set(self, name, value):
        self.noted[name] = value


def test_a_session_is_set_once_the_job_has_told_what_snapshots_take(tmp_path):
    spark = Session()
    assert "until it has told" in set_snapshots(spark, tmp_path, "orders", RecoveryTerms())
    assert spark.noted == {}  # Spark's own interval
    progress_file(tmp_path, "orders").write_text("\n".join(LINES))
    text = set_snapshots(spark, tmp_path, "orders", RecoveryTerms())
    chosen = snapshot_interval(read_commits(LINES), RecoveryTerms())
    assert spark.noted == {DELTAS: str(chosen.deltas), MAINTENANCE: f"{chosen.maintenance_s}s"} and text == chosen.text


def test_a_log_of_weeks_is_read_from_its_end(tmp_path):
    file, earlier = progress_file(tmp_path, "orders"), "".join(f"{batch('z', at, 900)}\n" for at in (-90, -60))
    with file.open("w") as log:
        log.write(earlier)
    os.truncate(file, NEWEST_BYTES)  # takes no room
    with file.open("a") as log:
        log.write("\n" + "\n".join(LINES))
    text = set_snapshots(Session(), tmp_path, "orders", RecoveryTerms())
    assert text == snapshot_interval(read_commits(LINES), RecoveryTerms()).text
