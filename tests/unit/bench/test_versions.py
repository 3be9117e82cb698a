"""An agent and a pipeline of two versions understand each other: the package as it was against the one of today."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.bench.borders.corpus import KINDS, make_valid_messages
from tidecast.messages import decode, encode

ROOT = Path(__file__).parents[3]
BEFORE = "aae5f05"
"""The last version whose readers refuse a field that they do not know."""
NOW = 1_760_000_000.0
SHARED = ("metrics", "forecasts", "decisions", "outcomes", "control", "rejects")
"""Topics that both have; what is younger, the older does not follow."""
ACROSS = """
import dataclasses, json, sys
sys.path.insert(0, sys.argv[1])
import tidecast.messages as m
assert m.__file__.startswith(sys.argv[1]), m.__file__
for line in sys.stdin:
    kind, raw = json.loads(line)
    message = m.decode(getattr(m, kind), raw, float(sys.argv[2]))
    print(json.dumps([dataclasses.asdict(message), m.encode(message).decode()]))
"""


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """Today's records as the older package reads them and writes them again, by topic."""
    folder = tmp_path_factory.mktemp("before")
    archive = subprocess.run(["git", "-C", ROOT, "archive", BEFORE, "tidecast"], capture_output=True)
    if archive.returncode:
        pytest.skip(f"no history here that reaches back to {BEFORE}: {archive.stderr.decode()[:200]}")
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    lines = [json.dumps([KINDS[topic].__name__, encode(make_valid_messages(NOW)[topic]).decode()]) for topic in SHARED]
    call = [sys.executable, "-c", ACROSS, str(folder), str(NOW)]
    read = subprocess.run(call, input="\n".join(lines), capture_output=True, text=True, cwd=folder, env={})
    assert read.returncode == 0, read.stderr
    return dict(zip(SHARED, map(json.loads, read.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("topic", SHARED)
def test_an_older_reader_understands_what_is_written_today(before, topic):
    fields, _ = before[topic]
    assert KINDS[topic](**fields) == make_valid_messages(NOW)[topic]


@pytest.mark.parametrize("topic", SHARED)
def test_what_an_older_writer_says_is_understood_today(before, topic):
    _, written = before[topic]
    assert "null" in written or topic not in ("metrics", "forecasts", "decisions", "control")
    assert decode(KINDS[topic], written, NOW) == make_valid_messages(NOW)[topic]
