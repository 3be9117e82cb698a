"""Over how many partitions a checkpoint's state is spread, as its log says; one that is damaged says nothing."""

import pytest

from pipelines.spark.query_session import kept_partitions


@pytest.mark.parametrize(
    ("log", "kept"),
    [
        ('v1\n{"conf": {"spark.sql.shuffle.partitions": "4"}}\n{}', 4),
        ('v1\n{"conf": {}}\n{}', None),
        ('v1\n{"conf": {"spark.sql.shu', None),
        ("v1\n[1]\n{}", None),
        ("v1\n5\n{}", None),
        ('v1\n{"conf": {"spark.sql.shuffle.partitions": null}}\n{}', None),
        ("v1", None),
        ("", None),
    ],
)
def test_a_damaged_log_says_nothing(tmp_path, log, kept):
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(log)
    assert kept_partitions(tmp_path) == kept


def test_where_no_batch_was_planned_nothing_is_spread(tmp_path):
    assert kept_partitions(tmp_path) is None
