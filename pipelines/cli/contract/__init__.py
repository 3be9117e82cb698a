"""`tidecast contract`: checks, and replays of what was decided."""
