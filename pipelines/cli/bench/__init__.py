"""`tidecast bench`: one file per measurement."""
