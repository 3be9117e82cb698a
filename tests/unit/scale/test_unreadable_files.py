"""The files beside the checkpoint while they cannot be read: what a process knows of them stands."""

import errno
import json
from pathlib import Path

import pytest

from configs.contract import Contract
from models.pool.wants import PoolMemory
from pipelines.scale.contracts import AcceptedContracts, write_json
from pipelines.scale.pool.grants import Grants, JobGrant, KeptGrants

FIRST, SECOND = (Contract(job="orders", latency_target_s=target_s) for target_s in (5.0, 9.0))


@pytest.fixture
def fails(monkeypatch):
    """Errors with which each of the next reads fails, as the operating system tells them."""
    left, read_text = [], Path.read_text

    def failing(file, *arguments, **options):
        if left:
            raise OSError(left.pop(), "it fails", str(file))
        return read_text(file, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", failing)
    return left


def accept(file, contract):
    write_json(file, {contract.job: contract.model_dump(mode="json")})


@pytest.mark.parametrize("error", [errno.EMFILE, errno.EIO, errno.ESTALE])
def test_contracts_that_cannot_be_read_now_are_those_read_last_and_are_read_at_the_next_look(tmp_path, fails, error):
    accepted = AcceptedContracts(tmp_path / "query.contracts.json")
    accept(accepted.file, FIRST)
    fails.append(error)
    assert accepted.of("orders") is None  # nothing is known yet
    assert accepted.of("orders") == FIRST
    accept(accepted.file, SECOND)
    fails += [error, error]
    assert [accepted.of("orders") for _ in range(3)] == [FIRST, FIRST, SECOND]


@pytest.mark.parametrize("error", [errno.EMFILE, errno.EIO, errno.ESTALE])
def test_a_job_keeps_its_grant_while_the_file_of_grants_cannot_be_read(tmp_path, fails, error):
    grants = Grants(tmp_path / "query.pools.json")
    grants.write(KeptGrants({"orders": JobGrant("shared", 3)}, {"shared": PoolMemory()}))
    assert grants.of("orders") == JobGrant("shared", 3)
    grants.write(KeptGrants({"orders": JobGrant("shared", 2)}, {"shared": PoolMemory()}))
    fails.append(error)
    assert [grants.of("orders").executors for _ in range(2)] == [3, 2]


def test_a_file_that_does_not_answer_a_look_is_not_taken_for_gone(tmp_path, monkeypatch):
    accepted = AcceptedContracts(tmp_path / "query.contracts.json")
    accept(accepted.file, FIRST)
    assert accepted.of("orders") == FIRST

    def failing(file, **options):
        raise OSError(errno.EIO, "it fails", str(file))

    with monkeypatch.context() as now:
        now.setattr(Path, "stat", failing)
        assert accepted.of("orders") == FIRST
    accepted.file.unlink()
    assert accepted.all() == {}


def test_what_another_version_wrote_is_parsed_once_and_none_of_it_stands(tmp_path, monkeypatch):
    accepted = AcceptedContracts(tmp_path / "query.contracts.json")
    accept(accepted.file, FIRST)
    assert accepted.of("orders") == FIRST
    accepted.file.write_text(json.dumps({"orders": {"job": "orders", "of_the_future": 1}}))
    parsed, loads = [], json.loads
    monkeypatch.setattr("pipelines.scale.contracts.json.loads", lambda text: parsed.append(text) or loads(text))
    assert [accepted.all() for _ in range(3)] == [{}] * 3 and len(parsed) == 1
