"""The source paper's table of errors, run again."""
