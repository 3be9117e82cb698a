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
    """Run the pipeline's command line; where the pipeline is not installed, exit with status 1 and say how to get it.

    Raises:
        SystemExit: the pipeline is not installed, or its command line exits.
    """
    try:
        found = importlib.util.find_spec("pipelines.cli.app") is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        sys.exit(HINT)
    importlib.import_module("pipelines.cli.app").main()


if __name__ == "__main__":
    main()
