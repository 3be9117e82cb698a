"""Puts our DAGs beside another team's, and beside what an earlier release left; writes which assets then are active."""

import json
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
    manager = DagBundlesManager()
    manager.sync_bundles_to_db()
    bundle = next(iter(manager.get_all_dag_bundles()))
    with TemporaryDirectory() as folder:
        theirs = Path(folder) / "theirs.py"
        theirs.write_text(THEIRS)
        found = {"theirs": active(bundle, theirs)}
    found["with ours"] = active(bundle, *(ROOT / "dags" / f"{dag}.py" for dag in OURS))
    Path(sys.argv[1]).write_text(json.dumps(found))
