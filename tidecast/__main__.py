"""The `tidecast` command: thin, because the pipeline behind it is not part of the wheel."""

from __future__ import annotations

import importlib
import importlib.util
import sys

HINT = (
    "tidecast: the pipeline is not installed here, only the agent (`from tidecast import attach`). "
    "Clone the Tidecast repository and run `make run` in it, or use its image."
)


def main() -> None:
    """Run the command line of the package `pipelines` with the process's arguments (`sys.argv`).

    Raises:
        SystemExit: the command ends, with its status; or `pipelines` is not installed (1, stderr says how to get it).
        ImportError: a package that `pipelines` needs is not installed.
    """
    try:
        installed = importlib.util.find_spec("pipelines.cli.app") is not None
    except ModuleNotFoundError:
        installed = False
    if not installed:
        sys.exit(HINT)
    importlib.import_module("pipelines.cli.app").main()


if __name__ == "__main__":
    main()
