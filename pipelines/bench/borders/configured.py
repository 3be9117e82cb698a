"""Pools and settings as files that somebody wrote by hand: right ones, how they are read, and what they promise."""

from __future__ import annotations

import os
from pathlib import Path

import yaml

from configs.contract import Contract, Executors
from configs.pool import ClusterPool, load_pool
from configs.settings import Settings, load
from pipelines.bench.borders.corpus import JOB, POOL

POOLS = (
    f"""\
name: {POOL}
cores: 24
memory_gb: 48
price_per_core_hour: 0.05
jobs:
  {JOB}: {{weight: 4, floor: 2}}
  rides: {{memory_gb: 2, frozen: true}}
quota: {{hourly_core_hours: 20, daily_core_hours: 300}}
blackouts:
  - {{begin: "2026-12-24T18:00+01:00", end: "2026-12-26T06:00+01:00", jobs: [{JOB}]}}
veto: {{url: "http://127.0.0.1:9000/may", timeout_s: 2}}
""".encode(),
    f"name: {POOL}\ncores: 4\njobs: {{{JOB}: {{}}}}\n".encode(),
)
SETTINGS = (
    b"""\
kafka: {bootstrap: "broker:9093", prefix: team, security: {security_protocol: SASL_SSL, sasl_plain_password: secret}}
lake: {address: "hdfs://names:9000/lake"}
mlflow: {tracking_uri: "http://registry:5000"}
job: {name: word_count, also: [key_window], trigger: 2 seconds}
serving: {path: fast, map_bytes: 4294967296, token: null}
training: {step_s: 1800, levels: [0.1, 0.5, 0.9], models: [seasonal_naive, ridge]}
replay: {newcomer: {job: ride_count, trace: taxi 15min, days: 5}}
autoscaler: {policy: mpc, mode: observe, cores: 2}
""",
    b"var: /srv/tidecast\nautoscaler:\n  policy: reactive\nreplay: {newcomer: null}\n",
)
_CONTRACTS = {name: Contract(job=name, executors=Executors(max=8)) for name in (JOB, "rides")}


def read_pool_file(file: Path) -> ClusterPool:
    """Read the file as that of a pool of two jobs.

    Raises:
        SettingsError: something in it is wrong.
    """
    return load_pool(file.stem, file.parent, _CONTRACTS)


def read_settings_file(file: Path) -> Settings:
    """Read the file as TIDECAST_FILE, which is set meanwhile, in an environment that says nothing else.

    Raises:
        SettingsError: something in it is wrong.
    """
    before = {name: os.environ.pop(name) for name in [*os.environ] if name.startswith("TIDECAST_")}
    os.environ["TIDECAST_FILE"] = str(file)
    try:
        return load()
    finally:
        del os.environ["TIDECAST_FILE"]
        os.environ.update(before)


def reach_others(settings: Settings, folder: Path) -> bool:
    """Return whether settings are the same to a process of the stack, which reads what was written of them."""
    file = folder / "written.yaml"
    file.write_text(yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False))
    return read_settings_file(file) == settings
