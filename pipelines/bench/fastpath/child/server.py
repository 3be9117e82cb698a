"""`tidecast serve fast` with champions from a folder: `python -m pipelines.bench.fastpath.child.server FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from configs.settings import load
from pipelines.bench.fastpath.champions import FolderChampions
from pipelines.serve.fast.server import serve_fast
from pipelines.stack.state import with_stack_addresses

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    serve_fast(with_stack_addresses(load()), lambda: FolderChampions(folder))
