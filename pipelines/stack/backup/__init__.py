"""Backup of what a deployment keeps under `var`, and its way back onto an empty computer."""
