"""The adverts job with work that takes time, as `tidecast plan --demo` runs it (`served_adverts.yaml`)."""

from __future__ import annotations

from pipelines.jobs.chains import adverts
from pipelines.jobs.chains.served import served

WORK_MS = {"parse": 2.0, "join": 8.0, "count": 8.0}
"""Core-ms of a record that an operator takes, as the topology says."""
SOURCES = adverts.SOURCES
OPERATORS = {
    name: served(operator, WORK_MS[name]) if name in WORK_MS else operator
    for name, operator in adverts.OPERATORS.items()
}
