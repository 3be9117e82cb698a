"""Drawn jobs differ from sound ones in their fault alone, and what their agent sends says nothing of it by name."""

from dataclasses import replace

import numpy as np
import pytest

from pipelines.advise.measured import measure_job
from pipelines.bench.twin.agent_rows import record_job
from pipelines.bench.twin.faulty_jobs import FAULTS, SOUND, draw_job

CHANGED = {
    "few_partitions": {"tasks"}, "short_trigger": {"trigger_s"}, "slow_sink": {"per_record_s"}, "skew": {"tasks"},
    "low_ceiling": {"most"}, "memory": {"per_record_s"},
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_changes_what_it_is_called_by_and_nothing_else(fault, monkeypatch):
    drawn = draw_job(fault, 5)
    assert drawn.job == draw_job(fault, 5).job and drawn.job != draw_job(fault, 6).job
    monkeypatch.setitem(_faulty(), fault, lambda sound, peak, chance: sound)
    sound = draw_job(fault, 5)
    assert {name for name in vars(sound.job) if getattr(sound.job, name) != getattr(drawn.job, name)} == CHANGED[fault]
    assert np.array_equal(sound.arrived, drawn.arrived)


def _faulty():
    from pipelines.bench.twin import faulty_jobs

    return faulty_jobs._FAULTY


def test_what_an_agent_sends_is_enough_for_the_twin_that_sent_it():
    drawn = draw_job(SOUND, 5)
    drawn = replace(drawn, arrived=drawn.arrived[:1801])
    metrics, outcomes = record_job(drawn, 5)
    assert not {"fault", "skew"} & set(metrics) and set(outcomes["status"]) <= {"confirmed"}
    assert metrics[metrics["kind"] == "batch"]["batch_rows"].sum() == pytest.approx(drawn.arrived[-1], rel=0.05)
    seen = measure_job(metrics, outcomes, drawn.contract)
    assert np.diff(seen.arrived) == pytest.approx(np.diff(drawn.arrived))
    assert seen.facts.gc_share == pytest.approx(drawn.gc_share, rel=0.2)
    usual = float(np.median(metrics["batch_rows"].dropna()))
    took = [job.overhead_s + job.per_record_s * usual for job in (seen.twin, drawn.job)]
    assert took[0] == pytest.approx(took[1], rel=0.25)
