"""Loads as series: from files, shipped ones, and where a trace is cut."""
