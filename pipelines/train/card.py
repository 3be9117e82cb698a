"""What every registered version's card has: the data, who made it, what it is not for, and how to make it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from pipelines.lake.load import LakeSeries


def describe_data(source: LakeSeries) -> str:
    """Describe what a version was trained on: steps, hours and records of job time, period, Delta version and digest.

    Steps that are missing count neither as hours nor as records.
    """
    data, series = source.lineage(), source.series
    records = float(np.nansum(series.values)) * series.step_s
    return (
        f"Data: {data['data.steps']} steps ({data['data.missing']} missing), {data['data.from']} to {data['data.to']} "
        f"UTC, {source.known * series.step_s / 3600:,.4g} hours with {records:,.0f} records, Delta version "
        f"{data['data.delta_version']}, digest {data['data.digest']}."
    )


def describe_making(run: str, commit: str | None, dag: str, form: Mapping[str, Any], reads: str, not_for: str) -> str:
    """Describe by which code a version was made, what it must not be used for, and how to make it again, in Markdown.

    Args:
        run: MLflow's id of the run that made it; its parameters are the settings.
        commit: of the code, `-dirty` where files differed; None: nobody knows.
        dag: that makes such versions.
        form: its form, as the run had it.
        reads: what has to be as it was, e.g. "the table `metrics` as of Delta version 5".
        not_for: a sentence.
    """
    known = commit is not None and not commit.endswith("-dirty")
    code = f"commit {commit}" if commit is not None else "a commit that nobody noted"
    differed = "" if known else " What this code was, no commit says, so that another run may differ."
    return (
        f"**Not for:** {not_for}\n\n"
        f"**Again:** made by the code of {code} in the run {run}, whose parameters are the settings and seeds. With "
        f"both, and {reads}: `airflow dags trigger {dag} --conf '{json.dumps(dict(form))}'`.{differed}"
    )
