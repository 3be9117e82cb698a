"""Row: a backup of what a short ring leaves, its restore to an empty folder, and a start there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from configs.settings import Settings
from pipelines.airflow.rest import Orchestrator
from pipelines.bench.site.kept.held import count_held, digest_held, list_lost
from pipelines.bench.site.rings import shortened
from pipelines.bench.site.servers import SiteError
from pipelines.demo.champion import DAGS
from pipelines.demo.live import LiveReplay
from pipelines.demo.progress import Screen
from pipelines.demo.run import STAGES, create_run_dir, run_stages
from pipelines.kafka.topics import create_topics
from pipelines.stack.stack import Stack

PARTS = frozenset({"broker", "spark", "airflow", "mlflow"})


def back_up_and_restore(settings: Settings, folder: Path) -> dict[str, Any]:
    """Run a short ring, `tidecast backup`, `tidecast restore` to an empty folder, and start the stack there.

    There everything is compared with what was there when the ring had ended; then the autoscaler and the job go on at
    their checkpoints.

    Args:
        settings: without addresses of a person's own.
        folder: empty, for all that is written.

    Returns:
        `produced` and `counted` (records of the ring); `compared`, how many things; `lost` (in words) and `losses`,
        their number; `megabytes` of the archive; `backup_s`, `restore_s` and `up_s`, seconds of the two commands and of
        the start; `went_on`, micro-batches of the job after it.

    Raises:
        SiteError: one of the commands failed.
        JarsError, JavaError, StackError, DemoError, ...: a service does not start, or a stage did not get through.
    """
    own, screen, began = shortened(settings, folder, {}), Screen(), time.time()
    screen.total = STAGES
    with Stack(own, PARTS) as stack:
        create_topics(stack.settings.kafka)
        run_dir = create_run_dir(stack.settings)
        run_stages(stack, run_dir, screen, began)
        for dag in DAGS:  # no run of an hour that is over meanwhile
            Orchestrator(stack.settings).pause(dag)
        counted = count_held(stack.settings, run_dir)
        before = counted | digest_held(stack.settings, run_dir)
    counts = json.loads((run_dir / "counts.json").read_text())
    archive = folder / "kept.tar.gz"
    backup_s = _command(own.var_dir, "backup", archive)
    new = own.model_copy(update={"var": folder / "empty" / "var"})
    restore_s, run_dir = _command(new.var_dir, "restore", archive), new.var_dir / run_dir.relative_to(own.var_dir)
    began = time.time()
    with Stack(new, PARTS, fresh=()) as stack:
        up_s = time.time() - began
        Orchestrator(stack.settings).wait_for_dags(DAGS)
        after = count_held(stack.settings, run_dir) | digest_held(stack.settings, run_dir)
        LiveReplay(stack, stack.settings, run_dir, Screen()).start()
        gone_on = count_held(stack.settings, run_dir)
    batches = f"newest micro-batch of {own.job.name}"
    lost = list_lost(before, after)
    lost += [f"after it went on, {one}" for one in list_lost(counted, gone_on)]
    return {
        "produced": counts["produced"], "counted": counts["counted"], "compared": len(before), "lost": lost,
        "losses": len(lost), "megabytes": round(archive.stat().st_size / 1e6, 1), "backup_s": round(backup_s, 1),
        "restore_s": round(restore_s, 1), "up_s": round(up_s, 1),
        "went_on": int(gone_on[batches]) - int(before[batches]),
    }  # fmt: skip


def _command(var: Path, name: str, archive: Path) -> float:
    """Run `tidecast backup` or `restore` on a `var` folder, and return its seconds."""
    began, environment = time.monotonic(), {**os.environ, "TIDECAST_VAR": str(var)}
    argv = [sys.executable, "-m", "tidecast", name, str(archive)]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SiteError(f"tidecast {name} ended with status {done.returncode}: {done.stdout}{done.stderr}")
    print(done.stdout, end="", flush=True)
    return time.monotonic() - began
