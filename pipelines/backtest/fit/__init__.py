"""The twin fitted to what was measured, checked against runs that it was not fitted to."""
