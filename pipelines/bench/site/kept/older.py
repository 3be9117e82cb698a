"""The release before this one: which commit that is, its code in a folder, and the settings that it knows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from configs.settings import ROOT, Settings
from pipelines.bench.site.servers import SiteError

LINKED = ("ivy", "jars.json", "class-archive")
"""What `make setup` leaves in `var` for the code beside it; packages and jars are those of this release."""
_SETTINGS = "from configs import settings as s; print(s.ROOT, s.load().model_dump_json(), sep='\\n')"


class OlderRelease(NamedTuple):
    """A release, ready to run with this one's packages.

    Attributes:
        commit: its full hash.
        chosen: why this one, in words.
        code: folder of its checkout.
        settings: file for `TIDECAST_FILE` of its processes, with what it knows of the settings in force.
    """

    commit: str
    chosen: str
    code: Path
    settings: Path

    def environment(self) -> dict[str, str]:
        """Variables by which a process runs this release's code."""
        return {
            "PYTHONPATH": str(self.code), "PYTHONSAFEPATH": "1",  # else -m would find the code of the folder it runs in
            "TIDECAST_FILE": str(self.settings), "AIRFLOW__CORE__PLUGINS_FOLDER": str(self.code / "dags" / "plugins"),
        }  # fmt: skip


def check_out(settings: Settings, folder: Path) -> OlderRelease:
    """Write the code of the release before into a folder, with jars, and settings that it knows beside it.

    Args:
        settings: in force; contracts are read where they say.
        folder: gets `older` and `older.yaml`.

    Raises:
        SiteError: this is no clone with its history, or that release's code does not run with these packages.
        OSError: a file cannot be written.
    """
    (commit, chosen), code = choose_release(), folder / "older"
    (code / "var").mkdir(parents=True)
    packed = subprocess.run(["git", "archive", "--format=tar", commit], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], input=packed.stdout, cwd=code, check=True)
    for name in LINKED:
        (code / "var" / name).symlink_to((ROOT / "var" / name).resolve())
    release = OlderRelease(commit, chosen, code, folder / "older.yaml")
    own = json.loads(settings.model_dump_json())
    release.settings.write_text(yaml.safe_dump(known_settings(own, _defaults(release)), sort_keys=False))
    release.settings.chmod(0o600)
    return release


def choose_release() -> tuple[str, str]:
    """Choose the release before this code; return its commit, and why that one.

    It is the newest tag before the present commit; where there is none, the last commit of the day before the newest
    one in `CHANGELOG.md`.

    Raises:
        SiteError: this is no clone with its history.
    """
    if tag := _git("describe", "--tags", "--abbrev=0", "HEAD^"):
        return _git("rev-list", "-1", tag), f"the newest tag, {tag}"
    day = day_before((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    commit = _git("log", "-1", "--format=%H", f"--until={day}T23:59:59Z")
    if not commit:
        raise SiteError(f"{ROOT} has no commit of {day} or before: a clone with its whole history is needed.")
    return commit, f"the last commit of {day}, the day before the newest of CHANGELOG.md, as no release is tagged"


def day_before(changelog: str) -> date:
    """Return the newest day but one that a text names.

    Raises:
        SiteError: it does not name two.
    """
    days = sorted({date.fromisoformat(found) for found in re.findall(r"\d{4}-\d\d-\d\d", changelog)})
    if len(days) < 2:
        raise SiteError("CHANGELOG.md names fewer than two days, and there is no tag: no release before this one.")
    return days[-2]


def known_settings(own: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return our settings without those that a release does not know; what it has alone stays as it has it.

    Args:
        own: the settings in force, by section.
        known: all settings of that release, with its defaults.
    """
    return {
        name: known_settings(own[name], theirs) if isinstance(theirs, dict) and isinstance(own.get(name), dict)
        else own.get(name, theirs)
        for name, theirs in known.items()
    }  # fmt: skip


def _defaults(release: OlderRelease) -> dict[str, Any]:
    """The settings of a release as its own file has them, once it is sure that it is its code that runs."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("TIDECAST_")}
    env = outside | release.environment()
    del env["TIDECAST_FILE"]
    done = subprocess.run([sys.executable, "-c", _SETTINGS], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SiteError(f"the code of {release.commit} does not run with these packages: {done.stderr}")
    root, found = done.stdout.split("\n", 1)
    if Path(root) != release.code.resolve():
        raise SiteError(f"the code of {root} ran in place of that in {release.code}: is the pipeline on PYTHONPATH?")
    return dict(json.loads(found))


def _git(*arguments: str) -> str:
    """What git answers; nothing where it refuses."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout.strip()
