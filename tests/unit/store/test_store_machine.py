"""The real store against the reference model, with crashes in the sequence; and faults that this must find."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from pipelines.store import NotStable, Pruned, Store, StoredRecord
from pipelines.store.writing import opening
from tests.fakes.store_faults import FAULTS, in_process, outcome
from tests.fakes.store_model import StoreModel

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
HOT, DURABLE = ("/a/x", "/a/y"), ("/model/m",)
KEYS = st.sampled_from(HOT + DURABLE)
VERSIONS = st.integers(0, 12)
VALUES = st.sampled_from([b"p", b"q"])
TIMES = st.integers(0, 60)


def row(record: StoredRecord | str | None) -> Any:
    return (record.version, record.ts, record.value) if isinstance(record, StoredRecord) else record


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))
        self.model = StoreModel()
        self.clock = 0
        self.seen: list[tuple[str, int]] = []
        self.answered: dict[tuple[str, int], Any] = {}
        self.open()

    def open(self) -> None:
        self.store = Store.open(self.folder, map_bytes=1 << 22, clock=lambda: self.clock)
        self.store.watch("/", lambda key, record: self.seen.append((key, record.version)))

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)

    @rule(key=KEYS, version=VERSIONS, value=VALUES, clock=TIMES)
    def put(self, key: str, version: int, value: bytes, clock: int) -> None:
        self.clock = clock
        kind = "persistent" if key in DURABLE else "volatile"
        found = outcome(lambda: self.store.put(key, value, version, kind))
        assert found == self.model.put_set({key: value}, version, clock)

    @rule(version=VERSIONS, values=st.tuples(VALUES, VALUES), clock=TIMES)
    def put_set(self, version: int, values: tuple[bytes, bytes], clock: int) -> None:
        self.clock = clock
        items = dict(zip(HOT, values, strict=True))
        found = outcome(lambda: self.store.put_set("/a", items, version))
        assert found == self.model.put_set(items, version, clock)

    @rule(steps=st.lists(st.tuples(st.sampled_from(HOT), VERSIONS, VALUES), max_size=4), clock=TIMES)
    def put_batch(self, steps: list[tuple[str, int, bytes]], clock: int) -> None:
        self.clock = clock
        found = []
        with self.store.batch() as batch:
            for key, version, value in steps:
                with batch.event() as event:
                    found.append(outcome(lambda: event.put(key, value, version)))  # noqa: B023
        assert found == [self.model.put_set({key: value}, version, clock) for key, version, value in steps]

    @rule(key=KEYS, version=st.none() | VERSIONS)
    def get(self, key: str, version: int | None) -> None:
        assert row(self.store.get(key, version)) == self.model.get(key, version)

    @rule(key=KEYS, t=TIMES)
    def get_at_time(self, key: str, t: int) -> None:
        found = row(outcome(lambda: self.store.get_at_time(key, t)))
        assert found == self.model.get_at_time(key, t)
        if found != "NotStable":
            assert found in ("Pruned", self.answered.setdefault((key, t), found))

    @rule(keys=st.lists(KEYS, unique=True), t=TIMES)
    def snapshot(self, keys: list[str], t: int) -> None:
        try:
            found: Any = {key: row(record) for key, record in self.store.snapshot(keys, t).items()}
        except (NotStable, Pruned) as error:
            found = type(error).__name__
        assert found == self.model.snapshot(keys, t) or not keys

    @rule(keys=st.lists(KEYS, unique=True))
    def newest(self, keys: list[str]) -> None:
        found = {key: row(record) for key, record in self.store.snapshot(keys).items()}
        assert found == {key: self.model.get(key) for key in keys}

    @rule(key=KEYS, lo=VERSIONS, hi=VERSIONS)
    def list_versions(self, key: str, lo: int, hi: int) -> None:
        assert self.store.list_versions(key, lo, hi) == self.model.list_versions(key, lo, hi)

    @rule(t=TIMES)
    def prune(self, t: int) -> None:
        self.store.prune(t)
        self.model.prune(t)
        assert self.store.low() == self.model.low

    @rule(clock=TIMES)
    def idle(self, clock: int) -> None:
        self.clock = clock
        self.store.flush()
        self.store.flush()
        self.model.tick(clock)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.open()

    @rule()
    def crash(self) -> None:
        """Go on with the files as they lie there now: what a killed process leaves, which closes nothing."""
        left, self.folder = self.folder, Path(tempfile.mkdtemp(dir=MEMORY))
        shutil.copytree(left, self.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("lock.mdb"))
        self.store.close()
        shutil.rmtree(left)
        self.open()

    @invariant()
    def same(self) -> None:
        assert self.store.frontier()[0] == self.model.frontier
        assert self.seen == self.model.seen
        for key in HOT + DURABLE:
            versions = self.store.list_versions(key)
            assert versions == self.model.list_versions(key)
            for (version, ts), (later, later_ts) in pairwise(versions):
                assert version < later and ts < later_ts


@pytest.fixture(autouse=True)
def quick_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "find_damage", in_process)


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]


@pytest.mark.sized(1, 5)
def test_equals_the_reference_model(seed: int):
    programs = settings(
        max_examples=60, stateful_step_count=40, deadline=None, database=None, suppress_health_check=QUIET
    )
    # seeded: on a runner of CI Hypothesis draws the same programs each time
    run_state_machine_as_test(seeded(seed)(partial(StoreMachine)), settings=programs)


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_finds_a_planted_fault(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch)
    hunt = settings(
        max_examples=200, stateful_step_count=30, deadline=None, database=None, derandomize=True,
        phases=[Phase.generate], report_multiple_bugs=False, suppress_health_check=QUIET,
    )  # fmt: skip
    with pytest.raises(AssertionError):
        run_state_machine_as_test(StoreMachine, settings=hunt)
