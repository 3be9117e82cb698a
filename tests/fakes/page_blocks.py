"""The fenced blocks of all pages, and the few that no test runs, each with the reason."""

import re
from typing import NamedTuple

from configs.settings import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: `number` is its place among the page's blocks of its language, from 1 on."""

    page: str
    language: str
    number: int
    text: str

    @property
    def id(self):
        return f"{self.page}:{self.language}-{self.number}"


def blocks(language=None):
    found = []
    for page in PAGES:
        seen = {}
        for fence in FENCE.finditer(page.read_text()):
            kind = fence["language"]
            seen[kind] = seen.get(kind, 0) + 1
            found.append(Block(str(page.relative_to(ROOT)), kind, seen[kind], fence["text"]))
    return [block for block in found if language in (None, block.language)]


NOT_RUN = {
    "docs/signed.md:python-1": "run by tests/spark/test_signed_page.py, with what it prints",
    "docs/approximation.md:python-1": "run by tests/spark/test_approximation_page.py, with what it prints",
    "docs/attach.md:python-2": "starts a query again and again",
    "docs/fastpath.md:python-1": "asks a server that runs: tests/integration/test_fast_server.py",
    "docs/backfill.md:python-2": "asks a broker for orders: tests/integration/test_replay_into_table.py",
    "docs/backfill.md:python-3": "asks a broker for the gap: tests/integration/test_live_first.py",
    "docs/merge.md:python-2": "asks a broker for the topic's form: tests/spark/test_topic_difference.py",
    "docs/tutorial.md:python-1": "a driver of its own, on a broker and a cluster: minutes",
    "docs/tutorial.md:python-2": "sends to a broker until it is ended",
}
"""Python that is only compiled. All else is run by tests/spark/test_page_python.py."""

PROGRAMS = {
    "docker", "kubectl", "kafka-acls.sh", "spark-submit", "hdfs", "apt-get", "git", "curl", "chromium", "openssl",
    "chmod", "cp", "mv", "mkdir", "export", "cd", "python", "source", "kill",
}  # fmt: skip
"""What lines of shell begin with beside `tidecast` and `make`: others' programs, or what would change this computer.

`bash -n` reads them, and nothing runs them.
"""
