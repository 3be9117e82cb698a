"""In which order test files run, and which of them are one worker's: long chains first, small files fill what is left.

Two chains hold a run of all tests up, so they are the first two workers' from the beginning: the ring, and what takes
the session. The tests of integration that take it go behind the ring, whose worker is through sooner, with a session
of their own: one more start, and minutes that the other worker does not go on alone. So do those of Spark that judge
what is ingested: that worker has imported Great Expectations, which takes seconds. What trains challengers, exports
networks or reads exported ones is one worker's likewise, wherever it lies.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOMS = Path(__file__).parent
ORDER = ("ring", "behind the ring", "spark", "integration", "dags", "unit", "site")
CHAINS = {"ring": "ring", "behind the ring": "ring", "spark": "spark", "dags": "dags"}
"""What one worker has, file after file, by room: one JVM is started and warmed up, one process imports Airflow."""
WITH_SESSION = ("behind the ring", "spark")
_TAKES_SESSION = re.compile(r"\bdef \w+\([^)]*\b(spark|one_partition)\b")
_JUDGES = re.compile(r"^from pipelines\.ingest(\.quality)? import\b", re.MULTILINE)
_NETWORKS = re.compile(r"\btorch\.(export|optim)\b|\b(older_network|train_challenger)\b")
"""Files that need what torch compiles and exports networks by, 6 s to import, or train and register as the DAGs do."""


@cache
def room(file: Path) -> str:
    """Where a test file stands in `ORDER`: its folder, or "behind the ring", see above."""
    (folder, *_) = file.relative_to(ROOMS).parts
    goes_behind = {"integration": _TAKES_SESSION, "spark": _JUDGES}.get(folder)
    return "behind the ring" if goes_behind and goes_behind.search(file.read_text()) else folder


def turn(file: Path) -> int:
    """The place of a file's room in the order; files of one room stay as they are found."""
    return ORDER.index(room(file))


@cache
def unit_of_work(file: str) -> str:
    """What a worker takes as a whole: the chain that a file, named from the repository on, belongs to, or the file."""
    path = ROOMS.parent / file
    return CHAINS.get(room(path)) or ("networks" if _NETWORKS.search(path.read_text()) else file)
