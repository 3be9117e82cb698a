"""A simulator of streaming jobs: pure, thousands of runs at once; the same seed gives the same run."""
