"""Writes Prometheus' rules from the table of alerts: `python -m pipelines.alerts.rules`; a test holds it."""

from __future__ import annotations

import yaml

from configs.settings import ROOT
from models.alerts.rules import rules_document

FILE = ROOT / "docker" / "prometheus" / "rules.yaml"
_HEAD = (
    "# Written by `python -m pipelines.alerts.rules` from models/alerts/table.py; docs/alerts.md says what each is.\n"
)


def rules_text() -> str:
    """Return what the file of rules holds."""
    return f"{_HEAD}{yaml.safe_dump(rules_document(), sort_keys=False, width=116, allow_unicode=True)}"


if __name__ == "__main__":
    FILE.write_text(rules_text())
