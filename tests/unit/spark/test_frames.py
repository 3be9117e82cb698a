import pandas as pd

from pipelines.spark.frames import rows_of


def test_rows_have_the_values_that_a_frame_was_made_of():
    rows = [
        {"topic": "metrics", "partition": 3, "offset": 1 << 40, "value": b'{"job":"orders"}'},
        {"topic": "outcomes", "partition": 0, "offset": 7, "value": None},
    ]
    read = rows_of(pd.DataFrame(rows))
    assert read == rows and [type(value) for value in read[0].values()] == [str, int, int, bytes]
    assert rows_of(pd.DataFrame(rows[:0], columns=["topic", "value"])) == []
