"""What a team does with jobs: contracts proposed from what was observed, pools."""
