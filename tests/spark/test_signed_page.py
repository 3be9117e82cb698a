"""The example of docs/signed.md runs as it stands there, and says what the page says."""

import json
import os
import re

import pytest

from configs.settings import ROOT

pytestmark = pytest.mark.spark
PAGE = (ROOT / "docs" / "signed.md").read_text()
DAY = 1_772_323_200_000
FILES = [
    [("a", 10, "09:05", 1), ("a", 20, "09:10", 1), ("b", 25, "09:20", 1)],
    [("a", 5, "09:30", 1), ("b", 40, "10:15", 1)],
    [("a", 20, "09:10", -1)],
]


def test_the_example_runs_and_the_page_says_what_it_says(one_partition, tmp_path, capsys):
    (tmp_path / "orders").mkdir()
    for n, rows in enumerate(FILES):
        orders = [{"shop": s, "amount": x, "at": f"2026-03-01T{at}:00Z", "sign": sign} for s, x, at, sign in rows]
        file = tmp_path / "orders" / f"{n}.json"
        file.write_text("\n".join(map(json.dumps, orders)))
        os.utime(file, (n, n))  # the order that Spark takes them in
    said = []

    class Results(dict):
        def __setitem__(self, key, value):
            said.append([tuple(row) for row in value])
            super().__setitem__(key, value)

    names = {
        "spark": one_partition,
        "folder": str(tmp_path / "orders"),
        "results": Results(),
        "checkpoint": str(tmp_path / "c"),
    }
    try:
        exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], names)
        names["query"].processAllAvailable()
    finally:
        if "query" in names:
            names["query"].stop()
    assert {key: [tuple(row) for row in best] for key, best in names["results"].items()} == {
        DAY: [(40, "b"), (25, "b")]
    }
    assert said == [[(30, "a"), (25, "b")], [(40, "b"), (35, "a")], [(40, "b"), (25, "b")]]
    table = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)[1]
    assert table.strip() in capsys.readouterr().out
