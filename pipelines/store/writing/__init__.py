"""The one writer: events, commits, opening after a crash."""
