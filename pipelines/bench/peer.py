"""Another library's training, run by the interpreter of an environment that has it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any


class PeerError(RuntimeError):
    """The peer's interpreter could not run it; the message ends with the last of its standard error, and the remedy."""


def run_peer(interpreter: Path, script: Path, request: dict[str, Any], packages: str) -> dict[str, Any]:
    """Run a script with a JSON request on its standard input; blocks until it ends.

    Args:
        interpreter: of an environment that has the peer.
        script: to run.
        request: JSON values.
        packages: that the environment needs, for the message of an error.

    Returns:
        The JSON object on the last line of the script's standard output.

    Raises:
        PeerError: the script fails.
        OSError: the interpreter is not there or cannot be run.
        ValueError, TypeError: the last line is no JSON, or no object; TypeError also where the request is no JSON.
        IndexError: nothing was printed.
    """
    completed = subprocess.run(
        [interpreter, script], input=json.dumps(request), capture_output=True, text=True, check=False
    )
    if completed.returncode:
        raise PeerError(f"{interpreter}: {completed.stderr.strip()[-500:]} Install {packages} there.")
    return dict(json.loads(completed.stdout.strip().splitlines()[-1]))
