"""A topic for whoever follows it: read from a moment on, to its end."""


class FollowedTopic:
    """Stands for the class `Follower` and for one that was opened; records have `timestamp`, `key` and `value`."""

    def __init__(self, records):
        """Records in order."""
        self._records, self._since = records, 0.0

    def __call__(self, kafka, topics):
        """Open it, at its beginning."""
        self._since = 0.0
        return self

    def seek_to_time(self, wall_time):
        """Go to the first record of a moment, or a later one."""
        self._since = wall_time

    def ends(self):
        """Where it ends: this topic does not grow."""
        return {}

    def read_until(self, ends):
        """Yield what there is since that moment."""
        yield from (one for one in self._records if one.timestamp >= self._since)

    def close(self):
        """Nothing is open."""
