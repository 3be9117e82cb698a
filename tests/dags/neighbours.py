"""Puts our DAGs beside another team's, and beside what an earlier release left; writes which assets then are active.

The bundles are those of docs/deploy.md.
"""

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db
from airflow.models.asset import AssetActive
from airflow.utils.session import create_session
from sqlalchemy import select

from configs.settings import ROOT
from tests.fakes.page_blocks import blocks

THEIRS = """
from airflow.sdk import DAG, Asset

METRICS, DRIFT = Asset("metrics", "s3://theirs/metrics"), Asset("drift", "tidecast://lake/drift")
with DAG("theirs", schedule=METRICS | DRIFT):
    pass
"""
"""A team's asset of the name that ours had, and ours as it was."""
OURS = ("ingest_metrics", "retrain_forecaster")


def active(bundle: Any, *files: Path) -> list[str]:
    """Names of all assets that are active once the DAGs of these files are known, too."""
    for file in files:
        sync_bag_to_db(BundleDagBag(file, bundle_path=file.parent, bundle_name=bundle.name), bundle.name, None)
    with create_session() as session:
        return sorted(session.scalars(select(AssetActive.name)))


if __name__ == "__main__":
    (bundles,) = (block.text for block in blocks("json") if "classpath" in block.text)
    os.environ["AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"] = bundles.replace("/opt/tidecast", str(ROOT))
    manager = DagBundlesManager()
    manager.sync_bundles_to_db()
    beside, ours = manager.get_bundle("dags-folder"), manager.get_bundle("tidecast")
    with TemporaryDirectory() as folder:
        theirs = Path(folder) / "theirs.py"
        theirs.write_text(THEIRS)
        found = {"theirs": active(beside, theirs)}
    found["with ours"] = active(ours, *(ours.path / f"{dag}.py" for dag in OURS))
    Path(sys.argv[1]).write_text(json.dumps(found))
