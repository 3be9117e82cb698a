"""How a managed job recovers, by its contract; a job whose results nobody can merge says so before it starts."""

from pathlib import Path

import pytest

from configs.contract import Contract, load_contract
from configs.errors import SettingsError
from configs.limits import RecoveryTerms
from configs.settings import ROOT
from pipelines.jobs.launch import Launch, refuse_order
from pipelines.jobs.plans import key_totals


def contract(**recovery):
    return Contract.model_validate({"job": "orders", "backpressure": {"recovery": recovery}})


def launch(contract=None):
    return Launch("orders", None, None, Path("run"), {}, contract)


def test_what_a_contract_says_of_recovery_or_the_defaults():
    assert launch().recovery == launch(Contract(job="orders")).recovery == RecoveryTerms()
    assert launch(contract(rto_s=100, order="live_first")).recovery == RecoveryTerms(rto_s=100, order="live_first")
    assert launch().checkpoint == Path("run/orders.checkpoint").resolve()


def test_the_newest_first_is_for_jobs_that_merge():
    refuse_order(contract(order="live_first"), merges=True)
    for fine in (Contract(job="orders"), contract(rto_s=100)):
        refuse_order(fine, merges=False)
    with pytest.raises(SettingsError, match=r"orders.yaml: backpressure.recovery.order=live_first.*State in_order"):
        refuse_order(contract(order="live_first"), merges=False)


def test_the_shipped_plan_that_merges_asks_for_it():
    shipped = load_contract(key_totals.JOB, ROOT / "configs" / "contracts" / "plans")
    assert launch(shipped).recovery.order == "live_first"
