"""The figures of a job's page worked out from the lake's tables, by who reads these elsewhere, not by the console."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from models.policy.core.budget import Account, Promise
from models.policy.live.recomputed import parse_contracts
from pipelines.ingest.columns import KINDS
from pipelines.lake.errors import LakeError
from pipelines.lake.file_lake import FileLake
from pipelines.lake.folder import Folder
from pipelines.lake.table_files import table_files
from pipelines.report.actions import join_outcomes

MOST = 1_000_000
"""Rows that are read of a job and table."""
SHOWN, STEPS = 60, {"fine": (1.0, 600), "coarse": (10.0, 2160)}
"""Decisions on a page; seconds of a step and number of steps of its charts."""
COLUMNS = ("arrival_rps", "executors", "target", "capacity_rps", "lag_records", "latency_s")
Rows = Sequence[Mapping[str, Any]]
Figures = dict[str, Any]
"""Values by name, such as `row.budget_left`, `decisions.0.reason`, `fine.1780000000.arrival_rps`."""


class LakeFigures:
    """A lake whose tables are read by their files."""

    def __init__(self, root: Folder) -> None:
        """List the files.

        Raises:
            LakeError: a table is missing, or takes Spark to read.
        """
        found = {table: table_files(root, table) for table in KINDS}
        if missing := [table for table, files in found.items() if files is None]:
            raise LakeError(f"{root}: no files of {', '.join(missing)} to read")
        self._lake = FileLake(root, {table: files for table, files in found.items() if files is not None})

    def of_job(self, job: str) -> Figures:
        """Return the figures of a job that the lake holds.

        Raises:
            LakeError: there is no table.
            IndexError: it holds nothing of the job.
        """
        metrics = self._rows("metrics", job)
        intervals = _once(row for row in metrics if row["kind"] == "interval" and row["executors"] is not None)
        batches = _once(row for row in metrics if row["kind"] == "batch")
        decisions = [{**row, "inputs": json.loads(row["inputs"])} for row in self._rows("decisions", job)]
        stated = self._rows("contracts", job)[-1]
        promise = Promise.of(contract := parse_contracts([stated])[stated["hash"]])
        newest, scale = intervals[-1], intervals[-1]["time_scale"]
        standing = _account(promise, sorted([*intervals, *batches], key=_wall)).standing(promise, scale)
        row = {
            "target_s": promise.target_s, "budget": promise.budget, "window_days": promise.window_days,
            "most": contract.executors.max, "least": contract.executors.min, "mode": newest["mode"],
            "executors": newest["executors"], "arrival_rps": newest["arrival_rps"],
            "lag_records": newest["lag_records"], "latency_s": batches[-1]["latency_max_s"],
            "target": decisions[-1]["executors"],
            **{name: standing[name] for name in ("budget_left", "burn_long", "burn_short")},
        }  # fmt: skip
        figures = {f"row.{name}": value for name, value in row.items()}
        outcomes = pd.DataFrame(self._rows("outcomes", job), columns=self._lake.columns("outcomes"))
        figures |= _decided(join_outcomes(pd.DataFrame(decisions).drop_duplicates("id"), outcomes))
        figures |= _fan(max(self._rows("forecasts", job), key=lambda one: (one["epoch"], one["wall_time"])), newest)
        for name, (step_s, most) in STEPS.items():
            figures |= _history(name, step_s, most, intervals, batches, decisions)
        return figures

    def _rows(self, table: str, job: str) -> list[dict[str, Any]]:
        """All rows of a job, oldest first."""
        found = self._lake.newest_rows(table, self._lake.columns(table), [("job", "eq", job)], MOST).to_pylist()
        return sorted(found, key=_wall)


def _wall(row: Mapping[str, Any]) -> float:
    return float(row["wall_time"])


def _once(rows: Iterator[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of rows of the same moment, which a producer sent twice, the first."""
    return [*{_wall(row): row for row in rows}.values()]


def _account(promise: Promise, metrics: Rows) -> Account:
    """The account of a promise by all metrics that the lake holds."""
    account, before = Account(), math.inf
    for row in metrics:
        at, scale = _wall(row), row["time_scale"]
        if row["kind"] == "batch":
            account = account.add_batch(promise, at, row["latency_max_s"], scale)
        else:
            if row["arrival_rps"] == 0 and row["lag_records"] == 0:
                account = account.rest(promise, max(at - before, 0.0), scale)
            before = at
    return account


def _decided(acts: pd.DataFrame) -> Figures:
    figures: Figures = {"decisions": min(len(acts), SHOWN)}
    for place, act in enumerate(acts.tail(SHOWN).iloc[::-1].to_dict("records")):
        known = isinstance(act["status"], str)
        shown = {
            "at": act["wall_time"], "mode": act["mode"], "policy": act["policy"], "executors": act["executors"],
            "before": act["inputs"].get("executors"), "reason": act["reason"], "codes": [*act["codes"]],
            "outcome": act["status"] if known else None, "outcome_reason": act["outcome_reason"] if known else "",
        }  # fmt: skip
        figures |= {f"decisions.{place}.{name}": value for name, value in shown.items()}
    return figures


def _fan(made: Mapping[str, Any], newest: Mapping[str, Any]) -> Figures:
    ended, scale = newest["time"] + newest["span_s"], newest["time_scale"]
    steps = range(len(made["quantiles"]) + 1)
    return {
        "forecast.model": made["model"], "forecast.version": made["version"],
        "forecast.issued_at": made["wall_time"], "forecast.levels": [*made["levels"]],
        "forecast.times": [_wall(newest) + (made["time"] + n * made["step_s"] - ended) / scale for n in steps],
        "forecast.quantiles": [[*level] for level in zip(*made["quantiles"], strict=True)],
    }  # fmt: skip


def _history(name: str, step_s: float, most: int, intervals: Rows, batches: Rows, decisions: Rows) -> Figures:
    """The lines of the charts, by the beginnings of their steps."""
    steps: dict[int, list[tuple[float | None, ...]]] = {}
    before = -math.inf
    for row in intervals:
        at = _wall(row)
        decided = [one for one in decisions if _wall(one) <= at][-1:]
        late_s = [one["latency_max_s"] for one in batches if before < _wall(one) <= at]
        steps.setdefault(math.floor(at / step_s), []).append(
            (
                row["arrival_rps"], row["executors"], decided[0]["executors"] if decided else None,
                decided[0]["inputs"].get("capacity_rps") if decided else None, row["lag_records"],
                max(late_s, default=None),
            )
        )  # fmt: skip
        before = at
    figures: Figures = {}
    for step in sorted(steps)[-most:]:
        arrived, there, asked, carried, lags, lates = ([*column] for column in zip(*steps[step], strict=True))
        known = [late for late in lates if late is not None]
        last = [next((one for one in reversed(column) if one is not None), None) for column in (there, asked, carried)]
        values = (sum(arrived) / len(arrived), *last, max(lags), max(known, default=None))
        figures |= {f"{name}.{step * step_s:.0f}.{column}": v for column, v in zip(COLUMNS, values, strict=True)}
    return figures
