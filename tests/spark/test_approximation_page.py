"""The example of docs/approximation.md runs as it stands there, and says what the page says."""

import json
import os
import re

import pytest

from configs.settings import ROOT

pytestmark = pytest.mark.spark
PAGE = (ROOT / "docs" / "approximation.md").read_text()
MINUTE = 1_772_323_200_000
FILES = [
    [("a", 1, "/cart", 10, 0), ("a", 2, "/cart", 20, 1), ("a", 2, "/", 40, 2), ("b", 3, "/", 30, 3)],
    [("a", 4, "/", 10, 600_000)],
]


def test_the_example_runs_and_the_page_says_what_it_says(one_partition, tmp_path, capsys):
    one_partition.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    (tmp_path / "visits").mkdir()
    for n, rows in enumerate(FILES):
        names = ("shop", "user", "page", "wait_ms", "at")
        visits = [dict(zip(names, (*row[:4], MINUTE + row[4]), strict=True)) for row in rows]
        file = tmp_path / "visits" / f"{n}.json"
        file.write_text("\n".join(map(json.dumps, visits)))
        os.utime(file, (n, n))  # the order that Spark takes them in
    folders = {"folder": "visits", "checkpoint": "c", "errors": "errors"}
    names = {"spark": one_partition} | {name: str(tmp_path / folder) for name, folder in folders.items()}
    code, told = (re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)[1] for kind in ("python", "text"))
    try:
        exec(code, names)
        names["query"].processAllAvailable()
    finally:
        for query in one_partition.streams.active:
            query.stop()
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(told.splitlines())
    entries = one_partition.read.parquet(names["errors"]).collect()
    assert sorted((json.loads(row.key)["shop"], row.operator, row.n) for row in entries) == [
        ("a", "pages", 3), ("a", "users", 3), ("a", "wait", 3), ("b", "pages", 1), ("b", "users", 1), ("b", "wait", 1),
    ]  # fmt: skip
