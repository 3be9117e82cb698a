"""Answers as of a time, without the writer."""
