"""Pools' files: what is wrong in one is told with its line and a remedy, and stops no other."""

from datetime import UTC, datetime

import pytest

from configs.contract import Contract, Executors
from configs.errors import SettingsError
from configs.pool import load_pool, read_pools

CONTRACTS = {
    job: Contract(job=job, executors=Executors(min=1, max=6, cores=2)) for job in ("orders", "payments", "rides")
}
GOOD = """\
name: shared
cores: 12
memory_gb: 20
jobs:
  orders: {weight: 2, floor: 2}
  payments:
    floor: 1
blackouts:
  - {begin: "2026-12-24T18:00+01:00", end: "2026-12-26T06:00+01:00", jobs: [orders]}
veto: {url: "http://127.0.0.1:9000/may"}
quota: {daily_core_hours: 200}
"""


def read(tmp_path, text, name="shared"):
    (tmp_path / f"{name}.yaml").write_text(text)
    return load_pool(name, tmp_path, CONTRACTS)


def test_a_good_one_is_read_with_its_defaults(tmp_path):
    pool = read(tmp_path, GOOD)
    assert (pool.cores, pool.jobs["orders"].weight, pool.jobs["payments"].weight, pool.veto.timeout_s) == (12, 2, 1, 2)
    at = datetime(2026, 12, 24, 17, 0, tzinfo=UTC)
    assert [pool.is_frozen(job, at) for job in ("orders", "payments")] == [True, False]
    assert not pool.is_frozen("orders", datetime(2026, 12, 24, 16, 59, tzinfo=UTC))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            ("name: shared", "name: other"),
            "shared.yaml, line 1: name='other': the file's name and",
        ),
        (
            ("cores: 12", "cores: 5"),
            "line 2: cores=5: the jobs' floors (and the least executors of their",
        ),
        (("memory_gb: 20", "memory_gb: 4"), "line 3: memory_gb=4: the jobs' floors (and the least executors of their"),
        (("weight: 2", "weight: 0"), "line 5: jobs.orders.weight=0: Input should be greater than 0"),
        (("floor: 2", "floor: 7"), "line 5: jobs.orders.floor=7: its contract allows 6 executors"),
        (
            ("  orders:", "  order:"),
            "line 5: jobs.order: the job has no contract. Add order.yaml to the folder of contracts, or take it out",
        ),
        (("jobs: [orders]", "jobs: [rides]"), "line 9: blackouts.0.jobs: rides is no job of this pool"),
        (("2026-12-26", "2026-12-20"), "line 9: blackouts.0: begin=2026-12-24T18:00:00+01:00 is not before end="),
        (("18:00+01:00", "18:00"), "line 9: blackouts.0.begin"),
        (
            ("2026-12-26", "2100-12-26"),
            "line 9: blackouts.0: end=2100-12-26T06:00:00+01:00 is not from 1970 until 2100. State such a time, or `fr",
        ),
        (("2026-12-24", "1969-12-24"), "line 9: blackouts.0: begin=1969-12-24T18:00:00+01:00 is not from 1970 until"),
        (("http://", "ftp://"), "line 10: veto.url"),
        (("quota:", "quotas:"), "line 11: quotas"),
        (("http://127.0.0.1:9000/may", "http://[::1/x"), "line 10: veto.url: not an address that can be asked. Write"),
        (("127.0.0.1:9000", "hook:abc"), "line 10: veto.url: not an address that can be asked. Write it as http://"),
        (("daily_core_hours: 200", "daily_core_hours: 140"), "line 11: quota.daily_core_hours=140: the jobs' floors"),
        (("daily_core_hours: 200", "hourly_core_hours: 5"), "the least executors of their contracts) take 6. State"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, change, told):
    with pytest.raises(SettingsError) as wrong:
        read(tmp_path, GOOD.replace(*change))
    assert told in str(wrong.value)


@pytest.mark.parametrize("name", ["my pool", ".shared", "p" * 65])
def test_a_name_that_no_message_may_have_is_refused_as_nobody_would_hear_of_such_a_pool(tmp_path, name):
    with pytest.raises(SettingsError) as wrong:
        read(tmp_path, GOOD.replace("name: shared", f"name: {name}"), name)
    assert str(wrong.value).startswith(f"{name}.yaml, line 1: name={name!r}: 1 to 64 letters, digits, dots, dashes or ")
    assert str(wrong.value).endswith("are expected. Rename the file and the pool.")


def test_an_unknown_one_is_told_beside_those_there_are(tmp_path):
    read(tmp_path, GOOD)
    with pytest.raises(SettingsError, match="Known pools: shared"):
        load_pool("nowhere", tmp_path, CONTRACTS)


def test_a_job_in_two_pools_takes_both_away_and_no_third(tmp_path):
    read(tmp_path, GOOD)
    (tmp_path / "again.yaml").write_text("name: again\ncores: 4\njobs: {orders: {}}\n")
    (tmp_path / "rest.yaml").write_text("name: rest\ncores: 4\njobs: {rides: {}}\n")
    (tmp_path / "broken.yaml").write_text("name: broken\ncores: many\n")
    pools, wrong = read_pools(tmp_path, CONTRACTS)
    assert list(pools) == ["rest"]
    assert wrong["again"] == "again.yaml: orders is in pool shared, too. Take it out of one of them."
    assert wrong["shared"] == "shared.yaml: orders is in pool again, too. Take it out of one of them."
    assert "line 2: cores" in wrong["broken"]


def test_a_folder_that_is_not_there_has_none(tmp_path):
    assert read_pools(tmp_path / "none", CONTRACTS) == ({}, {})
