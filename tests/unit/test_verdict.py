import math

import pytest

from models.forecast.selection.gate import verdict


@pytest.mark.parametrize(
    ("challenger", "champion", "naive", "improvement", "promoted", "word"),
    [
        (1.0, 2.0, 3.0, 0.0, True, "under the champion's 2.000"),
        (2.0, 2.0, 3.0, 0.0, False, "not under the champion's"),
        (1.95, 2.0, 3.0, 0.05, False, "less 5.0%"),
        (1.0, 2.0, 0.9, 0.0, False, "seasonal naive"),
        (1.0, None, 3.0, 0.0, True, "no champion"),
        (1.0, math.nan, 3.0, 0.0, True, "no champion"),
        (math.nan, 2.0, 3.0, 0.0, False, "nan"),
        (math.inf, None, math.nan, 0.0, False, "inf"),
    ],
)
def test_verdict(challenger, champion, naive, improvement, promoted, word):
    found = verdict(challenger, champion, naive, improvement)
    assert found.promoted is promoted
    assert word in found.reason
