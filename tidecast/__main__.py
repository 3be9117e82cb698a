"""The `tidecast` command: thin, because the pipeline behind it is not part of the wheel."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

HINT = (
    "tidecast: the pipeline is not installed here, only the agent (`from tidecast import attach`). "
    "Clone the Tidecast repository and run `make run` in it, or use its image."
)
_ROOMS = ("pipelines", "configs", "models")


def main() -> None:
    """Run the command line of the package `pipelines` with the process's arguments (`sys.argv`).

    Raises:
        SystemExit: the command ends, with its status; or `pipelines` is not installed (1, stderr says how to get it);
            or a package of another project comes before one of ours of its name (1, stderr says where it lies).
        ImportError: a package that `pipelines` needs is not installed.
    """
    try:
        installed = importlib.util.find_spec("pipelines.cli.app") is not None
    except ModuleNotFoundError:
        installed = False
    if not installed:
        sys.exit("\n".join(filter(None, (HINT, _describe_stranger("pipelines")))))
    try:
        importlib.import_module("pipelines.cli.app").main()
    except ImportError as error:
        room = (error.name or "").partition(".")[0]
        if room != "pipelines" and (said := _describe_stranger(room)):  # that one is ours: it was found above
            sys.exit(said)
        raise


def _describe_stranger(room: str) -> str:
    """Where another project's package lies that is imported in place of ours, and what helps; "" where none is."""
    spec = importlib.util.find_spec(room) if room in _ROOMS else None
    if spec is None:
        return ""
    found = Path(spec.origin or next(iter(spec.submodule_search_locations or ())))
    ours = importlib.util.find_spec("pipelines")
    if room != "pipelines" and ours is not None and ours.origin and found.parent.parent == Path(ours.origin).parents[1]:
        return ""
    return (
        f"tidecast: {found} is another project's `{room}`, which would be imported in place of Tidecast's. "
        "Unset PYTHONPATH, or leave that folder out of it."
    )


if __name__ == "__main__":
    main()
