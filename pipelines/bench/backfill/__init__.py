"""Replays beside a live job on a real broker and a real cluster: what they cost live records, and when they end."""
