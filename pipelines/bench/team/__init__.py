"""What a team does with a job: its contract proposed from what was observed."""
