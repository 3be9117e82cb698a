"""A contract from a job's messages: what it states, what its comments say, and what is too little."""

import numpy as np
import pandas as pd
import pytest
import yaml

from configs.contract import Contract
from models.twin.calibration.fit import UnfinishedFitError
from models.twin.contract.proposed import ProposedContract, propose_contract
from models.twin.contract.tried import ContractOutcome
from pipelines.advise.observed import observe_job
from pipelines.advise.proposal_text import format_proposal
from pipelines.bench.team.shipped_jobs import list_jobs, load_of, observed_messages, simulated_job
from tests.unit.advise.test_measured_job import ACTIONS, NO_ACTION

RAISES = pd.DataFrame(
    [
        {"wall_time": 1e6 + at + 31, "decision_id": str(at), "status": "confirmed", "executors_before": 1, "target": 2,
         "decided_at": 1e6 + at, "confirmed_at": 1e6 + at + 28.0, "useful_at": 1e6 + at + 30.0}
        for at in range(100, 1000, 100)
    ], columns=ACTIONS,
)  # fmt: skip
"""Executors that came 30 s after they were asked for: the twin is looked at a third as often as without any."""


def rows(seconds=4000, executors=2, cores=4, gap_s=0.0, late=(), latency_s=2.5):
    """A batch of 100 records every 2 s on so many executors; `late` are batches with 9 s of latency."""
    chance, found = np.random.default_rng(1), []
    for at in range(seconds):
        wall = 1e6 + at + 1 + gap_s * (at >= seconds // 2)
        common = {"wall_time": wall, "time_scale": 1.0, "span_s": 1.0, "executors": executors, "mode": "observe",
                  "cores": executors * cores}  # fmt: skip
        found.append({**common, "kind": "interval", "arrival_rps": 50.0})
        if at % 2:
            found.append({
                **common, "kind": "batch", "batch_id": 100 + at // 2, "batch_rows": 100,
                "batch_s": 0.8 * float(np.exp(chance.normal(0, 0.05))), "task_ceiling": 8,
                "latency_max_s": 9.0 if at // 2 in late else latency_s,
            })  # fmt: skip
    return pd.DataFrame(found)


def test_the_draft_states_what_was_kept_and_what_was_there():
    found = observe_job("orders", rows(late={500, 900}), NO_ACTION, 0.01, price=0.5)
    assert found.draft["latency_target_s"] == 2.5 and found.draft["price_per_executor_hour"] == 0.5
    assert found.draft["executors"] == {"min": 1, "max": 2, "cores": 4} and found.cores_known
    assert found.draft["planning"].keys() == {"overhead_s", "per_record_s"} and found.lead is None
    assert found.batches == 2000 and found.unmeasured_s == 0 and found.quiet_rps == pytest.approx(50.0)
    # Thirty batches of two seconds each were late, by 9 and 8 s: of 60 seconds 40 may be, so that 8 s were kept.
    assert observe_job("orders", rows(late=range(100, 130)), NO_ACTION, 0.01).draft["latency_target_s"] == 8.0


def test_what_was_produced_while_nothing_was_measured_is_left_out():
    found = observe_job("orders", rows(gap_s=900.0, late={1000}), NO_ACTION, 0.01)
    assert 0 <= found.unmeasured_s < 900 and len(found.latency_s) == pytest.approx(4000, abs=15)
    outage = rows(gap_s=900.0)
    after = (outage["kind"] == "batch") & (outage["batch_id"] == 1100)
    outage.loc[after, "latency_max_s"] = 902.5  # records that came while the job was down
    found = observe_job("orders", outage, NO_ACTION, 0.01)
    assert found.unmeasured_s == pytest.approx(900, abs=10) and found.draft["latency_target_s"] == 2.5


def test_a_lead_time_that_raises_told_is_stated():
    found = observe_job("orders", rows(), RAISES, 0.01)
    assert found.draft["planning"]["lead_s"] == pytest.approx(30, rel=0.1) and found.lead["starts"] == 9
    proposal = propose_contract(found.draft, found.seen.twin, found.seen.arrived)
    assert "# median of 9 raises; 90 % of them within" in format_proposal(found, proposal)


def test_the_twin_with_the_executors_that_were_there_is_told_beside_what_was_observed():
    metrics = rows()
    metrics["latency_max_s"] = metrics["batch_s"] + 2.0  # of a record that came just after a batch had begun
    found = observe_job("orders", metrics, NO_ACTION, 0.01)
    assert found.seen.twin.trigger_s == 2.0 and found.repeated < 0.1
    slow = observe_job("orders", metrics.assign(latency_max_s=0.5), NO_ACTION, 0.01)  # sooner than a batch can be
    assert slow.draft["latency_target_s"] < 0.8 and slow.repeated > 0.9


def test_of_a_load_that_rests_half_of_the_time_both_shares_are_of_the_seconds_of_production():
    metrics = rows(seconds=8000).assign(latency_max_s=0.5)  # sooner than a batch can be: all is late in the twin
    rests = (metrics["wall_time"] - 1e6) % 1000 > 500
    metrics.loc[rests, "arrival_rps"] = 0.0
    found = observe_job("orders", metrics[~rests | (metrics["kind"] == "interval")], NO_ACTION, 0.01)
    assert found.seen.produced_s == pytest.approx(4000, abs=20) and 0.9 < found.repeated <= 1
    outcome = ContractOutcome(Contract.model_validate(found.draft), np.zeros(2), np.full(2, 3600.0), 2, 8000)
    text = format_proposal(found, ProposedContract(found.draft, outcome, 1)).replace("\n# ", " ")
    assert "% of the seconds of production late over 0.5" in text


def test_cores_that_nobody_told_are_the_usual_one():
    found = observe_job("orders", rows().drop(columns="cores"), NO_ACTION, 0.01)
    assert found.draft["executors"]["cores"] == 1 and not found.cores_known


@pytest.mark.parametrize(
    ("metrics", "budget", "told"),
    [
        (
            lambda: rows(seconds=600),
            0.01,
            r"0\.2 hours were observed.* and 300 batches.*; 1\.0 hours, .* and 200 batches are",
        ),
        (rows, 0.001, r"1\.1 hours were observed.*; 8\.3 hours.* for a share of 0\.001 late"),
        (lambda: rows().assign(latency_max_s=np.nan), 0.01, "and 0 batches with a latency"),
        (lambda: rows().query("kind == 'batch'"), 0.01, r"0\.0 hours were observed"),
        (lambda: rows().iloc[:0], 0.01, r"0\.0 hours were observed"),
    ],
)
def test_too_little_says_how_much_there_is_and_how_much_is_needed(metrics, budget, told):
    with pytest.raises(UnfinishedFitError, match=told):
        observe_job("orders", metrics(), NO_ACTION, budget)


@pytest.mark.study
def test_of_a_shipped_job_its_executors_and_a_batchs_fixed_time_are_found():
    """What is proposed of that, and that it holds, is tried in test_bench_team."""
    from configs.settings import load

    contract = list_jobs(load())["word_count"]
    arrived = load_of(simulated_job(contract), contract, 5, 3)[:3651]
    draft = observe_job("word_count", *observed_messages(contract, arrived, 3), 0.01).draft
    assert draft["planning"]["overhead_s"] == pytest.approx(contract.planning.overhead_s, rel=0.2)
    assert draft["executors"]["max"] == contract.executors.max > draft["executors"]["min"]


def test_a_name_that_looks_like_a_number_is_written_as_a_name():
    found = observe_job("123", rows(), NO_ACTION, 0.01)
    outcome = ContractOutcome(Contract.model_validate(found.draft), np.zeros(2), np.full(2, 3600.0), 2, 4000)
    text = format_proposal(found, ProposedContract(found.draft, outcome, 1))
    assert Contract.model_validate(yaml.safe_load(text)).job == "123"
